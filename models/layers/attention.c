/* models/layers/attention.c - attention as one kernel, or with its scores in memory. */
#include <math.h>

#include "models/layers/attention.h"
#include "models/layers/window.h"

/* What autocast makes of a product's input, before that is copied to where the product wants it. */
static uint32_t cast_for_product(const ModelWalk *w, uint32_t x) {
    return w->graph->now.autocasts ? plan_graph_cast(w->graph, x, w->graph->autocast.lower) : x;
}

/* ---- one kernel ----------------------------------------------------------------------------- */

static bool repeats(const ModelWalk *w, const ModelAttention *a) {
    return a->kv_heads < a->heads && !a->groups_alone &&
           (a->in_memory || a->mask != PLAN_NONE ||
            plan_graph_product_dtype(w->graph) == PLAN_FP32);
}

static uint32_t repeat(const ModelWalk *w, const ModelAttention *a, uint32_t x, uint64_t stride,
                       PlanRepeated place) {
    uint64_t times = a->heads / a->kv_heads, elements = w->rows * a->heads * a->head_dim;
    int64_t dims[] = {
        [REPEAT_HEADS_BATCH] = (int64_t)w->batch,    [REPEAT_HEADS_SEQ] = (int64_t)w->seq,
        [REPEAT_HEADS_HEADS] = (int64_t)a->kv_heads, [REPEAT_HEADS_REPEATS] = (int64_t)times,
        [REPEAT_HEADS_DIM] = (int64_t)a->head_dim,   [REPEAT_HEADS_APART] = place,
        [REPEAT_HEADS_STRIDE] = (int64_t)stride};
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, x)->dtype;
    return plan_graph_op(w->graph, PLAN_OP_REPEAT_HEADS, &x, dtype, elements, dims, NULL);
}

/* Only the flash kernel knows groups of heads: elsewhere PyTorch repeats the heads of k and v. */
static uint32_t repeat_heads(const ModelWalk *w, const ModelAttention *a, uint32_t x,
                             uint64_t stride) {
    return repeat(w, a, x, stride, a->in_memory ? PLAN_REPEATED_APART : PLAN_REPEATED_INSIDE);
}

/* With the scores in memory gradients come with heads apart, but for k's of one sequence. */
static bool comes_apart(const ModelWalk *w, const ModelAttention *a, char which) {
    return a->in_memory && w->seq > 1 && (which != 'k' || (!a->k_inside && w->batch > 1));
}

bool model_shows_one_head(const ModelWalk *w, const ModelAttention *a) {
    return a->kv_heads == 1 && !a->in_memory && !a->ring && !plan_graph_is_compiled(w->graph) &&
           !w->graph->now.autocasts;
}

static uint32_t show(const ModelWalk *w, const ModelAttention *a, uint32_t x) {
    return plan_graph_shown(w->graph, x, w->batch, w->seq, a->heads, a->head_dim);
}

uint32_t model_repeat_before(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which) {
    if (model_shows_one_head(w, a)) {
        return show(w, a, x);
    }
    bool apart = comes_apart(w, a, which);
    return repeat(w, a, x, which == 'k' ? a->k_stride : a->v_stride,
                  apart ? PLAN_REPEATED_GRADIENT_APART : PLAN_REPEATED_INSIDE);
}

/* 16-bit goes to the flash kernel; fp32, and what has a bias, to the memory-efficient one, which
 * pads its row statistics to 32 rows; both keep the state of dropout's random numbers on the
 * device, in two tensors. */
