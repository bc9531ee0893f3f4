/* models/llama.c - decoder-only transformer of the Llama shape: RMSNorm, rotary embedding, SwiGLU,
 * grouped heads of k and v, no biases (but Qwen 2's of q, k and v); the head tied or not. Also
 * Qwen 3, which normalizes q and k, and OLMo 2, which does too and has its norms behind attention
 * and its hidden layer instead of before; and those whose hidden layers are experts (experts.h).
 *
 * Where ranks share the layers (plan->tensor; plan/autograd/shared.h) a rank has its part of heads,
 * hidden layer and vocabulary, and between the layers its part of each sequence.
 */
#include <math.h>

#include "models/experts.h"
#include "models/layers.h"
#include "models/transformers.h"
#include "models/window.h"

static const double EPS = 1e-5; /* rms_norm_eps of Llama 2 and 3 */

/* What modules are called. */
typedef struct {
    const char *embed, *attn, *q, *k, *v, *o, *mlp, *gate, *up, *down, *norm_1, *norm_2, *head;
} Names;

static const Names own_names = {.embed = "embed",
                                .attn = "attn",
                                .q = "q",
                                .k = "k",
                                .v = "v",
                                .o = "o",
                                .mlp = "mlp",
                                .gate = "gate",
                                .up = "up",
                                .down = "down",
                                .norm_1 = "norm_1",
                                .norm_2 = "norm_2",
                                .head = "head"};

static const Names transformers_names = {.embed = "embed_tokens",
                                         .attn = "self_attn",
                                         .q = "q_proj",
                                         .k = "k_proj",
                                         .v = "v_proj",
                                         .o = "o_proj",
                                         .mlp = "mlp",
                                         .gate = "gate_proj",
                                         .up = "up_proj",
                                         .down = "down_proj",
                                         .norm_1 = "input_layernorm",
                                         .norm_2 = "post_attention_layernorm",
                                         .head = "lm_head"};

typedef struct {
    ModelWalk walk;    /* inside of layers */
    ModelWalk between; /* the layers: this rank's part of the tokens */
    const Names *names;
    const char
        *transformers;  /* the class prefix of transformers' modules; NULL: they are our own */
    uint32_t positions; /* of transformers', which each block is given; PLAN_NONE */
    uint64_t heads, kv_heads, head_dim, ffn, vocab; /* this rank's */
    bool in_memory, wide_softmax, qkv_bias, kv_repeated, gate_up_joined;
    ModelNormAt norm_at;
    ModelGate gate;
    double embed_scale, attention_scale, residual_scale, logits_scale; /* 0: none */
    ModelQkv qkv;
    ModelQkNorm qk_norm;
    ModelExperts experts;             /* n 0: each block has one hidden layer */
    ModelRotary rotary, local_rotary; /* of blocks that look back all the way, and of others */
    bool has_local_rotary;
    uint64_t window; /* of these others, where a sequence reaches it; 0: none */
    bool is_masked;  /* attention is told of it by a mask ... */
    uint32_t mask;   /* ... which is this, once it is made; PLAN_NONE */
} Llama;

typedef struct {
    bool turns;                      /* q and k by their places */
    bool is_local;                   /* not of those that look back all the way */
    uint32_t module, attn, mlp, act; /* act PLAN_NONE: what opens the hidden layer is no module */
    ModelLayer after_1, after_2;     /* norms of their results, beside norms of what they get */
    ModelLayer norm_1, qkv, q, k, v, o, q_norm, k_norm, norm_2, gate_up, gate, up, down;
    ModelExpertLayer experts;
} Block;

/* What a norm of q or k takes for a row. */
static uint64_t qk_norm_width(const Llama *llama, uint64_t heads) {
    return llama->head_dim * (llama->qk_norm == MODEL_QK_NORM_HEAD ? 1 : heads);
}

/* What is in a row of the one layer of all three. */
static uint64_t joined_width(const Llama *llama) {
    return (llama->heads + 2 * llama->kv_heads) * llama->head_dim;
}

