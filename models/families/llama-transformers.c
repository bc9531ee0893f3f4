/* models/families/llama-transformers.c - a network of the Llama shape by Hugging Face's own
 * modules: LlamaForCausalLM and its kin. What these do whatever the network is in transformers.h.
 */
#include "models/families/llama.h"
#include "models/families/transformers.h"
#include "models/layers/window.h"

/* Tables of the blocks that look back all the way, of which there may be none, and of the others.
 */
static unsigned rotaries_of(ModelLlama *llama, const ModelNetwork *network,
                            ModelRotary **ret_rotaries) {
    bool has_others = llama->has_local_rotary, has_one = network->layers >= network->global_every;
    unsigned n = 0;
    if (has_one || !has_others) {
        ret_rotaries[n++] = &llama->rotary;
    }
    if (has_others) {
        ret_rotaries[n++] = &llama->local_rotary;
    }
    return n;
}

static uint32_t declare_rotary(ModelLlama *llama, const ModelNetwork *network, uint32_t model) {
    uint32_t module =
        plan_graph_module(llama->walk.graph, model, "rotary_emb", "RotaryEmbedding", false);
    ModelRotary *rotaries[2];
    unsigned n = rotaries_of(llama, network, rotaries);
    for (unsigned i = 0; i < n; i++) {
        bool is_local = rotaries[i] == &llama->local_rotary;
        model_transformers_frequencies(&llama->walk, rotaries[i],
                                       model_rotary_part(network, llama->head_dim),
                                       is_local ? network->local_rope_base : network->rope_base);
    }
    return module;
}

/* By kinds of blocks. */
static void make_tables(ModelLlama *llama, const ModelNetwork *network, uint32_t module,
                        uint32_t embedded) {
    ModelRotary *rotaries[2];
    unsigned n = rotaries_of(llama, network, rotaries);
    for (unsigned i = 0; i < n; i++) {
        model_transformers_tables(&llama->walk, module, embedded, llama->positions, rotaries[i]);
    }
}

/* Of scores in memory both are numbers, and there whether a sequence reaches the window or not. */
static void make_masks(ModelLlama *llama, const ModelNetwork *network, uint32_t embedded) {
    const ModelWalk *w = &llama->walk;
    if (!llama->in_memory) {
        model_llama_make_mask(llama);
        return;
    }
    uint32_t used = plan_graph_stand_in(w->graph, embedded);
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, used)->dtype;
    llama->causal = model_eager_mask(w, 0, dtype);
    llama->window = network->window;
    llama->mask = model_eager_mask(w, network->window, dtype);
    llama->is_masked = true;
}

/* gpt-oss has masks in its first variable and embeddings, of which they are made, in the next. */
static uint32_t let_go_of_masks_first(const ModelLlama *llama, uint32_t embedded) {
    PlanGraph *graph = llama->walk.graph;
    plan_graph_let_go_after(graph, llama->causal, llama->positions);
    plan_graph_let_go_after(graph, llama->mask, llama->causal);
    plan_graph_let_go_after(graph, embedded, llama->mask);
    return embedded;
}

/* Each attention's sinks are made behind its layers, though it names them before those. */
static void make_sinks_late(const ModelLlama *llama, const ModelLlamaBlock *blocks, uint64_t n) {
    const PlanGraph *graph = llama->walk.graph;
    for (uint32_t p = 0; p < graph->parameters.len; p++) {
        g_array_append_val(graph->made, p);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t sinks = plan_graph_value_at(graph, blocks[i].sinks)->parameter,
                 last = plan_graph_value_at(graph, blocks[i].o.bias)->parameter;
        g_array_remove_index(graph->made, sinks);
        g_array_insert_val(graph->made, last, sinks);
    }
}

/* What forward's variables hold, in the order in which they go when it returns. Many have positions
 * and embeddings in a dictionary, too, of what masks are made of; and those of two kinds of blocks
 * the masks in another before that. */
