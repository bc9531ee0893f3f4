/* models/layers/rotary.c - rotary embedding: rotates pairs of numbers of queries and keys by angles
 * that grow with positions. "Turned" below means rotated. */
#include "models/layers/rotary.h"

uint64_t model_rotary_part(const ModelNetwork *network, uint64_t head_dim) {
    return (uint64_t)((double)head_dim * network->rotary_share);
}

/* Elements from one token's heads to the next token's, in the input. */
static uint64_t stride_of(const ModelRotary *rotary, uint64_t heads, uint64_t head_dim) {
    return rotary->row ? rotary->row : heads * head_dim;
}

static uint64_t heads_of(const ModelAttention *a, char which) {
    return which == 'q' ? a->heads : a->kv_heads;
}

static bool is_fp32(const ModelWalk *w, uint32_t value) {
    uint32_t used = plan_graph_stand_in(w->graph, value);
    return plan_graph_value_at(w->graph, used)->dtype == PLAN_FP32;
}

/* Tables may be wider than what they turn, or that wider than they are. */
static PlanDtype dtype_of_product(const ModelWalk *w, uint32_t x, uint32_t table) {
    return is_fp32(w, x) || is_fp32(w, table) ? PLAN_FP32 : w->graph->dtype;
}

static uint32_t times_table(const ModelWalk *w, const ModelAttention *a, uint32_t x, uint32_t table,
                            char which, uint64_t stride) {
    uint64_t heads = heads_of(a, which), elements = w->rows * heads * a->head_dim;
    int64_t dims[] = {[TABLE_MUL_TOKENS] = (int64_t)w->rows,
                      [TABLE_MUL_HEADS] = (int64_t)heads,
                      [TABLE_MUL_DIM] = (int64_t)a->head_dim,
                      [TABLE_MUL_SEQ] = (int64_t)w->seq,
                      [TABLE_MUL_APART] = model_gradient_is_apart(w, a, which),
                      [TABLE_MUL_STRIDE] = (int64_t)stride};
    return plan_graph_op(w->graph, PLAN_OP_TABLE_MUL, (uint32_t[]){x, table},
                         dtype_of_product(w, x, table), elements, dims, NULL);
}

/* The two products of a rotation: the input times cosines, its rows as they are given, and the
 * half-turned input times sines, a dense tensor of its own. */
static uint32_t times_cosines(const ModelWalk *w, const ModelRotary *rotary,
                              const ModelAttention *a, uint32_t x, char which) {
    uint64_t stride = stride_of(rotary, heads_of(a, which), a->head_dim);
    return times_table(w, a, x, rotary->cosines, which, stride);
}

static uint32_t times_sines(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                            uint32_t turned, char which) {
    return times_table(w, a, turned, rotary->sines, which, heads_of(a, which) * a->head_dim);
}

/* Rows of two halves each, `heads` of which follow each other in rows of `stride` numbers. */
typedef struct {
    uint64_t rows, half, heads, stride;
} Halves;

/* join(-upper half of x, lower half); the views are made in the order of that, or before it. */
static uint32_t join_turned(const ModelWalk *w, const Halves *h, uint32_t x, bool views_first) {
    uint64_t rows = h->rows, half = h->half, n_half = rows * half, n = 2 * n_half;
    PlanDtype dtype = is_fp32(w, x) ? PLAN_FP32 : w->graph->dtype;
    int64_t of_upper[] = {[NEGATE_HALF_ROWS] = (int64_t)rows,
                          [NEGATE_HALF_HALF] = (int64_t)half,
                          [NEGATE_HALF_FROM] = (int64_t)half,
                          [NEGATE_HALF_HEADS] = (int64_t)h->heads,
                          [NEGATE_HALF_STRIDE] = (int64_t)h->stride};
    int64_t of_lower[] = {[JOIN_HALVES_ROWS] = (int64_t)rows,
                          [JOIN_HALVES_HALF] = (int64_t)half,
                          [JOIN_HALVES_HEADS] = (int64_t)h->heads,
                          [JOIN_HALVES_STRIDE] = (int64_t)h->stride};
    uint32_t lower = views_first ? plan_graph_half(w->graph, x, rows, half, false) : PLAN_NONE;
    uint32_t upper = plan_graph_half(w->graph, x, rows, half, true);
    uint32_t negative =
        plan_graph_op(w->graph, PLAN_OP_NEGATE_HALF, &upper, dtype, n_half, of_upper, NULL);
    lower = views_first ? lower : plan_graph_half(w->graph, x, rows, half, false);
    return plan_graph_op(w->graph, PLAN_OP_JOIN_HALVES, (uint32_t[]){negative, lower}, dtype, n,
                         of_lower, NULL);
}

