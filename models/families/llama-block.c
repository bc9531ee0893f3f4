#include "models/families/llama.h"

#include <string.h>

static void split_block(const ModelLlama *llama, const ModelLlamaBlock *block) {
    const ModelLayer *columns[] = {&block->o, &block->down};
    const ModelLayer *rows[] = {&block->q, &block->k, &block->v, &block->gate, &block->up};
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        model_split(&llama->walk, columns[i], PLAN_SPLIT_COLUMNS);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        model_split(&llama->walk, rows[i], PLAN_SPLIT_ROWS);
    }
}

/* By the names that transformers has for them; of GLM-4's those before come first. */
static void declare_norms_of_glm(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    block->norm_1 = model_rmsnorm(w, block->module, "input_layernorm");
    block->norm_2 = model_rmsnorm(w, block->module, "post_attention_layernorm");
    block->after_1 = model_rmsnorm(w, block->module, "post_self_attn_layernorm");
    block->after_2 = model_rmsnorm(w, block->module, "post_mlp_layernorm");
}

/* The others' in the order of their use. */
static void declare_their_norms(const ModelLlama *llama, ModelLlamaBlock *block) {
    static const char *const names[][4] = {
        [MODEL_NORM_BEFORE] = {"input_layernorm", NULL, "post_attention_layernorm"},
        [MODEL_NORM_ONCE] = {"input_layernorm"},
        [MODEL_NORM_AFTER] = {"post_attention_layernorm", NULL, "post_feedforward_layernorm"},
        [MODEL_NORM_BOTH] = {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}};
    ModelLayer *norms[] = {&block->norm_1, &block->after_1, &block->norm_2, &block->after_2};
    for (unsigned i = 0; i < G_N_ELEMENTS(norms); i++) {
        const char *name = names[llama->norm_at][i];
        if (name) {
            *norms[i] = model_rmsnorm(&llama->walk, block->module, name);
        }
    }
}

/* transformers registers the norms last. */
ModelLlamaBlock model_llama_declare_block(const ModelLlama *llama, uint32_t parent,
                                          uint64_t index) {
    const ModelWalk *w = &llama->walk;
    g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, index);
    g_autofree char *class_name = model_llama_class(llama, "DecoderLayer", "LlamaBlock");
    ModelLlamaBlock block = {.module = plan_graph_module(w->graph, parent, name, class_name, true),
                             .has_experts = llama->experts.n && index >= llama->dense_layers};
    plan_graph_module_at(w->graph, block.module)->is_program = !block.has_experts;
    if (llama->transformers) {
        model_llama_declare_attention(llama, &block);
        model_llama_declare_hidden_layer(llama, &block);
        bool is_glm = llama->rotary.is_paired && llama->norm_at == MODEL_NORM_BOTH;
        (is_glm ? declare_norms_of_glm : declare_their_norms)(llama, &block);
        return block;
    }
    block.norm_1 = model_rmsnorm(w, block.module, "norm_1");
    model_llama_declare_attention(llama, &block);
    bool at_both = llama->norm_at == MODEL_NORM_BOTH;
    if (at_both) {
        block.after_1 = model_rmsnorm(w, block.module, "after_1");
    }
    block.norm_2 = model_rmsnorm(w, block.module, "norm_2");
    if (at_both) {
        block.after_2 = model_rmsnorm(w, block.module, "after_2");
    }
    model_llama_declare_hidden_layer(llama, &block);
    if (w->graph->shared.tensor > 1 && !llama->experts.n) {
        split_block(llama, &block);
    }
    return block;
}

/* A block's two sums, the last of which the next block may make. */
static ModelStream run_with_norms_before(const ModelLlama *llama, const ModelLlamaBlock *block,
                                         ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t x, normed = model_run_stream_norm(w, &block->norm_1, stream, llama->norm_eps, &x);
    uint32_t a = model_llama_run_attention(llama, block, normed);
    normed = model_run_add_norm(w, &block->norm_2, x, a, llama->norm_eps, &x);
    uint32_t m = model_llama_run_hidden_layer(llama, block, normed);
    if (llama->has_sinks) {
        plan_graph_let_go_after(w->graph, *llama->weights, x);
    }
    return model_leave_block(w, x, m);
}

/* Each layer's result is scaled before it is added; Python's variable holds it until then. */
static uint32_t add_scaled(const ModelLlama *llama, uint32_t x, uint32_t result) {
    const ModelWalk *w = &llama->between;
    uint32_t scaled = model_run_number(w, PLAN_OP_TIMES_NUMBER, result, w->rows * w->width,
                                       llama->residual_scale);
    uint32_t sum = model_run_residual(w, x, scaled);
    plan_graph_keep(w->graph, result);
    plan_graph_let_go_after(w->graph, result, scaled);
    plan_graph_let_go_after(w->graph, x, result);
    return sum;
}