/* Its weight is one rank's part. */
static void share_out(const Llama *llama, const ModelLayer *layer, PlanShare share) {
    if (llama->walk.graph->tensor > 1) {
        plan_graph_share_out(llama->walk.graph, layer->weight, share);
    }
}

static void share_out_block(const Llama *llama, const Block *block) {
    const ModelLayer *columns[] = {&block->o, &block->down};
    const ModelLayer *rows[] = {&block->q, &block->k, &block->v, &block->gate, &block->up};
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        share_out(llama, columns[i], PLAN_SHARE_COLUMNS);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        share_out(llama, rows[i], PLAN_SHARE_ROWS);
    }
}

static char *class_of(const Llama *llama, const char *transformers_name, const char *own_name) {
    return llama->transformers ? g_strconcat(llama->transformers, transformers_name, NULL)
                               : g_strdup(own_name);
}

static uint32_t declare_module(const Llama *llama, uint32_t parent, const char *name,
                               const char *transformers_class, const char *own_class) {
    g_autofree char *class_name = class_of(llama, transformers_class, own_class);
    return plan_graph_module(llama->walk.graph, parent, name, class_name, false);
}

static void declare_attention(const Llama *llama, Block *block) {
    const ModelWalk *w = &llama->walk;
    const Names *names = llama->names;
    uint64_t inner = llama->heads * llama->head_dim, kv = llama->kv_heads * llama->head_dim;
    block->attn = declare_module(llama, block->module, names->attn, "Attention", "LlamaAttention");
    if (llama->qkv == MODEL_QKV_APART) {
        block->q = model_linear(w, block->attn, names->q, inner, w->width, llama->qkv_bias);
        block->k = model_linear(w, block->attn, names->k, kv, w->width, llama->qkv_bias);
        block->v = model_linear(w, block->attn, names->v, kv, w->width, llama->qkv_bias);
    } else {
        block->qkv =
            model_linear(w, block->attn, "qkv", joined_width(llama), w->width, llama->qkv_bias);
    }
    block->o = model_linear(w, block->attn, names->o, w->width, inner, false);
    if (llama->qk_norm != MODEL_QK_NORM_NONE) {
        block->q_norm =
            model_rmsnorm_of(w, block->attn, "q_norm", qk_norm_width(llama, llama->heads));
        block->k_norm =
            model_rmsnorm_of(w, block->attn, "k_norm", qk_norm_width(llama, llama->kv_heads));
    }
}

static void declare_hidden_layer(const Llama *llama, Block *block) {
    const ModelWalk *w = &llama->walk;
    const Names *names = llama->names;
    if (llama->experts.n) {
        block->experts = model_experts_declare(w, &llama->experts, block->module, names->mlp);
        return;
    }
    block->mlp = declare_module(llama, block->module, names->mlp, "MLP", "SwiGlu");
    if (llama->gate_up_joined) {
        block->gate_up = model_linear(w, block->mlp, "gate_up", 2 * llama->ffn, w->width, false);
    } else {
        block->gate = model_linear(w, block->mlp, names->gate, llama->ffn, w->width, false);
        block->up = model_linear(w, block->mlp, names->up, llama->ffn, w->width, false);
    }
    block->down = model_linear(w, block->mlp, names->down, w->width, llama->ffn, false);
    block->act = llama->transformers
                     ? plan_graph_module(w->graph, block->mlp, "act_fn", "SiLUActivation", false)
                     : PLAN_NONE;
}

/* transformers registers the norms last. */
static Block declare_block(const Llama *llama, uint32_t parent, uint64_t index) {
    const ModelWalk *w = &llama->walk;
    const Names *names = llama->names;
    g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, index);
    g_autofree char *class_name = class_of(llama, "DecoderLayer", "LlamaBlock");
    Block block = {.module = plan_graph_module(w->graph, parent, name, class_name, true)};
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
    if (w->graph->tensor > 1 && !llama->experts.n) {
        share_out_block(llama, &block);
    }
    return block;
}

static PlanGraphTokens tokens_between(const Llama *llama) {
    const ModelWalk *w = &llama->between;
    return (PlanGraphTokens){w->batch, w->rows / w->batch, w->width};
}

/* Of all ranks that share, where there are several: the argument of the module being walked, which
 * its call holds, and lets go before x. */