/* Of neighbours each is a half of a row of two. */
static uint32_t half_turned(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                            uint32_t x, char which) {
    uint64_t heads = heads_of(a, which), half = a->head_dim / 2;
    uint64_t each = rotary->is_paired ? half : 1; /* rows of a head */
    Halves halves = {w->rows * heads * each, half / each, heads * each,
                     stride_of(rotary, heads, a->head_dim)};
    return join_turned(w, &halves, x, rotary->is_together);
}

static uint32_t sum_of(const ModelWalk *w, const ModelAttention *a, uint32_t x, uint32_t y,
                       char which) {
    uint64_t n = w->rows * heads_of(a, which) * a->head_dim;
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, x)->dtype;
    return plan_graph_op(w->graph, PLAN_OP_ADD, (uint32_t[]){x, y}, dtype, n,
                         (int64_t[]){[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)n}, NULL);
}

/* An empty view behind x: with a full rotation no part of a head is left over. */
static uint32_t rest_of(const ModelWalk *w, uint32_t x) {
    uint32_t rest = plan_graph_rest(w->graph, x);
    plan_graph_let_go_after(w->graph, rest, x);
    return rest;
}

/* transformers joins the rotated part with the rest even if that is empty, which copies. */
static uint32_t join_rest(const ModelWalk *w, const ModelAttention *a, uint32_t turned,
                          uint32_t rest, char which) {
    uint64_t n = w->rows * heads_of(a, which) * a->head_dim;
    return plan_graph_op(w->graph, PLAN_OP_JOIN_REST, (uint32_t[]){turned, rest}, w->graph->dtype,
                         n, (int64_t[]){(int64_t)n}, NULL);
}

/* *ret_last: the value that Python frees last here. */
static uint32_t rotate(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                       uint32_t x, char which, uint32_t *ret_last) {
    uint64_t heads = heads_of(a, which);
    uint32_t whole = x;
    if (rotary->ends_joined) { /* the part to rotate is a view of all of it */
        x = plan_graph_heads(w->graph, x, w->batch, w->seq, heads, a->head_dim,
                             PLAN_HEADS_AS_THEY_ARE);
    }
    uint32_t turned = half_turned(w, rotary, a, x, which);
    uint32_t product = times_cosines(w, rotary, a, x, which);
    uint32_t other = times_sines(w, rotary, a, turned, which);
    uint32_t y = sum_of(w, a, product, other, which);
    plan_graph_keep(w->graph, turned);
    plan_graph_let_go_after(w->graph, turned, other);
    *ret_last = rotary->ends_joined ? y : turned;
    return rotary->ends_joined ? join_rest(w, a, y, rest_of(w, whole), which) : y;
}

static uint32_t as_factor(const ModelWalk *w, const ModelRotary *rotary, uint32_t x) {
    return rotary->factors_widened ? model_run_widen(w, x) : x;
}

/* x * cos + half_turned(x) * sin, from left to right. */
static uint32_t rotate_in_order(const ModelWalk *w, const ModelRotary *rotary,
                                const ModelAttention *a, uint32_t x, char which) {
    uint32_t product = times_cosines(w, rotary, a, as_factor(w, rotary, x), which);
    uint32_t turned = half_turned(w, rotary, a, x, which);
    uint32_t other = times_sines(w, rotary, a, as_factor(w, rotary, turned), which);
    return sum_of(w, a, product, other, which);
}

