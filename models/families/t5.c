/* models/families/t5.c - encoder and decoder of the T5 shape: RMSNorm, no biases, heads of any
 * size, scores that are not scaled, a relative bias that the layers of a stack share, ReLU or gated
 * GELU. The targets are the decoder's input too.
 */
#include <math.h>

#include "models/layers/attention.h"

static const double EPS = 1e-6; /* T5's layer_norm_epsilon */
enum {
    BUCKETS = 32 /* T5's relative_attention_num_buckets */
};

typedef struct {
    ModelWalk walk;    /* of the stack at hand: the encoder's tokens, or the decoder's targets */
    ModelWalk encoder; /* of what the decoder looks back at */
    uint64_t heads, head_dim, ffn, vocab;
    ModelGelu gelu; /* of the gate, where there is one */
    bool gated, in_memory, wide_softmax;
} T5;

typedef struct {
    uint32_t module;
    ModelLayer q, k, v, o;
} Attention;

typedef struct {
    uint32_t module, mlp, drop, mlp_drop;
    bool is_decoder;
    Attention attn, cross;
    ModelLayer norm_1, norm_x, norm_2, up, gate, down;
} Block;

typedef struct {
    uint32_t module;
    ModelLayer table;
} Bias;

/* ---- declaring ------------------------------------------------------------------------------ */

static Attention declare_attention(const T5 *t5, uint32_t parent, const char *name) {
    const ModelWalk *w = &t5->walk;
    uint64_t inner = t5->heads * t5->head_dim;
    Attention a = {.module = plan_graph_module(w->graph, parent, name, "T5Attention", false)};
    a.q = model_linear(w, a.module, "q", inner, w->width, false);
    a.k = model_linear(w, a.module, "k", inner, w->width, false);
    a.v = model_linear(w, a.module, "v", inner, w->width, false);
    a.o = model_linear(w, a.module, "o", w->width, inner, false);
    return a;
}

static Block declare_block(const T5 *t5, uint32_t root, const char *stack, uint64_t index,
                           bool is_decoder) {
    const ModelWalk *w = &t5->walk;
    g_autofree char *name = g_strdup_printf("%s.%" G_GUINT64_FORMAT, stack, index);
    Block block = {.is_decoder = is_decoder};
    block.module = plan_graph_module(w->graph, root, name, "T5Block", true);
    block.norm_1 = model_rmsnorm(w, block.module, "norm_1");
    block.attn = declare_attention(t5, block.module, "attn");
    if (is_decoder) {
        block.norm_x = model_rmsnorm(w, block.module, "norm_x");
        block.cross = declare_attention(t5, block.module, "cross");
    }
    block.norm_2 = model_rmsnorm(w, block.module, "norm_2");
    block.mlp = plan_graph_module(w->graph, block.module, "mlp", "T5Mlp", false);
    block.up = model_linear(w, block.mlp, "up", t5->ffn, w->width, false);
    if (t5->gated) {
        block.gate = model_linear(w, block.mlp, "gate", t5->ffn, w->width, false);
    }
    block.down = model_linear(w, block.mlp, "down", w->width, t5->ffn, false);
    block.mlp_drop = model_dropout(w, block.mlp, "drop");
    block.drop = model_dropout(w, block.module, "drop");
    return block;
}

static Bias declare_bias(const T5 *t5, uint32_t root, const char *name) {
    const ModelWalk *w = &t5->walk;
    Bias bias = {.module = plan_graph_module(w->graph, root, name, "RelativeBias", false)};
    bias.table = model_embedding(w, bias.module, "table", BUCKETS, t5->heads);
    return bias;
}

/* ---- walking -------------------------------------------------------------------------------- */

static uint32_t run_int64(const T5 *t5, PlanOpKind kind, uint32_t x, uint64_t n, int64_t dim) {
    return plan_graph_op(t5->walk.graph, kind, &x, PLAN_INT64, n, (int64_t[]){dim, BUCKETS - 1},
                         NULL);
}