static ModelStream run_scaled(const ModelLlama *llama, const ModelLlamaBlock *block,
                              ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = model_llama_run_attention(
        llama, block, model_run_rmsnorm(w, &block->norm_1, stream.a, llama->norm_eps));
    uint32_t x = add_scaled(llama, stream.a, a);
    uint32_t m = model_llama_run_hidden_layer(
        llama, block, model_run_rmsnorm(w, &block->norm_2, x, llama->norm_eps));
    uint32_t y = add_scaled(llama, x, m);
    plan_graph_leave(w->graph, &y, 1);
    return (ModelStream){y, PLAN_NONE};
}

/* What comes in is a sum already: no norm could make it. */
static ModelStream run_with_norms_after(const ModelLlama *llama, const ModelLlamaBlock *block,
                                        ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = model_llama_run_attention(llama, block, stream.a);
    uint32_t x =
        model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->norm_1, a, llama->norm_eps));
    uint32_t m = model_llama_run_hidden_layer(llama, block, x);
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->norm_2, m, llama->norm_eps));
}

/* Before and behind: what a block adds is normed once more. */
static ModelStream run_with_norms_at_both(const ModelLlama *llama, const ModelLlamaBlock *block,
                                          ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = model_llama_run_attention(
        llama, block, model_run_rmsnorm(w, &block->norm_1, stream.a, llama->norm_eps));
    uint32_t x =
        model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->after_1, a, llama->norm_eps));
    uint32_t m = model_llama_run_hidden_layer(
        llama, block, model_run_rmsnorm(w, &block->norm_2, x, llama->norm_eps));
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->after_2, m, llama->norm_eps));
}

/* Both read what one norm gives; what they add is added by one expression. */
static ModelStream run_side_by_side(const ModelLlama *llama, const ModelLlamaBlock *block,
                                    ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint64_t n = w->rows * w->width;
    uint32_t normed = model_run_rmsnorm(w, &block->norm_1, stream.a, llama->norm_eps);
    plan_graph_hold(w->graph, normed);
    uint32_t a = model_llama_run_attention(llama, block, normed);
    plan_graph_hold(w->graph, a);
    uint32_t m = model_llama_run_hidden_layer(llama, block, normed);
    plan_graph_hold(w->graph, m);
    uint32_t y = model_run_add(w, model_run_add(w, stream.a, a, n), m, n);
    plan_graph_let_go_after(w->graph, stream.a, m);
    plan_graph_leave(w->graph, &y, 1);
    return (ModelStream){y, PLAN_NONE};
}

static ModelStream run_in_order(const ModelLlama *llama, const ModelLlamaBlock *block,
                                ModelStream stream) {
    if (llama->residual_scale) {
        return run_scaled(llama, block, stream);
    }
    switch (llama->norm_at) {
    case MODEL_NORM_BEFORE:
        return run_with_norms_before(llama, block, stream);
    case MODEL_NORM_AFTER:
        return run_with_norms_after(llama, block, stream);
    case MODEL_NORM_BOTH:
        return run_with_norms_at_both(llama, block, stream);
    case MODEL_NORM_ONCE:
        return run_side_by_side(llama, block, stream);
    }
    g_assert_not_reached();
}

/* What a block is given beside the stream, from what a checkpoint lets go of last. */
static unsigned block_arguments(const ModelLlama *llama, const ModelLlamaBlock *block,
                                uint32_t *ret_arguments) {
    const ModelRotary *rotary = model_llama_rotary_of(llama, block);
    uint32_t mask = model_llama_mask_of(llama, block);
    bool is_before = llama->positions_first;
    uint32_t all[] = {is_before ? PLAN_NONE : llama->positions, rotary->cosines, rotary->sines,
                      is_before ? llama->positions : PLAN_NONE, mask};
    unsigned n = model_llama_keep_given(all, G_N_ELEMENTS(all));
    memcpy(ret_arguments, all, n * sizeof(all[0]));
    return n;
}

ModelStream model_llama_run_block(const ModelLlama *llama, const ModelLlamaBlock *block,
                                  bool is_first, ModelStream stream) {
    const ModelWalk *w = &llama->between;
    bool in_parts = w->graph->now.in_parts;
    w->graph->now.in_parts = in_parts && block->has_experts;
    model_begin_block(w);
    uint32_t others[MODEL_MOST_OTHERS];
    unsigned n = block_arguments(llama, block, others);
    model_enter_block(w, block->module, stream, others, n);
    if (w->graph->shared.whole_ends && plan_graph_cuts_tokens(w->graph) && is_first) {
        PlanGraphTokens tokens = model_tokens_between(&llama->walk);
        stream.a = plan_graph_shared_own(w->graph, stream.a, &tokens);
    }
    uint32_t given = stream.a;
    stream = run_in_order(llama, block, stream);
    if (llama->rotary.factors_widened && w->graph->units.modules && w->graph->dtype != PLAN_FP32) {
        /* casts of the tables go when the block has returned, and before who called forgets x */
        plan_graph_let_go_after(w->graph, given, model_llama_rotary_of(llama, block)->cosines);
    }
    model_end_block(w);
    w->graph->now.in_parts = in_parts;
    return stream;
}