static uint32_t run_kernel(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                           uint32_t v) {
    bool has_bias = a->bias != PLAN_NONE;
    PlanDtype dtype = plan_graph_product_dtype(w->graph);
    bool flash = dtype != PLAN_FP32 && !has_bias, repeated = repeats(w, a);
    int64_t causal = a->window ? (int64_t)a->window : a->causal;
    uint32_t given[] = {q, k, v};
    uint32_t bias = has_bias ? cast_for_product(w, a->bias) : PLAN_NONE;
    bool is_bias_cast = bias != a->bias;
    uint64_t lse_stride = flash ? w->seq : (w->seq + 31) / 32 * 32;
    uint64_t kv_heads = repeated ? a->heads : a->kv_heads;
    uint64_t own = a->heads * a->head_dim;
    uint64_t k_stride = repeated ? own : a->k_stride, v_stride = repeated ? own : a->v_stride;
    v = cast_for_product(w, v);
    k = cast_for_product(w, k);
    q = cast_for_product(w, q);
    if (has_bias && a->mask == PLAN_NONE) {
        bias = plan_graph_repeated(w->graph, bias, w->batch);
    }
    if (repeated) {
        k = repeat_heads(w, a, k, a->k_stride);
        v = repeat_heads(w, a, v, a->v_stride);
    }
    bool trains =
        plan_graph_wants_gradient(w->graph, q) || plan_graph_wants_gradient(w->graph, k) ||
        plan_graph_wants_gradient(w->graph, v) || plan_graph_wants_gradient(w->graph, bias);
    bool has_statistics = flash || trains; /* of rows: the memory-efficient kernel's, where asked */
    PlanGraphResult results[] = {{dtype, w->rows * own},
                                 {PLAN_FP32, has_statistics ? w->batch * a->heads * lse_stride : 0},
                                 {PLAN_INT64, flash ? 2 : 1},
                                 {PLAN_INT64, 1}};
    uint32_t o =
        plan_graph_op_making(w->graph, PLAN_OP_ATTENTION, (uint32_t[]){q, k, v, bias}, results,
                             (int64_t[]){[ATTENTION_BATCH] = (int64_t)w->batch,
                                         [ATTENTION_HEADS] = (int64_t)a->heads,
                                         [ATTENTION_KV_HEADS] = (int64_t)kv_heads,
                                         [ATTENTION_SEQ] = (int64_t)w->seq,
                                         [ATTENTION_HEAD_DIM] = (int64_t)a->head_dim,
                                         [ATTENTION_Q_STRIDE] = (int64_t)a->q_stride,
                                         [ATTENTION_K_STRIDE] = (int64_t)k_stride,
                                         [ATTENTION_LSE_STRIDE] = (int64_t)lse_stride,
                                         [ATTENTION_CAUSAL] = causal,
                                         [ATTENTION_STREAM] = (int64_t)w->graph->ops.len,
                                         [ATTENTION_V_STRIDE] = (int64_t)v_stride},
                             (double[]){a->scale, w->graph->evaluates ? 0 : w->dropout, a->alibi});
    /* Where nothing keeps them the others go from the last to the first: they are a tuple of the
     * recorder's Python, whose first item is asked for. */
    uint32_t lse = o + 1, seed = o + 2, offset = o + 3;
    plan_graph_let_go_after(w->graph, seed, offset);
    plan_graph_let_go_after(w->graph, lse, seed);
    if (is_bias_cast) { /* behind what it was repeated for */
        plan_graph_let_go_after(w->graph, bias, lse);
    }
    if (repeated) {
        plan_graph_let_go_after(w->graph, k, lse);
        plan_graph_let_go_after(w->graph, v, k);
    } else {
        plan_graph_let_go_of_casts(w->graph, given, (uint32_t[]){q, k, v}, 3, lse);
    }
    return o;
}

/* With a mask Python repeats k and v, whatever the kernel knows, and PyTorch casts what it is given
 * before it makes numbers of the mask. All go when the call returns. */
