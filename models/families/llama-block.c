#include "models/families/latent.h"

#include <string.h>

/* What a norm of q or k takes for a row. */
static uint64_t qk_norm_width(const ModelLlama *llama, uint64_t heads) {
    return llama->head_dim * (llama->qk_norm == MODEL_QK_NORM_HEAD ? 1 : heads);
}

uint64_t model_llama_joined_width(const ModelLlama *llama) {
    return (llama->heads + 2 * llama->kv_heads) * llama->head_dim;
}

void model_llama_share_out(const ModelLlama *llama, const ModelLayer *layer, PlanShare share) {
    if (llama->walk.graph->shared.tensor > 1) {
        plan_graph_share_out(llama->walk.graph, layer->weight, share);
    }
}

static void share_out_block(const ModelLlama *llama, const ModelLlamaBlock *block) {
    const ModelLayer *columns[] = {&block->o, &block->down};
    const ModelLayer *rows[] = {&block->q, &block->k, &block->v, &block->gate, &block->up};
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        model_llama_share_out(llama, columns[i], PLAN_SHARE_COLUMNS);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        model_llama_share_out(llama, rows[i], PLAN_SHARE_ROWS);
    }
}

static char *class_of(const ModelLlama *llama, const char *transformers_name,
                      const char *own_name) {
    return llama->transformers ? g_strconcat(llama->transformers, transformers_name, NULL)
                               : g_strdup(own_name);
}

uint32_t model_llama_declare_module(const ModelLlama *llama, uint32_t parent, const char *name,
                                    const char *transformers_class, const char *own_class) {
    g_autofree char *class_name = class_of(llama, transformers_class, own_class);
    return plan_graph_module(llama->walk.graph, parent, name, class_name, false);
}

static void declare_attention(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    if (llama->latent.kv_rank) {
        model_latent_declare(llama, block);
        return;
    }
    const ModelLlamaNames *names = llama->names;
    uint64_t inner = llama->heads * llama->head_dim, kv = llama->kv_heads * llama->head_dim;
    block->attn = model_llama_declare_module(llama, block->module, names->attn, "Attention",
                                             "LlamaAttention");
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
        block->o = model_linear(w, block->attn, names->o, w->width, inner, false);
    }
    if (llama->qk_norm != MODEL_QK_NORM_NONE) {
        block->q_norm =
            model_rmsnorm_of(w, block->attn, "q_norm", qk_norm_width(llama, llama->heads));
        block->k_norm =
            model_rmsnorm_of(w, block->attn, "k_norm", qk_norm_width(llama, llama->kv_heads));
    }
}

static void declare_hidden_layer(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    const ModelLlamaNames *names = llama->names;
    if (block->has_experts) {
        block->experts = model_experts_declare(w, &llama->experts, block->module, names->mlp);
        return;
    }
    const char *class_name = llama->gate != MODEL_GATE_SILU ? "GeGlu"
                             : llama->gate_up_joined        ? "JoinedSwiGlu"
                                                            : "SwiGlu";
    block->mlp = model_llama_declare_module(llama, block->module, names->mlp, "MLP", class_name);
    if (llama->gate_up_joined) {
        block->gate_up =
            model_linear(w, block->mlp, names->gate_up, 2 * llama->ffn, w->width, false);
    } else {
        block->gate = model_linear(w, block->mlp, names->gate, llama->ffn, w->width, false);
        block->up = model_linear(w, block->mlp, names->up, llama->ffn, w->width, false);
    }
    block->down = model_linear(w, block->mlp, names->down, w->width, llama->ffn, false);
    const char *act = llama->gate_up_joined ? "activation_fn" : "act_fn"; /* Phi-3's; others' */
    block->act = llama->transformers
                     ? plan_graph_module(w->graph, block->mlp, act, "SiLUActivation", false)
                     : PLAN_NONE;
}

