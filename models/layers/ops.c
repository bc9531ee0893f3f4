/* models/layers/ops.c - single ops, with the dims that their kinds have. */
#include "models/layers/layers.h"

uint32_t model_linear_op(const ModelWalk *w, uint32_t weight, uint32_t bias, PlanDtype dtype,
                         uint32_t x, uint64_t out, uint64_t in, uint64_t parts) {
    return plan_graph_op(w->graph, parts ? PLAN_OP_LINEAR_PARTS : PLAN_OP_LINEAR,
                         (uint32_t[]){x, weight, bias}, dtype, w->rows * out,
                         (int64_t[]){[LINEAR_PARTS_M] = (int64_t)w->rows,
                                     [LINEAR_PARTS_N] = (int64_t)out,
                                     [LINEAR_PARTS_K] = (int64_t)in,
                                     [LINEAR_PARTS_PARTS] = (int64_t)parts},
                         NULL);
}

uint32_t model_embedding_op(const ModelWalk *w, const ModelLayer *layer, uint32_t index, uint64_t n,
                            uint64_t vocab) {
    return plan_graph_op(w->graph, PLAN_OP_EMBEDDING, (uint32_t[]){layer->weight, index},
                         w->graph->dtype, n * w->width,
                         (int64_t[]){[EMBEDDING_N] = (int64_t)n,
                                     [EMBEDDING_WIDTH] = (int64_t)w->width,
                                     [EMBEDDING_VOCAB] = (int64_t)vocab},
                         NULL);
}

uint32_t model_run_add(const ModelWalk *w, uint32_t a, uint32_t b, uint64_t elements_b) {
    uint64_t elements = w->rows * w->width;
    return plan_graph_op(w->graph, PLAN_OP_ADD, (uint32_t[]){a, b}, w->graph->dtype, elements,
                         (int64_t[]){[ADD_N] = (int64_t)elements, [ADD_NB] = (int64_t)elements_b},
                         NULL);
}

uint32_t model_run_residual(const ModelWalk *w, uint32_t x, uint32_t term) {
    uint32_t y = model_run_add(w, x, term, w->rows * w->width);
    plan_graph_let_go_after(w->graph, x, term);
    return y;
}

uint32_t model_run_elementwise(const ModelWalk *w, PlanOpKind kind, uint32_t a, uint32_t b,
                               uint64_t n) {
    return plan_graph_op(w->graph, kind, (uint32_t[]){a, b}, w->graph->dtype, n,
                         (int64_t[]){[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)n}, NULL);
}

uint32_t model_run_widen(const ModelWalk *w, uint32_t x) {
    return plan_graph_cast(w->graph, x, PLAN_FP32);
}

uint32_t model_run_like(const ModelWalk *w, uint32_t x, uint32_t other) {
    other = plan_graph_stand_in(w->graph, other);
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, other)->dtype;
    return plan_graph_cast(w->graph, x, dtype);
}