static void let_go_of_variables(ModelLlama *llama, const ModelNetwork *network, uint32_t embedded) {
    PlanGraph *graph = llama->walk.graph;
    bool is_dense_qwen = !llama->experts.n && !llama->rotary.is_paired &&
                         (llama->qkv_bias || llama->qk_norm == MODEL_QK_NORM_HEAD);
    ModelRotary *rotaries[2];
    unsigned n = rotaries_of(llama, network, rotaries);
    uint32_t before = embedded;
    if (llama->has_sinks) {
        before = let_go_of_masks_first(llama, embedded);
    } else if (is_dense_qwen || network->no_rope_every || network->global_every) {
        plan_graph_let_go_after(graph, llama->positions, embedded);
    }
    if (llama->is_masked && !llama->has_sinks) {
        bool are_two = network->global_every;
        plan_graph_let_go_after(graph, are_two ? embedded : llama->mask,
                                are_two ? llama->mask : embedded);
        if (llama->causal != PLAN_NONE) {
            plan_graph_let_go_after(graph, llama->mask, llama->causal);
        }
    }
    if (network->global_every && !llama->has_sinks) {
        before = llama->positions;
    }
    for (unsigned i = 0; i < n; i++) {
        plan_graph_let_go_after(graph, rotaries[i]->sines, before);
        plan_graph_let_go_after(graph, rotaries[i]->cosines, rotaries[i]->sines);
        before = rotaries[i]->cosines;
    }
}

static uint32_t embed_as_transformers(const ModelLlama *llama, const ModelLayer *embed,
                                      uint32_t scale, uint32_t tokens) {
    return scale == PLAN_NONE
               ? model_llama_scale_embeddings(llama, model_run_table(&llama->walk, embed, tokens,
                                                                     llama->walk.batch,
                                                                     llama->vocab_of_table))
               : model_transformers_scaled_embedding(&llama->walk, embed, scale, tokens,
                                                     llama->vocab);
}

/* LlamaForCausalLM, in whose module "model" is all but the head. */
void model_llama_walk_transformers(ModelLlama *llama, const ModelNetwork *network) {
    const ModelWalk *w = &llama->walk;
    PlanGraph *graph = w->graph;
    model_transformers_begin(w);
    uint32_t root = model_llama_declare_module(llama, PLAN_NONE, "", "ForCausalLM", NULL);
    uint32_t model = model_llama_declare_module(llama, root, "model", "Model", NULL);
    ModelLayer embed = model_embedding(w, model, llama->names->embed, llama->vocab, w->width);
    uint32_t scale = w->norms_from_one ? plan_graph_number(graph, llama->embed_scale) : PLAN_NONE;
    g_autofree ModelLlamaBlock *blocks =
        model_llama_declare_blocks(llama, network, model, 0, network->layers);
    ModelLayer norm = model_rmsnorm(w, model, "norm");
    uint32_t rotary = declare_rotary(llama, network, model);
    ModelLayer head = model_llama_declare_head(llama, network, root, &embed);
    if (llama->has_sinks) {
        make_sinks_late(llama, blocks, network->layers);
    }
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);

    plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
    plan_graph_enter(graph, model, &tokens, 1);
    uint32_t embedded = embed_as_transformers(llama, &embed, scale, tokens);
    ModelStream stream = {embedded, PLAN_NONE};
    plan_graph_hold(graph, embedded);
    llama->positions = model_transformers_positions(w);
    make_masks(llama, network, embedded);
    make_tables(llama, network, rotary, embedded);
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = model_llama_run_block(llama, &blocks[i], i == 0, stream);
    }
    uint32_t x, normed = model_run_last_norm(w, &norm, stream, llama->norm_eps, &x);
    let_go_of_variables(llama, network, embedded);
    plan_graph_leave(graph, &normed, 1);
    plan_graph_hold(graph, normed);
    uint32_t logits =
        model_llama_scale_logits(llama, model_run_linear(w, &head, normed, llama->vocab, w->width));
    logits = model_run_capped(w, logits, w->rows * llama->vocab, llama->logits_cap);
    (model_transformers_makes_loss(w) ? model_transformers_end : model_end)(w, root, logits,
                                                                            targets, llama->vocab);
}