static uint32_t run_masked(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                           uint32_t v) {
    PlanGraph *graph = w->graph;
    ModelAttention alone = *a;
    if (a->kv_heads < a->heads && model_shows_one_head(w, a)) {
        k = show(w, a, k);
        v = show(w, a, v);
        alone.groups_alone = true;
    } else if (a->kv_heads < a->heads) {
        k = repeat_heads(w, a, k, a->k_stride);
        v = repeat_heads(w, a, v, a->v_stride);
        alone.kv_heads = a->heads;
        alone.k_stride = alone.v_stride = a->heads * a->head_dim;
    }
    uint32_t given[] = {q, k, v}, used[3];
    for (unsigned i = G_N_ELEMENTS(given); i-- > 0;) {
        used[i] = cast_for_product(w, given[i]);
    }
    alone.bias = model_window_bias(w, a->mask);
    uint32_t o = run_kernel(w, &alone, used[0], used[1], used[2]), lse = o + 1;
    plan_graph_let_go_of_casts(graph, given, used, G_N_ELEMENTS(given), lse);
    plan_graph_let_go_after(graph, alone.bias, lse);
    plan_graph_keep(graph, k);
    plan_graph_let_go_after(graph, k, alone.bias);
    plan_graph_keep(graph, v);
    plan_graph_let_go_after(graph, v, k);
    return o;
}

/* ---- scores in memory ----------------------------------------------------------------------- */

static uint64_t keys_of(const ModelWalk *w, const ModelAttention *a) {
    return a->keys ? a->keys : w->seq;
}

/* Strides can tell heads from rows in one sequence, and where either is one: else copies must. */
static bool is_strided(const ModelWalk *w, const ModelAttention *a, uint64_t stride) {
    bool is_row = w->seq == 1 && stride == a->heads * a->head_dim;
    return w->batch == 1 || a->heads == 1 || is_row;
}

static uint32_t apart(const ModelWalk *w, const ModelAttention *a, uint32_t x, uint64_t stride) {
    return is_strided(w, a, stride)
               ? x
               : plan_graph_op(w->graph, PLAN_OP_HEADS_COPY, &x, w->graph->dtype,
                               w->rows * a->heads * a->head_dim,
                               (int64_t[]){[HEADS_COPY_BATCH] = (int64_t)w->batch,
                                           [HEADS_COPY_SEQ] = (int64_t)w->seq,
                                           [HEADS_COPY_HEADS] = (int64_t)a->heads,
                                           [HEADS_COPY_DIM] = (int64_t)a->head_dim,
                                           [HEADS_COPY_STRIDE] = (int64_t)stride,
                                           [HEADS_COPY_BACK] = 0},
                               NULL);
}

/* Rows of tokens, copied of what lies head by head. */
static uint32_t merge_heads(const ModelWalk *w, const ModelAttention *a, uint32_t x) {
    return plan_graph_op(w->graph, PLAN_OP_HEADS_COPY, &x, w->graph->dtype,
                         w->rows * a->heads * a->head_dim,
                         (int64_t[]){[HEADS_COPY_BATCH] = (int64_t)w->batch,
                                     [HEADS_COPY_SEQ] = (int64_t)w->seq,
                                     [HEADS_COPY_HEADS] = (int64_t)a->heads,
                                     [HEADS_COPY_DIM] = (int64_t)a->head_dim,
                                     [HEADS_COPY_STRIDE] = (int64_t)(a->heads * a->head_dim),
                                     [HEADS_COPY_BACK] = 1},
                         NULL);
}

/* A matrix of each head, and how it lies (plan/op/ops.def). */
typedef struct {
    uint32_t value;
    unsigned layout;
    uint64_t stride;
} Factor;

static uint32_t matmul(const ModelWalk *w, const ModelAttention *a, Factor x, Factor y, uint64_t n,
                       uint64_t k) {
    double inside = a->k_inside;
    return plan_graph_op(w->graph, PLAN_OP_HEADS_MATMUL, (uint32_t[]){x.value, y.value},
                         w->graph->dtype, w->batch * a->heads * w->seq * n,
                         (int64_t[]){[HEADS_MATMUL_BATCH] = (int64_t)w->batch,
                                     [HEADS_MATMUL_HEADS] = (int64_t)a->heads,
                                     [HEADS_MATMUL_M] = (int64_t)w->seq,
                                     [HEADS_MATMUL_N] = (int64_t)n,
                                     [HEADS_MATMUL_K] = (int64_t)k,
                                     [HEADS_MATMUL_A_LAYOUT] = x.layout,
                                     [HEADS_MATMUL_B_LAYOUT] = y.layout,
                                     [HEADS_MATMUL_Y_LAYOUT] = 0,
                                     [HEADS_MATMUL_A_STRIDE] = (int64_t)x.stride,
                                     [HEADS_MATMUL_B_STRIDE] = (int64_t)y.stride},
                         &inside);
}