static uint32_t turn(const ModelWalk *w, const ModelRotary *rotary, uint32_t x, uint64_t heads,
                     uint64_t head_dim) {
    uint64_t n = w->rows * heads * head_dim, stride = stride_of(rotary, heads, head_dim);
    return plan_graph_op(w->graph, PLAN_OP_ROPE, (uint32_t[]){x, rotary->cosines, rotary->sines},
                         w->graph->dtype, n,
                         (int64_t[]){[ROPE_TOKENS] = (int64_t)w->rows,
                                     [ROPE_HEADS] = (int64_t)heads,
                                     [ROPE_DIM] = (int64_t)head_dim,
                                     [ROPE_SEQ] = (int64_t)w->seq,
                                     [ROPE_BACK] = 0,
                                     [ROPE_STRIDE] = (int64_t)stride},
                         NULL);
}

/* x in fp32, its pairs multiplied; the gradient of what comes out is seen as complex numbers, for
 * which it has to lie head by head. */
static uint32_t turn_pairs(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                           uint32_t x, char which) {
    uint64_t heads = heads_of(a, which), n = w->rows * heads * a->head_dim;
    int64_t dims[] = {[TURN_TOKENS] = (int64_t)w->rows,
                      [TURN_HEADS] = (int64_t)heads,
                      [TURN_DIM] = (int64_t)a->head_dim,
                      [TURN_SEQ] = (int64_t)w->seq,
                      [TURN_STRIDE] = (int64_t)stride_of(rotary, heads, a->head_dim)};
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_TURN, (uint32_t[]){x, rotary->cosines}, PLAN_FP32,
                               n, dims, NULL);
    bool lies = heads == 1 || w->seq == 1 || model_gradient_is_summed(w, a, which);
    return plan_graph_heads(w->graph, y, w->batch, w->seq, heads, a->head_dim,
                            lies ? PLAN_HEADS_AS_THEY_ARE : PLAN_HEADS_COPIED);
}

static uint32_t turn_wide(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                          uint32_t x, char which) {
    return model_run_like(w, turn_pairs(w, rotary, a, model_run_widen(w, x), which), x);
}

/* As Meta's Llama code does it: pairs as complex numbers in fp32. Inductor fuses no complex
 * product, so it stays a kernel of its own. In eager mode the function's variables hold every
 * intermediate until it returns; compiled, none is held. */
static void rotate_complex(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                           uint32_t *q, uint32_t *k, uint32_t v) {
    PlanGraph *graph = w->graph;
    if (plan_graph_is_compiled(graph)) {
        *q = turn_wide(w, rotary, a, *q, 'q');
        *k = turn_wide(w, rotary, a, *k, 'k');
        return;
    }
    uint32_t made[] = {model_run_widen(w, *q), model_run_widen(w, *k), 0, 0};
    made[2] = turn_pairs(w, rotary, a, made[0], 'q');
    made[3] = turn_pairs(w, rotary, a, made[1], 'k');
    uint32_t turned_q = model_run_like(w, made[2], *q);
    uint32_t turned_k = model_run_like(w, made[3], *k);
    for (unsigned i = 0; i < G_N_ELEMENTS(made); i++) {
        plan_graph_keep(graph, made[i]);
    }
    plan_graph_keep(graph, *q);
    plan_graph_keep(graph, *k);
    plan_graph_let_go_after(graph, *q, made[3]);
    plan_graph_let_go_after(graph, *k, *q);
    plan_graph_let_go_after(graph, v, turned_k);
    *q = turned_q;
    *k = turned_k;
}

/* q, k = turned_q, turned_k: the variables that held the inputs take the results of a function,
 * inside of which the inputs lived. */
static void take_names(PlanGraph *graph, uint32_t *q, uint32_t *k, uint32_t v, uint32_t turned_q,
                       uint32_t turned_k) {
    plan_graph_keep(graph, *q);
    plan_graph_keep(graph, *k);
    plan_graph_let_go_after(graph, *q, turned_k);
    plan_graph_let_go_after(graph, *k, *q);
    plan_graph_let_go_after(graph, v, turned_k);
    *q = turned_q;
    *k = turned_k;
}