/* transformers registers the norms last. */
ModelLlamaBlock model_llama_declare_block(const ModelLlama *llama, uint32_t parent,
                                          uint64_t index) {
    const ModelWalk *w = &llama->walk;
    const ModelLlamaNames *names = llama->names;
    g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, index);
    g_autofree char *class_name = class_of(llama, "DecoderLayer", "LlamaBlock");
    ModelLlamaBlock block = {.module = plan_graph_module(w->graph, parent, name, class_name, true),
                             .has_experts = llama->experts.n && index >= llama->dense_layers};
    plan_graph_at(w->graph->modules, PlanGraphModule, block.module)->is_program =
        !block.has_experts;
    if (llama->transformers) {
        declare_attention(llama, &block);
        declare_hidden_layer(llama, &block);
        block.norm_1 = model_rmsnorm(w, block.module, names->norm_1);
        block.norm_2 = model_rmsnorm(w, block.module, names->norm_2);
        return block;
    }
    block.norm_1 = model_rmsnorm(w, block.module, names->norm_1);
    declare_attention(llama, &block);
    bool at_both = llama->norm_at == MODEL_NORM_BOTH;
    if (at_both) {
        block.after_1 = model_rmsnorm(w, block.module, "after_1");
    }
    block.norm_2 = model_rmsnorm(w, block.module, names->norm_2);
    if (at_both) {
        block.after_2 = model_rmsnorm(w, block.module, "after_2");
    }
    declare_hidden_layer(llama, &block);
    if (w->graph->shared.tensor > 1 && !llama->experts.n) {
        share_out_block(llama, &block);
    }
    return block;
}

PlanGraphTokens model_llama_tokens_between(const ModelLlama *llama) {
    const ModelWalk *w = &llama->between;
    return (PlanGraphTokens){w->batch, w->rows / w->batch, w->width};
}

uint32_t model_llama_gather_tokens(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    if (!plan_graph_cuts_tokens(graph)) {
        return x;
    }
    uint32_t gathered = plan_graph_shared_gather(graph, x, &tokens);
    plan_graph_hold_argument(graph, gathered);
    plan_graph_let_go_after(graph, x, gathered);
    return gathered;
}

uint32_t model_llama_read_by_columns(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return graph->shared.whole_tokens ? plan_graph_shared_read(graph, x, &tokens) : x;
}

/* What a further layer reads that reads the same: where each gathers for itself a compiler finds
 * that done, but not what backward scatters of each. */
static uint32_t gather_again(const ModelLlama *llama, uint32_t own, uint32_t gathered) {
    if (llama->walk.graph->shared.whole_tokens) {
        return model_llama_read_by_columns(llama, gathered);
    }
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return graph->shared.whole_ends ? plan_graph_shared_again(graph, own, gathered, &tokens)
                                    : gathered;
}

uint32_t model_llama_join_ranks(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return (graph->shared.whole_tokens ? plan_graph_shared_sum
                                       : plan_graph_shared_scatter)(graph, x, &tokens);
}

/* A layer whose columns are shared, if they are. Its call adds up the ranks' results, and holds
 * what it was given until then. */
static uint32_t run_by_rows(const ModelLlama *llama, const ModelLayer *layer, uint32_t x,
                            uint64_t in) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t y = model_run_linear(&llama->walk, layer, x, llama->walk.width, in);
    if (graph->shared.tensor == 1) {
        return y;
    }
    uint32_t own = model_llama_join_ranks(llama, y);
    plan_graph_keep(graph, x);
    plan_graph_let_go_after(graph, x, y);
    return own;
}

/* From a token's heads, as its layer gives them, to the next token's. */
static uint64_t token_stride(const ModelLlama *llama, uint64_t heads) {
    return llama->qkv == MODEL_QKV_APART ? heads * llama->head_dim
                                         : model_llama_joined_width(llama);
}

