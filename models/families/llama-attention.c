/* models/families/llama-attention.c - attention of a Llama's block. */
#include "models/families/latent.h"

/* What a norm of q or k takes for a row. */
static uint64_t qk_norm_width(const ModelLlama *llama, uint64_t heads) {
    return llama->head_dim * (llama->qk_norm == MODEL_QK_NORM_HEAD ? 1 : heads);
}

uint64_t model_llama_joined_width(const ModelLlama *llama) {
    return (llama->heads + 2 * llama->kv_heads) * llama->head_dim;
}

void model_llama_declare_attention(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    if (llama->latent.kv_rank) {
        model_latent_declare(llama, block);
        return;
    }
    const ModelLlamaNames *names = llama->names;
    uint64_t inner = llama->heads * llama->head_dim, kv = llama->kv_heads * llama->head_dim;
    block->attn = model_llama_declare_module(llama, block->module, names->attn, "Attention",
                                             "LlamaAttention");
    if (llama->has_sinks) {
        int64_t heads = (int64_t)llama->heads;
        block->sinks =
            plan_graph_parameter(w->graph, block->attn, "sinks", 1, &heads, PLAN_INIT_NORMAL, 0.02);
    }
    bool is_o_first = llama->transformers && llama->qkv != MODEL_QKV_APART; /* Phi-3's */
    if (is_o_first) {
        block->o = model_linear(w, block->attn, names->o, w->width, inner, false);
    }
    if (llama->qkv == MODEL_QKV_APART) {
        block->q = model_linear(w, block->attn, names->q, inner, w->width, llama->qkv_bias);
        block->k = model_linear(w, block->attn, names->k, kv, w->width, llama->qkv_bias);
        block->v = model_linear(w, block->attn, names->v, kv, w->width, llama->qkv_bias);
    } else {
        block->qkv = model_linear(w, block->attn, names->qkv, model_llama_joined_width(llama),
                                  w->width, llama->qkv_bias);
    }
    if (!is_o_first) {
        block->o = model_linear(w, block->attn, names->o, w->width, inner, llama->has_sinks);
    }
    if (llama->qk_norm != MODEL_QK_NORM_NONE) {
        block->q_norm =
            model_rmsnorm_of(w, block->attn, "q_norm", qk_norm_width(llama, llama->heads));
        block->k_norm =
            model_rmsnorm_of(w, block->attn, "k_norm", qk_norm_width(llama, llama->kv_heads));
    }
}

/* From a token's heads, as its layer gives them, to the next token's. */
static uint64_t token_stride(const ModelLlama *llama, uint64_t heads) {
    return llama->qkv == MODEL_QKV_APART ? heads * llama->head_dim
                                         : model_llama_joined_width(llama);
}

/* Each head of q or k by itself. */
static uint32_t norm_heads(const ModelLlama *llama, const ModelLayer *norm, uint32_t x,
                           uint64_t heads) {
    const ModelWalk *w = &llama->walk;
    return llama->qk_norm == MODEL_QK_NORM_HEAD
               ? model_run_rmsnorm_of(w, norm, x, w->rows * heads, llama->head_dim, llama->norm_eps)
               : x;
}

/* The layer's rows, seen head by head, and normalized before that or behind it. */
static uint32_t run_q_or_k(const ModelLlama *llama, const ModelAttention *attention,
                           const ModelLayer *layer, const ModelLayer *norm, uint32_t x,
                           char which) {
    const ModelWalk *w = &llama->walk;
    uint64_t heads = which == 'q' ? llama->heads : llama->kv_heads, out = heads * llama->head_dim;
    if (llama->qk_norm == MODEL_QK_NORM_NONE) {
        return model_run_heads_of(w, attention, layer, x, out, which);
    }
    uint32_t y = model_run_linear(w, layer, x, out, w->width);
    if (llama->qk_norm == MODEL_QK_NORM_WIDTH) {
        y = model_run_rmsnorm_of(w, norm, y, w->rows, out, llama->norm_eps);
    }
    y = model_run_heads(w, attention, y, which);
    return llama->qk_norms_last ? y : norm_heads(llama, norm, y, heads);
}