/* Later tokens are hidden from the decoder. */
static uint32_t hide_later(const T5 *t5, uint32_t bias, uint32_t distance) {
    const ModelWalk *w = &t5->walk;
    uint64_t n = w->seq * w->seq, elements = n * t5->heads;
    int64_t pairs = (int64_t)n;
    double value = -INFINITY;
    plan_graph_hold(w->graph, bias);
    uint32_t mask =
        plan_graph_op(w->graph, PLAN_OP_POSITIVE_MASK, &distance, PLAN_UINT8, n, &pairs, NULL);
    return plan_graph_op(w->graph, PLAN_OP_MASKED_FILL, (uint32_t[]){bias, mask}, w->graph->dtype,
                         elements,
                         (int64_t[]){[MASKED_FILL_OUTER] = 1,
                                     [MASKED_FILL_N] = pairs,
                                     [MASKED_FILL_INNER] = (int64_t)t5->heads},
                         &value);
}

static uint32_t run_bias(const T5 *t5, const Bias *bias, bool causal) {
    const ModelWalk *w = &t5->walk;
    uint64_t n = w->seq * w->seq, elements = n * t5->heads;
    plan_graph_enter(w->graph, bias->module, NULL, 0);
    uint32_t here = run_int64(t5, PLAN_OP_ARANGE, PLAN_NONE, w->seq, (int64_t)w->seq);
    plan_graph_hold(w->graph, here);
    uint32_t distance = run_int64(t5, PLAN_OP_DISTANCES, here, n, (int64_t)w->seq);
    plan_graph_hold(w->graph, distance);
    uint32_t far = run_int64(t5, PLAN_OP_ABSOLUTE, distance, n, (int64_t)n);
    uint32_t bucket = run_int64(t5, PLAN_OP_CLAMP, far, n, (int64_t)n);
    plan_graph_enter(w->graph, bias->table.module, &bucket, 1);
    uint32_t y = plan_graph_op(
        w->graph, PLAN_OP_BIAS, (uint32_t[]){bias->table.weight, bucket}, w->graph->dtype, elements,
        (int64_t[]){
            [BIAS_N] = (int64_t)n, [BIAS_HEADS] = (int64_t)t5->heads, [BIAS_LIMIT] = BUCKETS},
        NULL);
    plan_graph_leave(w->graph, &y, 1);
    if (causal) {
        y = hide_later(t5, y, distance);
    }
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* Queries are of x, keys and values of memory, which lies as `along` walks. */
static uint32_t run_attention(const T5 *t5, const Attention *a, uint32_t x, uint32_t memory,
                              const ModelWalk *along, uint32_t bias) {
    const ModelWalk *w = &t5->walk;
    uint64_t inner = t5->heads * t5->head_dim;
    ModelAttention attention = {.heads = t5->heads,
                                .kv_heads = t5->heads,
                                .head_dim = t5->head_dim,
                                .keys = along->seq,
                                .q_stride = inner,
                                .k_stride = inner,
                                .v_stride = inner,
                                .scale = 1,
                                .in_memory = t5->in_memory,
                                .wide_softmax = t5->wide_softmax,
                                .bias = bias,
                                .mask = PLAN_NONE};
    uint32_t arguments[] = {x, memory, bias};
    plan_graph_enter(w->graph, a->module, arguments, bias == PLAN_NONE ? 2 : 3);
    uint32_t q = model_run_linear(w, &a->q, x, inner, w->width);
    q = model_run_heads(w, &attention, q, 'q');
    plan_graph_hold(w->graph, q);
    uint32_t k = model_run_heads_of(along, &attention, &a->k, memory, inner, 'k');
    plan_graph_hold(w->graph, k);
    uint32_t v = model_run_linear(along, &a->v, memory, inner, w->width);
    v = model_run_heads(along, &attention, v, 'v');
    plan_graph_hold(w->graph, v);
    uint32_t o = model_run_attention(w, &attention, q, k, v);
    uint32_t y = model_run_linear(w, &a->o, o, w->width, inner);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t run_mlp(const T5 *t5, const Block *block, uint32_t x) {
    const ModelWalk *w = &t5->walk;
    uint64_t n = w->rows * t5->ffn;
    uint32_t hidden;
    plan_graph_enter(w->graph, block->mlp, &x, 1);
    if (t5->gated) {
        uint32_t gate = model_run_linear(w, &block->gate, x, t5->ffn, w->width);
        uint32_t open = model_run_gelu(w, t5->gelu, gate, n);
        uint32_t up = model_run_linear(w, &block->up, x, t5->ffn, w->width);
        hidden = model_run_elementwise(w, PLAN_OP_MUL, open, up, n);
    } else {
        uint32_t up = model_run_linear(w, &block->up, x, t5->ffn, w->width);
        hidden = model_run_elementwise(w, PLAN_OP_RELU, up, PLAN_NONE, n);
    }
    plan_graph_hold(w->graph, hidden);
    hidden = model_run_dropout(w, block->mlp_drop, hidden, n);
    uint32_t y = model_run_linear(w, &block->down, hidden, w->width, t5->ffn);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t run_block(const T5 *t5, const Block *block, uint32_t x, uint32_t bias,
                          uint32_t memory) {
    const ModelWalk *w = &t5->walk;
    uint64_t elements = w->rows * w->width;
    plan_graph_enter(w->graph, block->module, (uint32_t[]){x, bias, memory},
                     block->is_decoder ? 3 : 2);
    uint32_t normed = model_run_rmsnorm(w, &block->norm_1, x, EPS);
    plan_graph_hold(w->graph, normed);
    uint32_t a = run_attention(t5, &block->attn, normed, normed, w, bias);
    a = model_run_dropout(w, block->drop, a, elements);
    if (block->is_decoder) {
        uint32_t n = model_run_add_norm(w, &block->norm_x, x, a, EPS, &x);
        a = run_attention(t5, &block->cross, n, memory, &t5->encoder, PLAN_NONE);
        a = model_run_dropout(w, block->drop, a, elements);
    }
    uint32_t m = run_mlp(t5, block, model_run_add_norm(w, &block->norm_2, x, a, EPS, &x));
    uint32_t y = model_run_residual(w, x, model_run_dropout(w, block->drop, m, elements));
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* ---- the network ---------------------------------------------------------------------------- */

typedef struct {
    uint32_t root, drop;
    ModelLayer shared, encoder_norm, decoder_norm, head;
    Bias encoder_bias, decoder_bias;
    Block *encoder, *decoder;
} Network;

static void declare(const T5 *t5, uint64_t layers, bool tied, Network *n) {
    const ModelWalk *w = &t5->walk;
    n->root = plan_graph_module(w->graph, PLAN_NONE, "", "T5", false);
    n->shared = model_embedding(w, n->root, "shared", t5->vocab, w->width);
    n->drop = model_dropout(w, n->root, "drop");
    n->encoder_bias = declare_bias(t5, n->root, "encoder_bias");
    n->decoder_bias = declare_bias(t5, n->root, "decoder_bias");
    for (uint64_t i = 0; i < layers; i++) {
        n->encoder[i] = declare_block(t5, n->root, "encoder", i, false);
    }
    n->encoder_norm = model_rmsnorm(w, n->root, "encoder_norm");
    for (uint64_t i = 0; i < layers; i++) {
        n->decoder[i] = declare_block(t5, n->root, "decoder", i, true);
    }
    n->decoder_norm = model_rmsnorm(w, n->root, "decoder_norm");
    n->head = model_head(w, n->root, "head", t5->vocab, false, tied ? &n->shared : NULL);
}

/* A head that shares the embedding's weight is given x / sqrt(width). */
static uint32_t scale_down(const ModelWalk *w, uint32_t x) {
    uint64_t elements = w->rows * w->width;
    double factor = 1 / sqrt((double)w->width);
    return plan_graph_op(w->graph, PLAN_OP_TIMES_NUMBER, &x, w->graph->dtype, elements,
                         (int64_t[]){(int64_t)elements}, &factor);
}

/* The variable that held `before` until now holds x after dropout; x itself goes first. */
static uint32_t replace_variable(const T5 *t5, const Network *n, uint32_t x, uint32_t before) {
    const ModelWalk *w = &t5->walk;
    uint32_t y = model_run_dropout(w, n->drop, x, w->rows * w->width);
    plan_graph_keep(w->graph, before);
    if (y != x) {
        plan_graph_let_go_after(w->graph, before, x);
    }
    return y;
}

/* What the encoder makes of the tokens; its last block's result and its bias outlive it, in two of
 * Python's variables. */
static uint32_t encode(const T5 *t5, uint64_t layers, const Network *n, uint32_t tokens,
                       uint32_t *ret_x, uint32_t *ret_bias) {
    const ModelWalk *w = &t5->walk;
    uint64_t elements = w->rows * w->width;
    uint32_t x = model_run_embedding(w, &n->shared, tokens, w->rows, t5->vocab);
    x = model_run_dropout(w, n->drop, x, elements);
    *ret_bias = run_bias(t5, &n->encoder_bias, false);
    for (uint64_t i = 0; i < layers; i++) {
        x = run_block(t5, &n->encoder[i], x, *ret_bias, PLAN_NONE);
    }
    uint32_t memory = model_run_rmsnorm(w, &n->encoder_norm, x, EPS);
    memory = model_run_dropout(w, n->drop, memory, elements);
    plan_graph_hold(w->graph, memory);
    *ret_x = x;
    return memory;
}

static void walk(const T5 *encoder, const ModelNetwork *network, const Network *n) {
    T5 decoder = *encoder, *t5 = &decoder;
    decoder.walk = model_walk_along(&encoder->walk,
                                    network->target_seq ? network->target_seq : encoder->walk.seq);
    const ModelWalk *w = &t5->walk;
    uint32_t tokens = plan_graph_input(w->graph, PLAN_INT64, t5->encoder.rows, t5->vocab);
    uint32_t targets = plan_graph_input(w->graph, PLAN_INT64, w->rows, t5->vocab);
    plan_graph_enter(w->graph, n->root, (uint32_t[]){tokens, targets}, 2);
    uint32_t encoded, encoder_bias;
    uint32_t memory = encode(encoder, network->layers, n, tokens, &encoded, &encoder_bias);
    uint32_t x = model_run_embedding(w, &n->shared, targets, w->rows, t5->vocab);
    x = replace_variable(t5, n, x, encoded);
    uint32_t bias = run_bias(t5, &n->decoder_bias, true);
    plan_graph_keep(w->graph, encoder_bias);
    plan_graph_hold(w->graph, bias);
    for (uint64_t i = 0; i < network->layers; i++) {
        x = run_block(t5, &n->decoder[i], x, bias, memory);
    }
    uint32_t decoded = x;
    x = replace_variable(t5, n, model_run_rmsnorm(w, &n->decoder_norm, x, EPS), decoded);
    plan_graph_hold(w->graph, x);
    plan_graph_let_go_after(w->graph, bias, x);
    plan_graph_let_go_after(w->graph, memory, bias);
    uint32_t logits =
        model_run_linear(w, &n->head, network->tied ? scale_down(w, x) : x, t5->vocab, w->width);
    model_end(w, n->root, logits, targets, t5->vocab);
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    T5 t5 = {.walk = model_walk(network, batch, seq, graph),
             .heads = network->heads,
             .head_dim = network->head_dim ? network->head_dim : network->width / network->heads,
             .ffn = network->ffn,
             .vocab = network->vocab,
             .gelu = network->gelu,
             .gated = network->gated,
             .in_memory = network->scores_in_memory,
             .wide_softmax = network->wide_softmax};
    g_autofree Block *encoder = g_new(Block, network->layers);
    g_autofree Block *decoder = g_new(Block, network->layers);
    Network parts = {.encoder = encoder, .decoder = decoder};
    t5.encoder = t5.walk;
    declare(&t5, network->layers, network->tied, &parts);
    walk(&t5, network, &parts);
}

const ModelFamily model_t5 = {
    "t5",
    "layers width heads vocab seq ffn|target_seq head_dim tied gated gelu attention "
    "dropout loss loss_at logits_held",
    emit};