/* The layer's rows, seen head by head, and normalized before that or behind it. */
static uint32_t run_q_or_k(const ModelLlama *llama, const ModelAttention *attention,
                           const ModelLayer *layer, const ModelLayer *norm, uint32_t x,
                           char which) {
    const ModelWalk *w = &llama->walk;
    uint64_t heads = which == 'q' ? llama->heads : llama->kv_heads, out = heads * llama->head_dim;
    if (llama->qk_norm == MODEL_QK_NORM_NONE) {
        return model_run_heads_of(w, attention, layer, x, out, w->width, which);
    }
    uint32_t y = model_run_linear(w, layer, x, out, w->width);
    if (llama->qk_norm == MODEL_QK_NORM_WIDTH) {
        y = model_run_rmsnorm_of(w, norm, y, w->rows, out, llama->norm_eps);
    }
    y = model_run_heads(w, attention, y, which);
    return llama->qk_norm == MODEL_QK_NORM_HEAD
               ? model_run_rmsnorm_of(w, norm, y, w->rows * heads, llama->head_dim, llama->norm_eps)
               : y;
}

typedef struct {
    uint32_t q, k, v;
} Heads;

/* By a layer each. */
static Heads run_layers(const ModelLlama *llama, const ModelLlamaBlock *block,
                        const ModelAttention *attention, uint32_t own, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint32_t read = model_llama_read_by_columns(llama, x);
    uint32_t q = run_q_or_k(llama, attention, &block->q, &block->q_norm, read, 'q');
    uint32_t k =
        run_q_or_k(llama, attention, &block->k, &block->k_norm, gather_again(llama, own, x), 'k');
    uint32_t v = model_run_linear(w, &block->v, gather_again(llama, own, x),
                                  llama->kv_heads * llama->head_dim, w->width);
    return (Heads){q, k, model_run_heads(w, attention, v, 'v')};
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

/* PLAN_NONE: it has none, or its kernel knows windows. */
static uint32_t mask_of(const ModelLlama *llama, const ModelLlamaBlock *block) {
    return slides(llama, block) ? llama->mask : PLAN_NONE;
}

static const ModelRotary *rotary_of(const ModelLlama *llama, const ModelLlamaBlock *block) {
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

/* Moves those that there are to the front; returns how many. */
static unsigned keep_given(uint32_t *arguments, unsigned n) {
    unsigned n_given = 0;
    for (unsigned i = 0; i < n; i++) {
        if (arguments[i] != PLAN_NONE) {
            arguments[n_given++] = arguments[i];
        }
    }
    return n_given;
}

/* From what a checkpoint lets go of last: transformers gives attention all by name, and a
 * dictionary lets go of what was named first. */
static void enter_attention(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelRotary *rotary = rotary_of(llama, block);
    bool by_name = llama->positions != PLAN_NONE;
    uint32_t all[] = {by_name ? PLAN_NONE : x, rotary->cosines,       rotary->sines,
                      llama->positions,        mask_of(llama, block), by_name ? x : PLAN_NONE};
    plan_graph_enter(llama->walk.graph, block->attn, all, keep_given(all, G_N_ELEMENTS(all)));
}

/* A copy, in the dtype of what is none, which is k's: under autocast wider than v's. */
static uint32_t join_to_none(const ModelWalk *w, uint32_t x, uint32_t k) {
    PlanDtype dtype = (PlanDtype)plan_graph_at(w->graph->values, PlanGraphValue, k)->dtype;
    uint64_t n = plan_graph_at(w->graph->values, PlanGraphValue, x)->elements;
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

static uint32_t run_attention(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (llama->latent.kv_rank) {
        return model_latent_run(llama, block, x);
    }
    uint64_t inner = llama->heads * llama->head_dim;
    model_begin_part(w);
    bool joins = block->turns && llama->rotary.ends_joined;
    bool together = block->turns && llama->rotary.is_together && !w->graph->now.fused;
    uint64_t k_inner = llama->kv_heads * llama->head_dim; /* what is turned lies close together */
    ModelAttention attention = {
        .heads = llama->heads,
        .kv_heads = llama->kv_heads,
        .head_dim = llama->head_dim,
        .q_stride = block->turns ? inner : token_stride(llama, llama->heads),
        .k_stride = block->turns ? k_inner : token_stride(llama, llama->kv_heads),
        .v_stride = token_stride(llama, llama->kv_heads),
        .scale = llama->attention_scale,
        .causal = true,
        .in_memory = llama->in_memory,
        .wide_softmax = llama->wide_softmax,
        .groups_alone = llama->kv_repeated,
        .k_inside = llama->qkv != MODEL_QKV_APART,
        .joined_apart = joins && !w->graph->now.fused,
        .norms_read = norms_read_gradients(llama),
        .v_copied = llama->cache == MODEL_CACHE_COPIED,
        .turned_together = joins || together || turns_pairs_apart(llama, block),
        .bias = PLAN_NONE,
        .window = slides(llama, block) ? llama->window : 0,
        .ring = w->graph->shared.context > 1,
        .mask = mask_of(llama, block)};
    const ModelRotary *rotary = rotary_of(llama, block);
    enter_attention(llama, block, x);
    uint32_t own = x;
    x = model_llama_gather_tokens(llama, x);
    Heads h = llama->qkv == MODEL_QKV_APART ? run_layers(llama, block, &attention, own, x)
                                            : run_joined_layer(llama, block, &attention, x);
    if (block->turns) {
        model_rotate(w, rotary, &attention, &h.q, &h.k, h.v);
    }
    if (llama->cache) {
        return_keys(llama, &h);
    }
    if (attention.groups_alone) {
        repeat_k_and_v(llama, &attention, &h);
    }
    if (!w->graph->now.fused) {
        plan_graph_hold(w->graph, h.q);
        plan_graph_hold(w->graph, h.k);
        plan_graph_hold(w->graph, h.v);
    }
    uint32_t o = model_run_attention(w, &attention, h.q, h.k, h.v);
    uint32_t y = run_by_rows(llama, &block->o, o, inner);
    plan_graph_leave(w->graph, &y, 1);
    model_end_part(w);
    return y;
}

/* What opens the hidden layer; SiLU of transformers is a module. */
static uint32_t run_gate(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    static const PlanOpKind kinds[] = {[MODEL_GATE_SILU] = PLAN_OP_SILU,
                                       [MODEL_GATE_GELU_TANH] = PLAN_OP_GELU_TANH,
                                       [MODEL_GATE_GELU_ERF] = PLAN_OP_GELU_ERF};
    const ModelWalk *w = &llama->walk;
    uint64_t n = w->rows * llama->ffn;
    if (block->act == PLAN_NONE) {
        return model_run_elementwise(w, kinds[llama->gate], x, PLAN_NONE, n);
    }
    plan_graph_enter(w->graph, block->act, &x, 1);
    uint32_t y = model_run_elementwise(w, kinds[llama->gate], x, PLAN_NONE, n);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* One layer gives both. Its rows are Python's, its result two matrices one behind the other, each
 * as if a layer of its own had made it: the same bytes, and no kernel has to know of wider rows. */
static uint32_t run_joined_hidden(const ModelLlama *llama, const ModelLlamaBlock *block,
                                  uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t ffn = llama->ffn, n = w->rows * ffn;
    uint32_t parts[2];
    uint32_t both = model_run_linear_parts(w, &block->gate_up, x, 2 * ffn, w->width, 2);
    plan_graph_parts(w->graph, both, w->rows, (uint64_t[]){ffn, ffn}, 2, parts);
    uint32_t open = run_gate(llama, block, parts[0]);
    uint32_t hidden = model_run_elementwise(w, PLAN_OP_MUL, parts[1], open, n);
    plan_graph_hold(w->graph, hidden);
    plan_graph_hold(w->graph, parts[0]);
    plan_graph_let_go_after(w->graph, parts[0], hidden);
    return hidden;
}

/* By two layers; own: what x was gathered of. */
static uint32_t run_hidden(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t own,
                           uint32_t x) {
    const ModelWalk *w = &llama->walk;
    bool fused = w->graph->now.fused;
    uint64_t n = w->rows * llama->ffn;
    uint32_t gate = model_run_linear(w, &block->gate, model_llama_read_by_columns(llama, x),
                                     llama->ffn, w->width);
    uint32_t open = fused ? gate : run_gate(llama, block, gate);
    uint32_t up =
        model_run_linear(w, &block->up, gather_again(llama, own, x), llama->ffn, w->width);
    return model_run_elementwise(w, fused ? PLAN_OP_SWIGLU : PLAN_OP_MUL, open, up, n);
}

static uint32_t run_mlp(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (block->has_experts) {
        return model_experts_run(w, &llama->experts, &block->experts, x);
    }
    uint32_t own = x;
    plan_graph_enter(w->graph, block->mlp, &x, 1);
    x = model_llama_gather_tokens(llama, x);
    uint32_t hidden = llama->gate_up_joined ? run_joined_hidden(llama, block, x)
                                            : run_hidden(llama, block, own, x);
    uint32_t y = run_by_rows(llama, &block->down, hidden, llama->ffn);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* A block's two sums, the last of which the next block may make. */
static ModelStream run_with_norms_before(const ModelLlama *llama, const ModelLlamaBlock *block,
                                         ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t x, normed = model_run_stream_norm(w, &block->norm_1, stream, llama->norm_eps, &x);
    uint32_t a = run_attention(llama, block, normed);
    normed = model_run_add_norm(w, &block->norm_2, x, a, llama->norm_eps, &x);
    uint32_t m = run_mlp(llama, block, normed);
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
    uint32_t a = run_attention(llama, block,
                               model_run_rmsnorm(w, &block->norm_1, stream.a, llama->norm_eps));
    uint32_t x = add_scaled(llama, stream.a, a);
    uint32_t m = run_mlp(llama, block, model_run_rmsnorm(w, &block->norm_2, x, llama->norm_eps));
    uint32_t y = add_scaled(llama, x, m);
    plan_graph_leave(w->graph, &y, 1);
    return (ModelStream){y, PLAN_NONE};
}

/* What comes in is a sum already: no norm could make it. */
static ModelStream run_with_norms_after(const ModelLlama *llama, const ModelLlamaBlock *block,
                                        ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = run_attention(llama, block, stream.a);
    uint32_t x =
        model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->norm_1, a, llama->norm_eps));
    uint32_t m = run_mlp(llama, block, x);
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->norm_2, m, llama->norm_eps));
}

/* Before and behind: what a block adds is normed once more. */
static ModelStream run_with_norms_at_both(const ModelLlama *llama, const ModelLlamaBlock *block,
                                          ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = run_attention(llama, block,
                               model_run_rmsnorm(w, &block->norm_1, stream.a, llama->norm_eps));
    uint32_t x =
        model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->after_1, a, llama->norm_eps));
    uint32_t m = run_mlp(llama, block, model_run_rmsnorm(w, &block->norm_2, x, llama->norm_eps));
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->after_2, m, llama->norm_eps));
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
    }
    g_assert_not_reached();
}

/* What a block is given beside the stream, from what a checkpoint lets go of last: Mistral's,
 * Granite's, Phi-3's and those with experts name positions before the tables, Llama's behind
 * them. */
static unsigned block_arguments(const ModelLlama *llama, const ModelLlamaBlock *block,
                                uint32_t *ret_arguments) {
    const ModelRotary *rotary = rotary_of(llama, block);
    uint32_t mask = mask_of(llama, block);
    bool is_before =
        mask != PLAN_NONE || llama->experts.n || llama->residual_scale || llama->gate_up_joined;
    uint32_t all[] = {is_before ? PLAN_NONE : llama->positions, rotary->cosines, rotary->sines,
                      is_before ? llama->positions : PLAN_NONE, mask};
    unsigned n = keep_given(all, G_N_ELEMENTS(all));
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
        PlanGraphTokens tokens = model_llama_tokens_between(llama);
        stream.a = plan_graph_shared_own(w->graph, stream.a, &tokens);
    }
    stream = run_in_order(llama, block, stream);
    model_end_block(w);
    w->graph->now.in_parts = in_parts;
    return stream;
}