static uint32_t upper_mask(const ModelWalk *w, uint64_t *ret_elements) {
    int64_t seq = (int64_t)w->seq;
    uint64_t n = *ret_elements = w->seq * w->seq;
    uint32_t all = plan_graph_op(w->graph, PLAN_OP_ONES_MASK, NULL, PLAN_UINT8, n,
                                 (int64_t[]){seq * seq}, NULL);
    return plan_graph_op(w->graph, PLAN_OP_UPPER_MASK, &all, PLAN_UINT8, n,
                         (int64_t[]){[UPPER_MASK_ROWS] = seq, [UPPER_MASK_COLS] = seq}, NULL);
}

static uint32_t mask_causal(const ModelWalk *w, const ModelAttention *a, uint32_t scores,
                            uint32_t *ret_mask) {
    uint64_t n, outer = w->batch * a->heads;
    *ret_mask = upper_mask(w, &n);
    double value = -INFINITY;
    return plan_graph_op(w->graph, PLAN_OP_MASKED_FILL, (uint32_t[]){scores, *ret_mask},
                         w->graph->dtype, outer * n,
                         (int64_t[]){[MASKED_FILL_OUTER] = (int64_t)outer,
                                     [MASKED_FILL_N] = (int64_t)n,
                                     [MASKED_FILL_INNER] = 1},
                         &value);
}

static uint32_t add_bias(const ModelWalk *w, const ModelAttention *a, uint32_t scores) {
    return plan_graph_op(w->graph, PLAN_OP_BIAS_ADD, (uint32_t[]){scores, a->bias}, w->graph->dtype,
                         w->batch * a->heads * w->seq * keys_of(w, a),
                         (int64_t[]){[BIAS_ADD_BATCH] = (int64_t)w->batch,
                                     [BIAS_ADD_HEADS] = (int64_t)a->heads,
                                     [BIAS_ADD_ROWS] = (int64_t)w->seq,
                                     [BIAS_ADD_COLS] = (int64_t)keys_of(w, a)},
                         NULL);
}

/* A mask of each sequence, all alike, for every head. */
static uint32_t add_mask(const ModelWalk *w, const ModelAttention *a, uint32_t scores,
                         uint64_t elements) {
    uint64_t n = w->seq * w->seq;
    uint32_t one = plan_graph_slice(w->graph, a->added, 1, w->batch * n, 0, n);
    return plan_graph_op(w->graph, PLAN_OP_ADD, (uint32_t[]){scores, one}, w->graph->dtype,
                         elements, (int64_t[]){[ADD_N] = (int64_t)elements, [ADD_NB] = (int64_t)n},
                         NULL);
}

/* softmax(scores, dtype=float32).to(q.dtype): PyTorch makes bf16 wide in a kernel of its own. */
static uint32_t softmax(const ModelWalk *w, const ModelAttention *a, uint32_t scores, uint32_t q) {
    uint64_t rows = w->batch * a->heads * w->seq, cols = keys_of(w, a), elements = rows * cols;
    int64_t dims[] = {[SOFTMAX_ROWS] = (int64_t)rows, [SOFTMAX_COLS] = (int64_t)cols};
    PlanDtype dtype = a->wide_softmax ? PLAN_FP32 : w->graph->dtype;
    uint32_t x = a->wide_softmax ? model_run_widen(w, scores) : scores;
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_SOFTMAX, &x, dtype, elements, dims, NULL);
    uint32_t weights = a->wide_softmax ? model_run_like(w, y, q) : y;
    if (a->weights) { /* which take the name that scores had */
        *a->weights = weights;
        plan_graph_keep(w->graph, scores);
        plan_graph_let_go_after(w->graph, scores, y);
    }
    return weights;
}