static uint32_t gather_tokens(const Llama *llama, uint32_t x) {
    PlanGraphTokens tokens = tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    if (graph->tensor == 1) {
        return x;
    }
    uint32_t gathered = plan_graph_shared_gather(graph, x, &tokens);
    plan_graph_hold_argument(graph, gathered);
    plan_graph_let_go_after(graph, x, gathered);
    return gathered;
}

/* What a further layer reads that reads the same: where each gathers for itself a compiler finds
 * that done, but not what backward scatters of each. */
static uint32_t gather_again(const Llama *llama, uint32_t own, uint32_t gathered) {
    PlanGraphTokens tokens = tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return graph->whole_ends ? plan_graph_shared_again(graph, own, gathered, &tokens) : gathered;
}

static uint32_t scatter_tokens(const Llama *llama, uint32_t x) {
    PlanGraphTokens tokens = tokens_between(llama);
    return plan_graph_shared_scatter(llama->walk.graph, x, &tokens);
}

/* A layer whose columns are shared, if they are. Its call adds up the ranks' results, and holds
 * what it was given until then. */
static uint32_t run_by_rows(const Llama *llama, const ModelLayer *layer, uint32_t x, uint64_t in) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t y = model_run_linear(&llama->walk, layer, x, llama->walk.width, in);
    if (graph->tensor == 1) {
        return y;
    }
    uint32_t own = scatter_tokens(llama, y);
    plan_graph_keep(graph, x);
    plan_graph_let_go_after(graph, x, y);
    return own;
}

/* From a token's heads, as its layer gives them, to the next token's. */
static uint64_t token_stride(const Llama *llama, uint64_t heads) {
    return llama->qkv == MODEL_QKV_APART ? heads * llama->head_dim : joined_width(llama);
}

/* The layer's rows, seen head by head, and normalized before that or behind it. */
static uint32_t run_q_or_k(const Llama *llama, const ModelAttention *attention,
                           const ModelLayer *layer, const ModelLayer *norm, uint32_t x,
                           char which) {
    const ModelWalk *w = &llama->walk;
    uint64_t heads = which == 'q' ? llama->heads : llama->kv_heads, out = heads * llama->head_dim;
    uint32_t y = model_run_linear(w, layer, x, out, w->width);
    if (llama->qk_norm == MODEL_QK_NORM_WIDTH) {
        y = model_run_rmsnorm_of(w, norm, y, w->rows, out, EPS);
    }
    y = model_run_heads(w, attention, y, which);
    return llama->qk_norm == MODEL_QK_NORM_HEAD
               ? model_run_rmsnorm_of(w, norm, y, w->rows * heads, llama->head_dim, EPS)
               : y;
}

typedef struct {
    uint32_t q, k, v;
} Heads;

/* By a layer each. */
static Heads run_layers(const Llama *llama, const Block *block, const ModelAttention *attention,
                        uint32_t own, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint32_t q = run_q_or_k(llama, attention, &block->q, &block->q_norm, x, 'q');
    uint32_t k =
        run_q_or_k(llama, attention, &block->k, &block->k_norm, gather_again(llama, own, x), 'k');
    uint32_t v = model_run_linear(w, &block->v, gather_again(llama, own, x),
                                  llama->kv_heads * llama->head_dim, w->width);
    return (Heads){q, k, model_run_heads(w, attention, v, 'v')};
}