typedef struct {
    uint32_t q, k, v;
} Heads;

/* As OLMo has it, and with norms OLMo 2: all three rows are there before heads are seen. */
static Heads run_layers_before_heads(const ModelLlama *llama, const ModelLlamaBlock *block,
                                     const ModelAttention *attention, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t q_width = llama->heads * llama->head_dim, width = llama->kv_heads * llama->head_dim;
    uint32_t q = model_run_linear(w, &block->q, x, q_width, w->width);
    bool is_normed = llama->qk_norm == MODEL_QK_NORM_WIDTH;
    q = is_normed ? model_run_rmsnorm_of(w, &block->q_norm, q, w->rows, q_width, llama->norm_eps)
                  : q;
    uint32_t k = model_run_linear(w, &block->k, x, width, w->width);
    k = is_normed ? model_run_rmsnorm_of(w, &block->k_norm, k, w->rows, width, llama->norm_eps) : k;
    uint32_t v = model_run_linear(w, &block->v, x, width, w->width);
    q = model_run_heads(w, attention, q, 'q');
    k = model_run_heads(w, attention, k, 'k');
    return (Heads){q, k, model_run_heads(w, attention, v, 'v')};
}

/* By a layer each. */
static Heads run_layers(const ModelLlama *llama, const ModelLlamaBlock *block,
                        const ModelAttention *attention, uint32_t own, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (llama->transformers && (llama->qk_norm == MODEL_QK_NORM_WIDTH || w->norms_bare)) {
        return run_layers_before_heads(llama, block, attention, x);
    }
    uint32_t read = model_read_by_columns(&llama->walk, x);
    uint32_t q = run_q_or_k(llama, attention, &block->q, &block->q_norm, read, 'q');
    uint32_t k = run_q_or_k(llama, attention, &block->k, &block->k_norm,
                            model_gather_again(&llama->walk, own, x), 'k');
    uint32_t v = model_run_linear(w, &block->v, model_gather_again(&llama->walk, own, x),
                                  llama->kv_heads * llama->head_dim, w->width);
    v = model_run_heads(w, attention, v, 'v');
    if (llama->qk_norms_last) {
        q = norm_heads(llama, &block->q_norm, q, llama->heads);
        k = norm_heads(llama, &block->k_norm, k, llama->kv_heads);
    }
    return (Heads){q, k, v};
}

/* By one layer, of whose rows they are parts. */
static Heads run_joined_layer(const ModelLlama *llama, const ModelLlamaBlock *block,
                              const ModelAttention *attention, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t q = llama->heads * llama->head_dim, kv = llama->kv_heads * llama->head_dim;
    uint64_t cols[] = {q, kv, kv}, width = model_llama_joined_width(llama), from = 0;
    uint32_t parts[G_N_ELEMENTS(cols)];
    uint32_t qkv = model_run_linear(w, &block->qkv, x, width, w->width);
    if (llama->qkv == MODEL_QKV_JOINED) {
        plan_graph_split(w->graph, qkv, w->rows, cols, G_N_ELEMENTS(cols), parts);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cols); from += cols[i++]) {
        if (llama->qkv == MODEL_QKV_SLICED) {
            parts[i] = plan_graph_slice(w->graph, qkv, w->rows, width, from, cols[i]);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        parts[i] = model_run_heads(w, attention, parts[i], "qkv"[i]);
    }
    return (Heads){parts[0], parts[1], parts[2]};
}

/* Each head of k and v for every query head of its group, in rows of tokens; attention then knows
 * no groups. */