/* A sink behind each row of scores: softmax of both, less the row's largest, of which the sinks'
 * are left out. *ret_lessened: what softmax was made of, which Python's variable holds. */
static uint32_t softmax_beside_sinks(const ModelWalk *w, const ModelAttention *a, uint32_t scores,
                                     uint32_t *ret_lessened) {
    PlanGraph *graph = w->graph;
    uint64_t rows = w->batch * a->heads * w->seq, cols = keys_of(w, a), all = cols + 1;
    int64_t joined_dims[] = {[JOIN_SINKS_BATCH] = (int64_t)w->batch,
                             [JOIN_SINKS_HEADS] = (int64_t)a->heads,
                             [JOIN_SINKS_ROWS] = (int64_t)w->seq,
                             [JOIN_SINKS_COLS] = (int64_t)cols};
    int64_t dims[] = {[TOP_K_ROWS] = (int64_t)rows, [TOP_K_COLS] = (int64_t)all, [TOP_K_K] = 1};
    PlanGraphResult results[] = {{graph->dtype, rows}, {PLAN_INT64, rows}};
    uint32_t joined = plan_graph_op(graph, PLAN_OP_JOIN_SINKS, (uint32_t[]){scores, a->sinks},
                                    graph->dtype, rows * all, joined_dims, NULL);
    uint32_t most = plan_graph_op_making(graph, PLAN_OP_TOP_K, &joined, results, dims, NULL);
    uint32_t lessened = plan_graph_op(graph, PLAN_OP_SUB_COLUMN, (uint32_t[]){joined, most},
                                      graph->dtype, rows * all, dims, NULL);
    plan_graph_keep(graph, joined);
    plan_graph_let_go_after(graph, joined, most);
    uint32_t y =
        plan_graph_op(graph, PLAN_OP_SOFTMAX, &lessened, graph->dtype, rows * all, dims, NULL);
    plan_graph_keep(graph, scores);
    *a->weights = y;
    *ret_lessened = lessened;
    return plan_graph_columns(graph, y, &(PlanGraphColumns){rows, cols, 0, all, cols, 0});
}

/* Python's function returns: its variables go in the order in which it names them, after what was
 * only an argument of its last call. */
static void let_go_of_variables(PlanGraph *graph, uint32_t argument, const uint32_t *variables,
                                unsigned n) {
    uint32_t before = argument;
    for (unsigned i = 0; i < n; i++) {
        if (variables[i] != PLAN_NONE) {
            plan_graph_keep(graph, variables[i]);
            if (before != PLAN_NONE) {
                plan_graph_let_go_after(graph, variables[i], before);
            }
            before = variables[i];
        }
    }
}

/* What matmul(x, y) makes of its arguments goes when it returns: copies of y and x, then their
 * casts, of x and y, and an x without a name. */
typedef struct {
    uint32_t given, cast, apart;
} Argument;

static Argument argument_of(const ModelWalk *w, uint32_t x) {
    uint32_t cast = cast_for_product(w, x);
    return (Argument){x, cast, cast};
}

static void let_go_of_arguments(const ModelWalk *w, const Argument *x, const Argument *y,
                                bool x_is_temporary) {
    uint32_t order[] = {
        y->apart != y->cast ? y->apart : PLAN_NONE, x->apart != x->cast ? x->apart : PLAN_NONE,
        x->cast != x->given ? x->cast : PLAN_NONE, y->cast != y->given ? y->cast : PLAN_NONE,
        x_is_temporary ? x->given : PLAN_NONE};
    let_go_of_variables(w->graph, PLAN_NONE, order, G_N_ELEMENTS(order));
}