/* By one layer, of whose rows they are parts. */
static Heads run_joined_layer(const Llama *llama, const Block *block,
                              const ModelAttention *attention, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t q = llama->heads * llama->head_dim, kv = llama->kv_heads * llama->head_dim;
    uint64_t cols[] = {q, kv, kv}, width = joined_width(llama), from = 0;
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

static uint32_t repeat_heads(const Llama *llama, uint32_t x, uint64_t stride) {
    const ModelWalk *w = &llama->walk;
    uint64_t n = w->rows * llama->heads * llama->head_dim;
    return plan_graph_op(w->graph, PLAN_OP_REPEAT_HEADS, &x, 1, &w->graph->dtype, &n, 1,
                         (int64_t[]){(int64_t)w->batch, (int64_t)w->seq, (int64_t)llama->kv_heads,
                                     (int64_t)(llama->heads / llama->kv_heads),
                                     (int64_t)llama->head_dim, false, (int64_t)stride},
                         NULL);
}

/* Each head of k and v for every query head of its group, in rows of tokens; attention then knows
 * no groups. */
static void repeat_k_and_v(const Llama *llama, ModelAttention *attention, Heads *h) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t k = repeat_heads(llama, h->k, attention->k_stride);
    uint32_t v = repeat_heads(llama, h->v, attention->v_stride);
    plan_graph_keep(graph, h->k);
    plan_graph_let_go_after(graph, h->k, h->v);
    h->k = k;
    h->v = v;
    attention->kv_heads = attention->heads;
    attention->k_stride = attention->v_stride = attention->q_stride;
}

/* Whose attention has the window. */
static bool slides(const Llama *llama, const Block *block) {
    return llama->window && block->is_local;
}

/* PLAN_NONE: it has none, or its kernel knows windows. */
static uint32_t mask_of(const Llama *llama, const Block *block) {
    return slides(llama, block) ? llama->mask : PLAN_NONE;
}

static const ModelRotary *rotary_of(const Llama *llama, const Block *block) {
    return block->is_local && llama->has_local_rotary ? &llama->local_rotary : &llama->rotary;
}

static uint32_t run_attention(const Llama *llama, const Block *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t inner = llama->heads * llama->head_dim;
    bool joins = block->turns && llama->rotary.ends_joined;
    bool together = block->turns && llama->rotary.is_together && !w->graph->fused;
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
        .joined_apart = joins && !w->graph->fused,
        .turned_together = joins || together,
        .bias = PLAN_NONE,
        .window = slides(llama, block) ? llama->window : 0,
        .ring = w->graph->context > 1,
        .mask = mask_of(llama, block)};
    const ModelRotary *rotary = rotary_of(llama, block);
    uint32_t given[] = {x, rotary->cosines, rotary->sines, attention.mask};
    plan_graph_enter(w->graph, block->attn, given, attention.mask == PLAN_NONE ? 3 : 4);
    uint32_t own = x;
    x = gather_tokens(llama, x);
    Heads h = llama->qkv == MODEL_QKV_APART ? run_layers(llama, block, &attention, own, x)
                                            : run_joined_layer(llama, block, &attention, x);
    if (block->turns) {
        model_rotate(w, rotary, &attention, &h.q, &h.k, h.v);
    }
    if (attention.groups_alone) {
        repeat_k_and_v(llama, &attention, &h);
    }
    if (!w->graph->fused) {
        plan_graph_hold(w->graph, h.q);
        plan_graph_hold(w->graph, h.k);
        plan_graph_hold(w->graph, h.v);
    }
    uint32_t o = model_run_attention(w, &attention, h.q, h.k, h.v);
    uint32_t y = run_by_rows(llama, &block->o, o, inner);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* What opens the hidden layer; SiLU of transformers is a module. */