/* ---- a part of each head -------------------------------------------------------------------- */

/* A head cut in two: the numbers that are rotated, and the rest. */
typedef struct {
    uint64_t heads, rows;
    uint64_t turned; /* how many numbers of a head */
    uint32_t part, rest;
} Parts;

static Parts parts_of(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                      uint32_t x, char which) {
    uint64_t n = rotary->part, all = a->head_dim;
    Parts parts = {.heads = which == 'q' ? a->heads : a->kv_heads, .turned = n};
    parts.rows = w->rows * parts.heads;
    parts.part = plan_graph_columns(w->graph, x, &(PlanGraphColumns){parts.rows, n, 0, all, n, 0});
    PlanGraphColumns rest = {parts.rows, all - n, n, all, all, n};
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, x)->dtype;
    if (dtype != w->graph->dtype) { /* autocast: it gets its gradient in a tensor of its own */
        rest.dy_width = rest.cols;
        rest.dy_from = 0;
    }
    parts.rest = plan_graph_columns(w->graph, x, &rest);
    return parts;
}

/* `cols` columns of a matrix `width` wide, from column `from` on. */
typedef struct {
    uint32_t value;
    uint64_t cols, width, from;
} Columns;

/* All `cols` columns of x, and those of y behind them. */
static uint32_t join(const ModelWalk *w, uint64_t rows, uint32_t x, uint64_t cols, Columns y) {
    int64_t dims[] = {[JOIN_COLUMNS_ROWS] = (int64_t)rows,
                      [JOIN_COLUMNS_A_COLS] = (int64_t)cols,
                      [JOIN_COLUMNS_B_COLS] = (int64_t)y.cols,
                      [JOIN_COLUMNS_WIDTH] = (int64_t)y.width,
                      [JOIN_COLUMNS_FROM] = (int64_t)y.from};
    return plan_graph_op(w->graph, PLAN_OP_JOIN_COLUMNS, (uint32_t[]){x, y.value}, w->graph->dtype,
                         rows * (cols + y.cols), dims, NULL);
}

/* x: a part of each head, in rows so wide. */
static uint32_t times_table_of_part(const ModelWalk *w, const ModelAttention *a, const Parts *parts,
                                    uint32_t x, uint64_t width, uint32_t table) {
    int64_t dims[] = {[TABLE_MUL_COLUMNS_TOKENS] = (int64_t)w->rows,
                      [TABLE_MUL_COLUMNS_HEADS] = (int64_t)parts->heads,
                      [TABLE_MUL_COLUMNS_DIM] = (int64_t)parts->turned,
                      [TABLE_MUL_COLUMNS_SEQ] = (int64_t)w->seq,
                      [TABLE_MUL_COLUMNS_WIDTH] = (int64_t)width,
                      [TABLE_MUL_COLUMNS_BACK] = (int64_t)a->head_dim};
    return plan_graph_op(w->graph, PLAN_OP_TABLE_MUL_COLUMNS, (uint32_t[]){x, table},
                         w->graph->dtype, parts->rows * parts->turned, dims, NULL);
}

/* join(-upper half of the part, lower half) */
static uint32_t part_turned(const ModelWalk *w, const ModelAttention *a, const Parts *parts) {
    uint64_t n = parts->turned, half = n / 2, all = a->head_dim, rows = parts->rows;
    uint64_t n_half = rows * half;
    uint32_t x = parts->part;
    uint32_t lower =
        plan_graph_columns(w->graph, x, &(PlanGraphColumns){rows, half, 0, n, n, half});
    uint32_t upper =
        plan_graph_columns(w->graph, x, &(PlanGraphColumns){rows, half, half, n, half, 0});
    uint32_t negative =
        plan_graph_op(w->graph, PLAN_OP_NEGATE_COLUMNS, &upper, w->graph->dtype, n_half,
                      (int64_t[]){[NEGATE_COLUMNS_ROWS] = (int64_t)rows,
                                  [NEGATE_COLUMNS_COLS] = (int64_t)half,
                                  [NEGATE_COLUMNS_WIDTH] = (int64_t)all,
                                  [NEGATE_COLUMNS_FROM] = (int64_t)half},
                      NULL);
    return join(w, rows, negative, half, (Columns){lower, half, all, 0});
}

