/* plan/graph/views.c - ops without a kernel forward: what they make shares the storage of x. */
#include "plan/graph/private.h"
#include "plan/op/names.h"

/* Views of columns that stand side by side in x's rows, or of matrices one behind the other. */
static void split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                  bool in_rows, uint32_t *ret_views) {
    uint32_t values[PLAN_MAX_SLOTS] = {x};
    uint64_t width = 0;
    g_assert(n < PLAN_MAX_SLOTS);
    for (unsigned i = 0; i < n; i++) {
        values[1 + i] = ret_views[i] =
            plan_graph_add_view(graph, x, in_rows ? width : rows * width, rows * cols[i]);
        width += cols[i];
    }
    int64_t dims[] = {
        [CONCAT_COLUMNS_ROWS] = (int64_t)rows, [CONCAT_COLUMNS_COLS] = (int64_t)width};
    plan_graph_add_op(graph, plan_graph_new_op(PLAN_GRAPH_SPLIT, 1, n), values, dims,
                      G_N_ELEMENTS(dims));
}

void plan_graph_split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views) {
    split(graph, x, rows, cols, n, true, ret_views);
}

void plan_graph_parts(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views) {
    split(graph, x, rows, cols, n, false, ret_views);
}

static uint32_t add_view_op(PlanGraph *graph, PlanGraphKind kind, uint32_t x, uint64_t offset,
                            uint64_t elements, const int64_t *dims, unsigned n_dims) {
    uint32_t values[] = {x, plan_graph_add_view(graph, x, offset, elements)};
    plan_graph_add_op(graph, plan_graph_new_op(kind, 1, 1), values, dims, n_dims);
    return values[1];
}

uint32_t plan_graph_half(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t half, bool upper) {
    int64_t dims[] = {[PLAN_GRAPH_HALF_ROWS] = (int64_t)rows,
                      [PLAN_GRAPH_HALF_HALF] = (int64_t)half,
                      [PLAN_GRAPH_HALF_FROM] = upper ? (int64_t)half : 0};
    return add_view_op(graph, PLAN_GRAPH_HALF, x, 0, 2 * rows * half, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_columns(PlanGraph *graph, uint32_t x, const PlanGraphColumns *columns) {
    int64_t dims[] = {[PLAN_GRAPH_COLUMNS_ROWS] = (int64_t)columns->rows,
                      [PLAN_GRAPH_COLUMNS_COLS] = (int64_t)columns->cols,
                      [PLAN_GRAPH_COLUMNS_FROM] = (int64_t)columns->from,
                      [PLAN_GRAPH_COLUMNS_TOTAL] = (int64_t)columns->total,
                      [PLAN_GRAPH_COLUMNS_DY_WIDTH] = (int64_t)columns->dy_width,
                      [PLAN_GRAPH_COLUMNS_DY_FROM] = (int64_t)columns->dy_from};
    uint64_t elements = plan_graph_value_at(graph, x)->elements;
    return add_view_op(graph, PLAN_GRAPH_COLUMNS, x, 0, elements, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_slice(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t width,
                          uint64_t from, uint64_t cols) {
    int64_t dims[] = {[PLAN_GRAPH_SLICE_ROWS] = (int64_t)rows,
                      [PLAN_GRAPH_SLICE_WIDTH] = (int64_t)width,
                      [PLAN_GRAPH_SLICE_FROM] = (int64_t)from};
    return add_view_op(graph, PLAN_GRAPH_SLICE, x, from, rows * cols, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_rest(PlanGraph *graph, uint32_t x) {
    return add_view_op(graph, PLAN_GRAPH_REST, x, 0, 0, NULL, 0);
}

uint32_t plan_graph_heads(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t heads, uint64_t head_dim, PlanGraphHeads mode) {
    int64_t dims[] = {[HEADS_COPY_BATCH] = (int64_t)batch,
                      [HEADS_COPY_SEQ] = (int64_t)seq,
                      [HEADS_COPY_HEADS] = (int64_t)heads,
                      [HEADS_COPY_DIM] = (int64_t)head_dim,
                      [PLAN_GRAPH_HEADS_MODE] = mode};
    return add_view_op(graph, PLAN_GRAPH_HEADS, x, 0, batch * seq * heads * head_dim, dims,
                       G_N_ELEMENTS(dims));
}

uint32_t plan_graph_repeated(PlanGraph *graph, uint32_t x, uint64_t times) {
    uint64_t elements = plan_graph_value_at(graph, x)->elements;
    int64_t dims[] = {[PLAN_GRAPH_REPEATED_TIMES] = (int64_t)times,
                      [PLAN_GRAPH_REPEATED_ELEMENTS] = (int64_t)elements};
    return add_view_op(graph, PLAN_GRAPH_REPEATED, x, 0, elements, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_shown(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t times, uint64_t head_dim) {
    int64_t dims[] = {[SUM_HEADS_BATCH] = (int64_t)batch,
                      [SUM_HEADS_SEQ] = (int64_t)seq,
                      [SUM_HEADS_HEADS] = 1,
                      [SUM_HEADS_REPEATS] = 1,
                      [SUM_HEADS_DIM] = (int64_t)head_dim,
                      [SUM_HEADS_APART] = PLAN_REPEATED_INSIDE};
    uint32_t view = add_view_op(graph, PLAN_GRAPH_SHOWN, x, 0, batch * seq * head_dim, dims,
                                G_N_ELEMENTS(dims));
    plan_graph_value_at(graph, view)->shown = (uint32_t)times;
    return view;
}

uint32_t plan_graph_reshaped(PlanGraph *graph, uint32_t x) {
    uint64_t elements = plan_graph_value_at(graph, x)->elements;
    return add_view_op(graph, PLAN_GRAPH_RESHAPED, x, 0, elements, NULL, 0);
}

uint32_t plan_graph_detached(PlanGraph *graph, uint32_t x) {
    uint64_t elements = plan_graph_value_at(graph, x)->elements;
    uint32_t view = add_view_op(graph, PLAN_GRAPH_DETACHED, x, 0, elements, NULL, 0);
    plan_graph_value_at(graph, view)->requires_grad = false;
    return view;
}