static uint32_t run_gate(const Llama *llama, const Block *block, uint32_t x) {
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
static uint32_t run_joined_hidden(const Llama *llama, const Block *block, uint32_t x) {
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
static uint32_t run_hidden(const Llama *llama, const Block *block, uint32_t own, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    bool fused = w->graph->fused;
    uint64_t n = w->rows * llama->ffn;
    uint32_t gate = model_run_linear(w, &block->gate, x, llama->ffn, w->width);
    uint32_t open = fused ? gate : run_gate(llama, block, gate);
    uint32_t up =
        model_run_linear(w, &block->up, gather_again(llama, own, x), llama->ffn, w->width);
    return model_run_elementwise(w, fused ? PLAN_OP_SWIGLU : PLAN_OP_MUL, open, up, n);
}

static uint32_t run_mlp(const Llama *llama, const Block *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (llama->experts.n) {
        return model_experts_run(w, &llama->experts, &block->experts, x);
    }
    uint32_t own = x;
    plan_graph_enter(w->graph, block->mlp, &x, 1);
    x = gather_tokens(llama, x);
    uint32_t hidden = llama->gate_up_joined ? run_joined_hidden(llama, block, x)
                                            : run_hidden(llama, block, own, x);
    uint32_t y = run_by_rows(llama, &block->down, hidden, llama->ffn);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* A block's two sums, the last of which the next block may make. */
static ModelStream run_with_norms_before(const Llama *llama, const Block *block,
                                         ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t x, normed = model_run_stream_norm(w, &block->norm_1, stream, EPS, &x);
    uint32_t a = run_attention(llama, block, normed);
    normed = model_run_add_norm(w, &block->norm_2, x, a, EPS, &x);
    uint32_t m = run_mlp(llama, block, normed);
    return model_leave_block(w, x, m);
}

/* Each layer's result is scaled before it is added; Python's variable holds it until then. */
static uint32_t add_scaled(const Llama *llama, uint32_t x, uint32_t result) {
    const ModelWalk *w = &llama->between;
    uint32_t scaled = model_run_number(w, PLAN_OP_TIMES_NUMBER, result, w->rows * w->width,
                                       llama->residual_scale);
    uint32_t sum = model_run_residual(w, x, scaled);
    plan_graph_keep(w->graph, result);
    plan_graph_let_go_after(w->graph, result, scaled);
    plan_graph_let_go_after(w->graph, x, result);
    return sum;
}

static ModelStream run_scaled(const Llama *llama, const Block *block, ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = run_attention(llama, block, model_run_rmsnorm(w, &block->norm_1, stream.a, EPS));
    uint32_t x = add_scaled(llama, stream.a, a);
    uint32_t m = run_mlp(llama, block, model_run_rmsnorm(w, &block->norm_2, x, EPS));
    uint32_t y = add_scaled(llama, x, m);
    plan_graph_leave(w->graph, &y, 1);
    return (ModelStream){y, PLAN_NONE};
}

/* What comes in is a sum already: no norm could make it. */
static ModelStream run_with_norms_after(const Llama *llama, const Block *block,
                                        ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = run_attention(llama, block, stream.a);
    uint32_t x = model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->norm_1, a, EPS));
    uint32_t m = run_mlp(llama, block, x);
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->norm_2, m, EPS));
}

/* Before and behind: what a block adds is normed once more. */
static ModelStream run_with_norms_at_both(const Llama *llama, const Block *block,
                                          ModelStream stream) {
    const ModelWalk *w = &llama->between;
    uint32_t a = run_attention(llama, block, model_run_rmsnorm(w, &block->norm_1, stream.a, EPS));
    uint32_t x = model_run_residual(w, stream.a, model_run_rmsnorm(w, &block->after_1, a, EPS));
    uint32_t m = run_mlp(llama, block, model_run_rmsnorm(w, &block->norm_2, x, EPS));
    return model_leave_block(w, x, model_run_rmsnorm(w, &block->after_2, m, EPS));
}

static ModelStream run_in_order(const Llama *llama, const Block *block, ModelStream stream) {
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

/* What a block is given beside the stream, from what a checkpoint lets go of last: Mistral's and
 * those with experts name positions before the tables, Llama's behind them. */
static unsigned block_arguments(const Llama *llama, const Block *block, uint32_t *ret_arguments) {
    const ModelRotary *rotary = rotary_of(llama, block);
    uint32_t mask = mask_of(llama, block);
    bool is_before = mask != PLAN_NONE || llama->experts.n;
    uint32_t all[] = {is_before ? PLAN_NONE : llama->positions, rotary->cosines, rotary->sines,
                      is_before ? llama->positions : PLAN_NONE, mask};
    unsigned n = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        if (all[i] != PLAN_NONE) {
            ret_arguments[n++] = all[i];
        }
    }
    return n;
}

static ModelStream run_block(const Llama *llama, const Block *block, bool is_first,
                             ModelStream stream) {
    const ModelWalk *w = &llama->between;
    model_begin_block(w);
    uint32_t others[MODEL_MOST_OTHERS];
    unsigned n = block_arguments(llama, block, others);
    model_enter_block(w, block->module, stream, others, n);
    if (w->graph->whole_ends && is_first) {
        PlanGraphTokens tokens = tokens_between(llama);
        stream.a = plan_graph_shared_own(w->graph, stream.a, &tokens);
    }
    stream = run_in_order(llama, block, stream);
    model_end_block(w);
    return stream;
}