/* The same of neighbours, each a half of a row of two; a head has as many rows as pairs. */
static uint32_t pairs_turned(const ModelWalk *w, const ModelAttention *a, const Parts *parts) {
    uint64_t pairs = parts->turned / 2;
    Halves halves = {parts->rows * pairs, 1, pairs, a->head_dim};
    return join_turned(w, &halves, parts->part, true);
}

static uint32_t turn_part(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                          const Parts *parts) {
    uint32_t product = times_table_of_part(w, a, parts, parts->part, a->head_dim, rotary->cosines);
    uint32_t turned = (rotary->is_paired ? pairs_turned : part_turned)(w, a, parts);
    uint32_t other = times_table_of_part(w, a, parts, turned, parts->turned, rotary->sines);
    return model_run_elementwise(w, PLAN_OP_ADD, product, other, parts->rows * parts->turned);
}

/* q, k = rotate(q, k): rotates a part of each head and joins the rest to it, head by head. */
static void rotate_parts(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                         uint32_t *q, uint32_t *k, uint32_t v) {
    uint64_t n = rotary->part, all = a->head_dim;
    Parts of_q = parts_of(w, rotary, a, *q, 'q'), of_k = parts_of(w, rotary, a, *k, 'k');
    uint32_t turned_q = turn_part(w, rotary, a, &of_q);
    uint32_t turned_k = turn_part(w, rotary, a, &of_k);
    turned_q = join(w, of_q.rows, turned_q, n, (Columns){of_q.rest, all - n, all, n});
    turned_k = join(w, of_k.rows, turned_k, n, (Columns){of_k.rest, all - n, all, n});
    take_names(w->graph, q, k, v, turned_q, turned_k);
}

/* ---- both ----------------------------------------------------------------------------------- */

/* x cut into the part that is rotated (all of it) and an empty rest that is joined to it again;
 * rest PLAN_NONE: the network's code does not join. */
typedef struct {
    uint32_t part, rest;
} Ends;

static Ends ends_of(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                    uint32_t x, char which) {
    if (!rotary->ends_joined) {
        return (Ends){x, PLAN_NONE};
    }
    uint32_t part = plan_graph_heads(w->graph, x, w->batch, w->seq, heads_of(a, which), a->head_dim,
                                     PLAN_HEADS_AS_THEY_ARE);
    return (Ends){part, rest_of(w, x)};
}

static uint32_t rotate_ends(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                            const Ends *ends, char which) {
    uint32_t turned = rotate_in_order(w, rotary, a, ends->part, which);
    return ends->rest == PLAN_NONE ? turned : join_rest(w, a, turned, ends->rest, which);
}

/* To the dtypes of q and k; what was rounded has names in that function. */
static void round_both(const ModelWalk *w, uint32_t q, uint32_t k, uint32_t *turned_q,
                       uint32_t *turned_k) {
    uint32_t wide_q = *turned_q, wide_k = *turned_k;
    *turned_q = model_run_like(w, wide_q, q);
    *turned_k = model_run_like(w, wide_k, k);
    if (*turned_q != wide_q) {
        plan_graph_keep(w->graph, wide_q);
        plan_graph_keep(w->graph, wide_k);
        plan_graph_let_go_after(w->graph, wide_k, wide_q);
    }
}

/* One Python function rotates both. */
static void rotate_together(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                            uint32_t *q, uint32_t *k, uint32_t v) {
    uint32_t from_q = rotary->is_widened ? model_run_widen(w, *q) : *q;
    uint32_t from_k = rotary->is_widened ? model_run_widen(w, *k) : *k;
    Ends of_q = ends_of(w, rotary, a, from_q, 'q'), of_k = ends_of(w, rotary, a, from_k, 'k');
    uint32_t turned_q = rotate_ends(w, rotary, a, &of_q, 'q');
    uint32_t turned_k = rotate_ends(w, rotary, a, &of_k, 'k');
    if (rotary->is_wide || rotary->is_widened || rotary->factors_widened) {
        round_both(w, *q, *k, &turned_q, &turned_k);
    }
    if (from_q != *q) { /* names of that function, too */
        plan_graph_keep(w->graph, from_q);
        plan_graph_keep(w->graph, from_k);
    }
    take_names(w->graph, q, k, v, turned_q, turned_k);
}