static void repeat_k_and_v(const ModelLlama *llama, ModelAttention *attention, Heads *h) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t k = model_repeat_before(&llama->walk, attention, h->k, 'k');
    uint32_t v = model_repeat_before(&llama->walk, attention, h->v, 'v');
    if (model_shows_one_head(&llama->walk, attention)) {
        h->k = k;
        h->v = v;
        return;
    }
    plan_graph_keep(graph, h->k);
    plan_graph_let_go_after(graph, h->k, h->v);
    h->k = k;
    h->v = v;
    attention->kv_heads = attention->heads;
    attention->k_stride = attention->v_stride = attention->q_stride;
}

/* Whose attention has the window. */
static bool slides(const ModelLlama *llama, const ModelLlamaBlock *block) {
    return llama->window && block->is_local;
}

uint32_t model_llama_mask_of(const ModelLlama *llama, const ModelLlamaBlock *block) {
    return slides(llama, block) ? llama->mask : llama->causal;
}

const ModelRotary *model_llama_rotary_of(const ModelLlama *llama, const ModelLlamaBlock *block) {
    return block->is_local && llama->has_local_rotary ? &llama->local_rotary : &llama->rotary;
}

/* A norm's kernel in 16 bits reads gradients of q and k that come head by head as they are, and
 * leaves them as the layer before wants them. */
static bool norms_read_gradients(const ModelLlama *llama) {
    const PlanGraph *graph = llama->walk.graph;
    return llama->qk_norm == MODEL_QK_NORM_HEAD && !graph->kernels.rms_norm_of_ops &&
           graph->dtype != PLAN_FP32 && !graph->now.autocasts;
}

/* Pairs of complex numbers leave gradients head by head, which the layers before have to copy. */
static bool turns_pairs_apart(const ModelLlama *llama, const ModelLlamaBlock *block) {
    return block->turns && llama->rotary.is_complex && !norms_read_gradients(llama);
}

/* Starts with what a checkpoint releases last: transformers passes attention everything by keyword,
 * and a dict releases its first entry first. */
static void enter_attention(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelRotary *rotary = model_llama_rotary_of(llama, block);
    bool by_name = llama->positions != PLAN_NONE;
    uint32_t all[] = {
        by_name ? PLAN_NONE : x,           rotary->cosines,        rotary->sines, llama->positions,
        model_llama_mask_of(llama, block), by_name ? x : PLAN_NONE};
    plan_graph_enter(llama->walk.graph, block->attn, all,
                     model_llama_keep_given(all, G_N_ELEMENTS(all)));
}

/* A copy, in the dtype of what is none, which is k's: under autocast wider than v's. */
static uint32_t join_to_none(const ModelWalk *w, uint32_t x, uint32_t k) {
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, k)->dtype;
    uint64_t n = plan_graph_value_at(w->graph, x)->elements;
    return plan_graph_op(w->graph, PLAN_OP_JOIN_REST, (uint32_t[]){x, PLAN_NONE}, dtype, n,
                         (int64_t[]){(int64_t)n}, NULL);
}

/* As DynamicCache gives them back. */
static void copy_keys(const ModelWalk *w, Heads *h) {
    Heads made = *h;
    h->k = join_to_none(w, made.k, made.k);
    h->v = join_to_none(w, made.v, made.k);
    plan_graph_keep(w->graph, made.k);
    plan_graph_keep(w->graph, made.v);
    plan_graph_let_go_after(w->graph, made.k, h->v);
    plan_graph_let_go_after(w->graph, made.v, made.k);
}

/* The last is let go of first: of a tuple v, of transformers' cache k. */
static void return_keys(const ModelLlama *llama, Heads *h) {
    PlanGraph *graph = llama->walk.graph;
    if (llama->cache == MODEL_CACHE_COPIED) {
        copy_keys(&llama->walk, h);
    }
    plan_graph_return_value(graph, llama->transformers ? h->v : h->k);
    plan_graph_return_value(graph, llama->transformers ? h->k : h->v);
}