static uint32_t run_embedding(const Llama *llama, const ModelLayer *embed, uint32_t tokens) {
    const ModelWalk *w = &llama->walk;
    if (w->graph->tensor == 1) {
        return model_run_embedding(w, embed, tokens, w->rows, llama->vocab);
    }
    if (w->graph->whole_ends) {
        PlanGraphTokens own = tokens_between(llama);
        uint32_t x =
            model_run_embedding(w, embed, tokens, w->rows, llama->vocab * w->graph->tensor);
        return plan_graph_shared_taken(w->graph, x, &own);
    }
    uint32_t mask;
    plan_graph_enter(w->graph, embed->module, &tokens, 1);
    uint32_t rows = plan_graph_shared_rows(w->graph, embed->weight, tokens, w->rows, w->width,
                                           llama->vocab, &mask);
    uint32_t results[] = {rows, mask};
    plan_graph_leave(w->graph, results, 2);
    plan_graph_zero_masked(w->graph, mask, rows, w->rows, w->width);
    return scatter_tokens(llama, rows);
}

/* The head's call gathers the tokens, and gives this rank's logits. */
static uint32_t run_head(const Llama *llama, const ModelLayer *norm, const ModelLayer *head,
                         ModelStream stream, uint32_t targets) {
    const ModelWalk *w = &llama->walk;
    if (w->graph->tensor == 1) {
        return model_run_head(w, norm, head, stream, EPS, targets, llama->vocab);
    }
    ModelLayer product = *head;
    product.module = PLAN_NONE;
    plan_graph_hold(w->graph, stream.a);
    bool before = w->graph->fused;
    w->graph->fused |= w->graph->compiled_norm;
    uint32_t normed = model_run_rmsnorm(&llama->between, norm, stream.a, EPS);
    w->graph->fused = before;
    plan_graph_enter(w->graph, head->module, &normed, 1);
    uint32_t logits =
        model_run_linear(w, &product, gather_tokens(llama, normed), llama->vocab, w->width);
    plan_graph_leave(w->graph, &logits, 1);
    plan_graph_let_go_after(w->graph, stream.a, logits);
    return w->graph->whole_ends ? plan_graph_shared_whole(w->graph, logits, w->rows, llama->vocab)
                                : logits;
}

static ModelLayer declare_head(const Llama *llama, const ModelNetwork *network, uint32_t root,
                               const ModelLayer *embed) {
    const ModelWalk *w = &llama->walk;
    ModelLayer head = {.bias = PLAN_NONE, .weight = embed->weight};
    if (network->tied) {
        head.module = plan_graph_module(w->graph, root, llama->names->head, "Linear", false);
        plan_graph_share(w->graph, head.module, head.weight);
        return head;
    }
    head = model_linear(w, root, llama->names->head, llama->vocab, w->width, false);
    share_out(llama, &head, PLAN_SHARE_ROWS);
    return head;
}

static Block *declare_blocks(const Llama *llama, const ModelNetwork *network, uint32_t parent) {
    uint64_t local = network->global_every, unturned = network->unturned_every;
    Block *blocks = g_new(Block, network->layers);
    for (uint64_t i = 0; i < network->layers; i++) {
        blocks[i] = declare_block(llama, parent, i);
        blocks[i].is_local = !local || (i + 1) % local != 0;
        blocks[i].turns = !unturned || (i + 1) % unturned != 0;
    }
    return blocks;
}

static uint32_t scale_embeddings(const Llama *llama, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    return llama->embed_scale ? model_run_number(w, PLAN_OP_TIMES_NUMBER, x, w->rows * w->width,
                                                 llama->embed_scale)
                              : x;
}

/* The last sum of the blocks goes after what it became. */
static uint32_t scale_logits(const Llama *llama, uint32_t logits, uint32_t sum) {
    const ModelWalk *w = &llama->walk;
    if (!llama->logits_scale) {
        return logits;
    }
    uint32_t scaled = model_run_number(w, PLAN_OP_TIMES_NUMBER, logits, w->rows * llama->vocab,
                                       llama->logits_scale);
    plan_graph_let_go_after(w->graph, sum, scaled);
    return scaled;
}