/* ---- halves that are turned by themselves ---------------------------------------------------- */

/* Half of each head times a table; its gradient lies in rows of `back` numbers, from back_from on.
 */
static uint32_t times_half(const ModelWalk *w, const ModelAttention *a, uint32_t half,
                           uint32_t table, char which, uint64_t back, uint64_t back_from) {
    uint64_t heads = heads_of(a, which), n = a->head_dim / 2;
    int64_t dims[] = {[TABLE_MUL_PART_TOKENS] = (int64_t)w->rows,
                      [TABLE_MUL_PART_HEADS] = (int64_t)heads,
                      [TABLE_MUL_PART_DIM] = (int64_t)n,
                      [TABLE_MUL_PART_SEQ] = (int64_t)w->seq,
                      [TABLE_MUL_PART_WIDTH] = (int64_t)a->head_dim,
                      [TABLE_MUL_PART_BACK] = (int64_t)back,
                      [TABLE_MUL_PART_BACK_FROM] = (int64_t)back_from,
                      [TABLE_MUL_PART_APART] = model_gradient_is_apart(w, a, which)};
    return plan_graph_op(w->graph, PLAN_OP_TABLE_MUL_PART, (uint32_t[]){half, table},
                         w->graph->dtype, w->rows * heads * n, dims, NULL);
}

/* join(lower cos - upper sin, upper cos + lower sin) */
static uint32_t turn_halves(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                            uint32_t x, char which) {
    uint64_t n = a->head_dim / 2, all = a->head_dim, rows = w->rows * heads_of(a, which);
    uint32_t halves[2];
    plan_graph_split(w->graph, x, rows, (uint64_t[]){n, n}, 2, halves);
    uint32_t plus = times_half(w, a, halves[0], rotary->cosines, which, all, 0);
    uint32_t minus = times_half(w, a, halves[1], rotary->sines, which, n, 0);
    int64_t dims[] = {
        [SUB_ROWS] = (int64_t)rows, [SUB_COLS] = (int64_t)n, [SUB_BACK] = (int64_t)all};
    uint32_t lower = plan_graph_op(w->graph, PLAN_OP_SUB, (uint32_t[]){plus, minus},
                                   w->graph->dtype, rows * n, dims, NULL);
    uint32_t own = times_half(w, a, halves[1], rotary->cosines, which, all, n);
    uint32_t other = times_half(w, a, halves[0], rotary->sines, which, all, n);
    uint32_t upper = model_run_elementwise(w, PLAN_OP_ADD, own, other, rows * n);
    uint32_t y = join(w, rows, lower, n, (Columns){upper, n, n, 0});
    plan_graph_keep(w->graph, lower);
    plan_graph_keep(w->graph, upper);
    plan_graph_let_go_after(w->graph, upper, lower);
    return y;
}

static void rotate_halves(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                          uint32_t *q, uint32_t *k, uint32_t v) {
    uint32_t turned_q = turn_halves(w, rotary, a, *q, 'q');
    uint32_t turned_k = turn_halves(w, rotary, a, *k, 'k');
    take_names(w->graph, q, k, v, turned_q, turned_k);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

uint32_t model_each_twice(const ModelWalk *w, uint32_t table, uint64_t numbers, uint64_t width) {
    int64_t dims[] = {[REPEAT_HEADS_BATCH] = 1,
                      [REPEAT_HEADS_SEQ] = (int64_t)w->seq,
                      [REPEAT_HEADS_HEADS] = (int64_t)numbers,
                      [REPEAT_HEADS_REPEATS] = 2,
                      [REPEAT_HEADS_DIM] = 1,
                      [REPEAT_HEADS_APART] = PLAN_REPEATED_INSIDE,
                      [REPEAT_HEADS_STRIDE] = (int64_t)width};
    uint32_t used = plan_graph_stand_in(w->graph, table);
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, used)->dtype;
    return plan_graph_op(w->graph, PLAN_OP_REPEAT_HEADS, &table, dtype, 2 * w->seq * numbers, dims,
                         NULL);
}