/* What is turned lies close together. */
static ModelAttention attention_of(const ModelLlama *llama, const ModelLlamaBlock *block) {
    uint32_t mask = model_llama_mask_of(llama, block);
    const PlanGraph *graph = llama->walk.graph;
    bool adds = llama->attention_cap || llama->has_sinks;
    bool joins = block->turns && (llama->rotary.ends_joined || llama->rotary.part);
    bool together =
        block->turns && model_llama_rotary_of(llama, block)->is_together && !graph->now.fused;
    return (ModelAttention){.heads = llama->heads,
                            .kv_heads = llama->kv_heads,
                            .head_dim = llama->head_dim,
                            .q_stride = block->turns ? llama->heads * llama->head_dim
                                                     : token_stride(llama, llama->heads),
                            .k_stride = block->turns ? llama->kv_heads * llama->head_dim
                                                     : token_stride(llama, llama->kv_heads),
                            .v_stride = token_stride(llama, llama->kv_heads),
                            .scale = llama->attention_scale,
                            .causal = true,
                            .in_memory = llama->in_memory,
                            .wide_softmax = llama->wide_softmax,
                            .groups_alone = llama->kv_repeated,
                            .k_inside = llama->qkv != MODEL_QKV_APART,
                            .joined_apart = joins && !graph->now.fused,
                            .norms_read = norms_read_gradients(llama),
                            .v_copied = llama->cache == MODEL_CACHE_COPIED,
                            .turned_together = joins || together || turns_pairs_apart(llama, block),
                            .bias = PLAN_NONE,
                            .window = slides(llama, block) ? llama->window : 0,
                            .ring = graph->shared.context > 1,
                            .added = adds ? mask : 0,
                            .cap = llama->attention_cap,
                            .sinks = block->sinks,
                            .mask = adds ? PLAN_NONE : mask};
}

/* own: what x was gathered of. */
static Heads run_heads(const ModelLlama *llama, const ModelLlamaBlock *block,
                       ModelAttention *attention, uint32_t own, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    Heads h = llama->qkv == MODEL_QKV_APART ? run_layers(llama, block, attention, own, x)
                                            : run_joined_layer(llama, block, attention, x);
    if (block->turns) {
        model_rotate(w, model_llama_rotary_of(llama, block), attention, &h.q, &h.k, h.v);
    } else if (llama->qk_norms_last) { /* v is older than the norms' results */
        plan_graph_let_go_after(w->graph, h.v, h.k);
    }
    if (llama->cache) {
        return_keys(llama, &h);
    }
    if (attention->groups_alone) {
        repeat_k_and_v(llama, attention, &h);
    }
    if (!w->graph->now.fused) {
        plan_graph_hold(w->graph, h.q);
        plan_graph_hold(w->graph, h.k);
        plan_graph_hold(w->graph, h.v);
    }
    return h;
}

uint32_t model_llama_run_attention(const ModelLlama *llama, const ModelLlamaBlock *block,
                                   uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (llama->latent.kv_rank) {
        return model_latent_run(llama, block, x);
    }
    model_begin_part(w);
    ModelAttention attention = attention_of(llama, block);
    enter_attention(llama, block, x);
    Heads h = run_heads(llama, block, &attention, x, model_gather_tokens(&llama->walk, x));
    uint32_t weights = PLAN_NONE;
    attention.weights = llama->transformers && llama->in_memory ? &weights : NULL;
    uint32_t o = model_run_attention(w, &attention, h.q, h.k, h.v);
    uint32_t y = model_run_by_rows(&llama->walk, &block->o, o, llama->heads * llama->head_dim);
    plan_graph_leave(w->graph, &y, 1);
    if (weights != PLAN_NONE && !llama->has_sinks) { /* the block has a name for them, too */
        plan_graph_hold(w->graph, weights);
    }
    *llama->weights = weights;
    model_end_part(w);
    return y;
}