static void make_mask(Llama *llama) {
    if (llama->is_masked) {
        llama->mask = model_window_mask(&llama->walk, llama->window);
    }
}

static void walk_own(Llama *llama, const ModelNetwork *network) {
    const ModelWalk *w = &llama->walk;
    PlanGraph *graph = w->graph;
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", "Llama", false);
    ModelLayer embed = model_embedding(w, root, "embed",
                                       graph->whole_ends ? network->vocab : llama->vocab, w->width);
    g_autofree Block *blocks = declare_blocks(llama, network, root);
    ModelLayer norm = model_rmsnorm(w, root, "norm");
    ModelLayer head = declare_head(llama, network, root, &embed);
    if (graph->whole_ends) {
        plan_graph_sees_all(graph, embed.weight);
    } else {
        share_out(llama, &embed, PLAN_SHARE_ROWS);
    }
    /* Where ranks share sequences a table has the positions of the rank's tokens. */
    uint64_t positions = graph->context > 1 ? w->seq : network->seq;
    plan_graph_rope(graph, positions, llama->head_dim, network->rope_base);
    if (llama->has_local_rotary) {
        plan_graph_rope(graph, network->seq, llama->head_dim, network->local_rope_base);
    }
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);

    plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
    uint32_t x = scale_embeddings(llama, run_embedding(llama, &embed, tokens));
    make_mask(llama);
    model_cast_tables(w, &llama->rotary, 0);
    if (llama->has_local_rotary) {
        model_cast_tables(w, &llama->local_rotary, 1);
    }
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = run_block(llama, &blocks[i], i == 0, stream);
    }
    uint32_t logits = scale_logits(llama, run_head(llama, &norm, &head, stream, targets), stream.a);
    if (llama->is_masked) {
        plan_graph_let_go_after(graph, llama->mask, logits);
    }
    model_end(w, root, logits, targets, graph->whole_ends ? network->vocab : llama->vocab);
}

/* LlamaForCausalLM, in whose module "model" is all but the head. */
static void walk_transformers(Llama *llama, const ModelNetwork *network) {
    const ModelWalk *w = &llama->walk;
    PlanGraph *graph = w->graph;
    model_transformers_begin(graph);
    uint32_t root = declare_module(llama, PLAN_NONE, "", "ForCausalLM", NULL);
    uint32_t model = declare_module(llama, root, "model", "Model", NULL);
    ModelLayer embed = model_embedding(w, model, llama->names->embed, llama->vocab, w->width);
    g_autofree Block *blocks = declare_blocks(llama, network, model);
    ModelLayer norm = model_rmsnorm(w, model, "norm");
    uint32_t rotary = model_transformers_rotary(w, model, llama->head_dim, network->rope_base);
    ModelLayer head = declare_head(llama, network, root, &embed);
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);

    plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
    plan_graph_enter(graph, model, &tokens, 1);
    uint32_t embedded = run_embedding(llama, &embed, tokens);
    ModelStream stream = {embedded, PLAN_NONE};
    plan_graph_hold(graph, embedded);
    llama->positions = model_transformers_positions(w);
    make_mask(llama);
    model_transformers_tables(w, rotary, stream.a, llama->positions, &llama->rotary);
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = run_block(llama, &blocks[i], i == 0, stream);
    }
    uint32_t x, normed = model_run_last_norm(w, &norm, stream, EPS, &x);
    if (!llama->experts.n && (llama->qkv_bias || llama->qk_norm == MODEL_QK_NORM_HEAD)) {
        /* Qwen 2's and 3's have both in a dictionary, too. */
        plan_graph_let_go_after(graph, llama->positions, embedded);
    }
    if (llama->is_masked) {
        plan_graph_let_go_after(graph, llama->mask, embedded);
    }
    plan_graph_leave(graph, &normed, 1);
    plan_graph_hold(graph, normed);
    uint32_t logits = model_run_linear(w, &head, normed, llama->vocab, w->width);
    (model_transformers_makes_loss(w) ? model_transformers_end : model_end)(w, root, logits,
                                                                            targets, llama->vocab);
}