static uint32_t run_in_memory(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                              uint32_t v) {
    bool joined = a->sinks;                                /* and lie apart in PyTorch already */
    bool inside = joined || is_strided(w, a, a->q_stride); /* heads lie inside a token's row */
    uint64_t own = a->heads * a->head_dim;
    ModelWalk along = model_walk_along(w, keys_of(w, a));
    uint64_t elements = w->batch * a->heads * w->seq * along.seq;
    bool repeated = repeats(w, a); /* which copies apart */
    bool kv_inside = is_strided(&along, a, a->k_stride) && !repeated;
    if (repeated) {
        k = repeat_heads(w, a, k, a->k_stride);
        v = repeat_heads(w, a, v, a->v_stride);
    }
    Argument k_used = argument_of(w, k), q_used = argument_of(w, q);
    q_used.apart = joined ? q_used.cast : apart(w, a, q_used.cast, a->q_stride);
    k_used.apart = repeated ? k_used.cast : apart(&along, a, k_used.cast, a->k_stride);
    Factor of_q = {q_used.apart, inside ? 2 : 0, inside ? a->q_stride : own};
    Factor of_k = {k_used.apart, kv_inside ? 3 : 1, kv_inside ? a->k_stride : own};
    uint32_t scores = matmul(w, a, of_q, of_k, along.seq, a->head_dim);
    let_go_of_arguments(w, &q_used, &k_used, false);
    uint32_t mask = PLAN_NONE;
    scores = plan_graph_op(w->graph, PLAN_OP_TIMES_NUMBER, &scores, w->graph->dtype, elements,
                           (int64_t[]){(int64_t)elements}, &a->scale);
    if (a->bias != PLAN_NONE) {
        scores = add_bias(w, a, scores);
    }
    scores = model_run_capped(w, scores, elements, a->cap);
    if (a->added) {
        scores = add_mask(w, a, scores, elements);
    } else if (a->causal) {
        scores = mask_causal(w, a, scores, &mask);
    }
    uint32_t lessened = PLAN_NONE;
    uint32_t weights = a->sinks
                           ? softmax_beside_sinks(w, a, scores, &lessened)
                           : model_run_dropout(w, PLAN_NONE, softmax(w, a, scores, q), elements);
    Argument v_used = argument_of(w, v), weights_used = argument_of(w, weights);
    v_used.apart = repeated ? v_used.cast : apart(&along, a, v_used.cast, a->v_stride);
    Factor of_weights = {weights_used.apart, a->sinks ? 4 : 0, a->sinks ? along.seq + 1 : own};
    Factor of_v = {v_used.apart, kv_inside ? 2 : 0, kv_inside ? a->v_stride : own};
    uint32_t mixed = matmul(w, a, of_weights, of_v, a->head_dim, along.seq);
    let_go_of_arguments(w, &weights_used, &v_used, !a->weights);
    bool merges = a->heads > 1 && w->seq > 1;
    uint32_t variables[] = {repeated ? k : PLAN_NONE, repeated ? v : PLAN_NONE,
                            a->sinks ? lessened : scores, mask};
    if (a->weights) { /* it merges them itself, and its caller has the weights */
        uint32_t merged = merges ? merge_heads(w, a, mixed) : mixed;
        let_go_of_variables(w->graph, merges ? mixed : PLAN_NONE, variables, a->sinks ? 3 : 2);
        return merged;
    }
    let_go_of_variables(w->graph, weights, variables, G_N_ELEMENTS(variables));
    return merges ? merge_heads(w, a, mixed) : mixed;
}

/* As one op of several kernels, which gathers the other ranks' keys and values
 * (plan/autograd/shared/ring.h). */
static uint32_t run_ring(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                         uint32_t v) {
    PlanGraphRing ring = {(int64_t)w->batch, (int64_t)a->heads, (int64_t)a->kv_heads,
                          (int64_t)w->seq, (int64_t)a->head_dim};
    return plan_graph_ring_attention(w->graph, (uint32_t[]){q, k, v}, &ring, a->scale);
}

/* What was repeated gets its gradient as a sum, which lies head by head. */
bool model_gradient_is_summed(const ModelWalk *w, const ModelAttention *a, char which) {
    return which != 'q' && repeats(w, a);
}