/* By a function that makes the tables for them first, of half of each; they go before what it was
 * given. */
static void rotate_pairs(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                         uint32_t *q, uint32_t *k, uint32_t v) {
    PlanGraph *graph = w->graph;
    uint64_t turned = rotary->part ? rotary->part : a->head_dim;
    uint32_t given_q = *q, given_k = *k;
    ModelRotary twice = *rotary;
    twice.cosines = model_each_twice(w, rotary->cosines, turned / 2, turned);
    twice.sines = model_each_twice(w, rotary->sines, turned / 2, turned);
    (rotary->part ? rotate_parts : rotate_together)(w, &twice, a, q, k, v);
    plan_graph_keep(graph, twice.cosines);
    plan_graph_keep(graph, twice.sines);
    if (rotary->factors_widened && !is_fp32(w, given_q)) {
        return; /* they are older than what was rounded */
    }
    plan_graph_let_go_after(graph, twice.cosines, *k);
    plan_graph_let_go_after(graph, twice.sines, twice.cosines);
    plan_graph_let_go_after(graph, given_q, twice.sines);
    plan_graph_let_go_after(graph, given_k, given_q);
}

/* As transformers has it: in the dtype of compute, halves of a head for pairs. */
static void rotate_real(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                        uint32_t *q, uint32_t *k, uint32_t v) {
    PlanGraph *graph = w->graph;
    uint32_t last, turned_q = rotate(w, rotary, a, *q, 'q', &last);
    uint32_t turned_k = rotate(w, rotary, a, *k, 'k', &last);
    plan_graph_keep(graph, *k);
    plan_graph_keep(graph, *q);
    plan_graph_let_go_after(graph, *k, last);
    plan_graph_let_go_after(graph, *q, *k);
    plan_graph_let_go_after(graph, v, turned_k);
    *q = turned_q;
    *k = turned_k;
}

void model_rotate(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                  uint32_t *q, uint32_t *k, uint32_t v) {
    if (rotary->is_complex) {
        rotate_complex(w, rotary, a, q, k, v);
    } else if (rotary->is_paired && !rotary->tables_paired) {
        rotate_pairs(w, rotary, a, q, k, v);
    } else if (rotary->part) {
        rotate_parts(w, rotary, a, q, k, v);
    } else if (w->graph->now.fused) {
        *q = turn(w, rotary, *q, a->heads, a->head_dim);
        *k = turn(w, rotary, *k, a->kv_heads, a->head_dim);
    } else if (rotary->is_halved) {
        rotate_halves(w, rotary, a, q, k, v);
    } else if (rotary->is_together) {
        rotate_together(w, rotary, a, q, k, v);
    } else {
        rotate_real(w, rotary, a, q, k, v);
    }
}

static uint32_t table_of(const ModelWalk *w, const ModelRotary *rotary, uint32_t table,
                         PlanDtype dtype) {
    if (dtype == PLAN_FP32 || rotary->is_complex) {
        return table;
    }
    uint64_t elements = w->seq * w->graph->ropes[0].dim;
    int64_t n = (int64_t)elements;
    uint32_t cast = plan_graph_op(w->graph, PLAN_OP_CAST, &table, dtype, elements, &n, NULL);
    plan_graph_hold(w->graph, cast);
    return cast;
}

void model_cast_tables(const ModelWalk *w, ModelRotary *rotary, unsigned tables, uint32_t x) {
    uint32_t given = plan_graph_stand_in(w->graph, x);
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, given)->dtype;
    rotary->cosines = table_of(w, rotary, w->graph->ropes[tables].cosines, dtype);
    rotary->sines = table_of(w, rotary, w->graph->ropes[tables].sines, dtype);
}