/* Mistral's modules do as Llama's. */
static const char *transformers_prefix(const ModelNetwork *network) {
    bool normed = network->qk_norm == MODEL_QK_NORM_HEAD;
    return network->code != MODEL_CODE_TRANSFORMERS ? NULL
           : network->experts                       ? (normed ? "Qwen3Moe" : "Mixtral")
           : network->qkv_bias                      ? "Qwen2"
           : normed                                 ? "Qwen3"
                                                    : "Llama";
}

/* As transformers has it, a sequence as long as the window has a mask already. */
static uint64_t window_of(const ModelNetwork *network, uint64_t seq, bool is_masked) {
    return seq > network->window || (is_masked && seq == network->window) ? network->window : 0;
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    uint64_t parts = graph->tensor;
    bool is_masked = network->window_by == MODEL_WINDOW_BY_MASK && !graph->fused;
    bool in_pieces = graph->compiled || !graph->fused; /* a tuned rotation is one kernel */
    Llama shape = {.walk = {.graph = graph,
                            .batch = batch,
                            .seq = seq,
                            .rows = batch * seq,
                            .width = network->width,
                            .loss = network->loss,
                            .loss_at = network->loss_at,
                            .norms_from_one = network->norms_from_one},
                   .heads = network->heads / parts,
                   .kv_heads = (network->kv_heads ? network->kv_heads : network->heads) / parts,
                   .head_dim =
                       network->head_dim ? network->head_dim : network->width / network->heads,
                   .ffn = network->ffn / parts,
                   .experts = model_experts_of(network),
                   .vocab = network->vocab / parts,
                   .in_memory = network->scores_in_memory && !graph->fused,
                   .wide_softmax = network->wide_softmax,
                   .qkv_bias = network->qkv_bias,
                   .qk_norm = network->qk_norm,
                   .kv_repeated = network->kv_repeated && network->kv_heads &&
                                  network->kv_heads < network->heads && !graph->fused,
                   .norm_at = network->norm_at,
                   .gate = network->gate,
                   .gate_up_joined = network->gate_up_joined,
                   .embed_scale = network->embed_scale,
                   .attention_scale = network->attention_scale,
                   .residual_scale = network->residual_scale,
                   .logits_scale = network->logits_scale,
                   .positions = PLAN_NONE,
                   .has_local_rotary = network->local_rope_base > 0,
                   .window = window_of(network, seq, is_masked),
                   .mask = PLAN_NONE,
                   .qkv = network->qkv,
                   .rotary.is_complex = network->rope == MODEL_ROPE_COMPLEX && in_pieces,
                   .rotary.ends_joined = network->rope == MODEL_ROPE_PARTIAL && in_pieces};
    shape.transformers = parts == 1 ? transformers_prefix(network) : NULL;
    shape.experts.transformers = shape.transformers;
    shape.names = shape.transformers ? &transformers_names : &own_names;
    Llama *llama = &shape;
    shape.is_masked = shape.window && is_masked;
    if (!shape.attention_scale) {
        shape.attention_scale = 1 / sqrt((double)shape.head_dim);
    }
    shape.between = shape.walk;
    shape.between.rows /= parts;
    llama->rotary.row = llama->qkv == MODEL_QKV_APART ? 0 : joined_width(llama);
    graph->joins_blocks &= network->norm_at == MODEL_NORM_BEFORE;
    if (shape.transformers) {
        walk_transformers(llama, network);
    } else {
        walk_own(llama, network);
    }
}

const ModelFamily model_llama = {
    "llama",
    "layers width heads vocab seq|ffn experts experts_per_token expert_ffn "
    "shared_ffn route_norm kv_heads head_dim tied "
    "code rope_base rope_scaling attention qkv qkv_bias kv qk_norm norm_at norm_weight "
    "gate_up gate embed_scale attention_scale residual_scale logits_scale unturned_every "
    "global_every local_rope_base window window_by loss loss_at rope",
    emit};