/* Where the kernel needs heads repeated, gradients of k and v are copied, too; sums of what was
 * repeated before lie in rows of tokens. A single head is apart as it is. Those of a ring come head
 * by head, which the cast to 16 bits ends here (plan/autograd/shared/ring.c). */
bool model_gradient_is_apart(const ModelWalk *w, const ModelAttention *a, char which) {
    if (a->ring) {
        return !plan_graph_is_compiled(w->graph) && which != 'q' && a->kv_heads > 1 &&
               plan_graph_product_dtype(w->graph) == PLAN_FP32;
    }
    if (a->groups_alone && which != 'q') {
        return false;
    }
    bool summed = model_gradient_is_summed(w, a, which);
    return (which == 'q' ? a->heads : a->kv_heads) > 1 &&
           (comes_apart(w, a, which) || (a->in_memory && w->seq > 1 && summed));
}

/* The gradient of k is the transpose of what its product makes: even a single head's cannot be seen
 * as rows where there are several sequences. */
static bool is_transposed(const ModelWalk *w, const ModelAttention *a, char which) {
    return which == 'k' && a->in_memory && !a->k_inside && a->heads == 1 && w->batch > 1 &&
           a->head_dim > 1;
}

/* Such a transpose is a view that is no matrix where there are several sequences, so each layer
 * that multiplies by it makes a copy. */
bool model_each_layer_copies(const ModelWalk *w, const ModelAttention *a, char which) {
    return which == 'k' && comes_apart(w, a, which) && !a->groups_alone && !repeats(w, a);
}

uint32_t model_run_heads(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which) {
    uint64_t heads = which == 'q' ? a->heads : a->kv_heads;
    bool turned = a->turned_together && which != 'v' && heads > 1;
    bool ringed = a->ring && !plan_graph_is_compiled(w->graph) && heads > 1 &&
                  !(a->norms_read && which != 'v');
    bool apart = which == 'v' && a->v_copied && heads > 1;
    bool copied = w->seq > 1 && ((which != 'q' && a->kv_heads > 1 && repeats(w, a)) || turned ||
                                 apart || ringed || is_transposed(w, a, which));
    PlanGraphHeads mode = model_gradient_is_apart(w, a, which) ? PLAN_HEADS_APART
                          : ringed && which == 'q'             ? PLAN_HEADS_OF_RING
                          : copied                             ? PLAN_HEADS_COPIED
                                                               : PLAN_HEADS_AS_THEY_ARE;
    return plan_graph_heads(w->graph, x, w->batch, w->seq, heads, a->head_dim, mode);
}

static uint32_t copy(const ModelWalk *w, uint32_t x) {
    PlanGraphValue v = *plan_graph_value_at(w->graph, x);
    PlanDtype dtype = (PlanDtype)v.dtype;
    return plan_graph_op(w->graph, PLAN_OP_COPY, &x, dtype, v.elements,
                         (int64_t[]){(int64_t)v.elements}, NULL);
}

/* Documents are to attention what sequences are, for they lie one behind the other. */
static ModelWalk documents_of(const ModelWalk *w) {
    ModelWalk documents = *w;
    if (w->graph->document) {
        documents.seq = w->graph->document;
        documents.batch = w->batch * w->seq / w->graph->document;
    }
    return documents;
}

/* The 16-bit kernel's output lies as q does: where that is head by head, rows of tokens are a copy
 * of it. */
uint32_t model_run_attention(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                             uint32_t v) {
    if (a->ring) {
        return run_ring(w, a, q, k, v);
    }
    ModelWalk documents = documents_of(w);
    uint32_t o = a->in_memory           ? run_in_memory(w, a, q, k, v)
                 : a->mask == PLAN_NONE ? run_kernel(&documents, a, q, k, v)
                                        : run_masked(w, a, q, k, v);
    bool apart = a->joined_apart && a->heads > 1 && w->seq > 1 && a->mask == PLAN_NONE &&
                 plan_graph_product_dtype(w->graph) != PLAN_FP32;
    return apart ? copy(w, o) : o;
}
