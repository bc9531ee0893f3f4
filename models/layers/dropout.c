/* models/layers/dropout.c - dropout, and where its random numbers come from. */
#include "models/layers/layers.h"

uint32_t model_dropout(const ModelWalk *w, uint32_t parent, const char *name) {
    return w->dropout > 0 ? plan_graph_module(w->graph, parent, name, "Dropout", false) : PLAN_NONE;
}

int64_t model_dropouts_so_far(const PlanGraph *graph) {
    int64_t n = graph->pipeline.dropouts_before;
    for (guint i = 0; i < graph->ops.len; i++) {
        n += plan_graph_op_at(graph, i)->kind == PLAN_OP_DROPOUT;
    }
    return n;
}

/* A module that hands on what it is given. */
static uint32_t pass_by(const ModelWalk *w, uint32_t module, uint32_t x) {
    if (module != PLAN_NONE) {
        plan_graph_enter(w->graph, module, &x, 1);
        plan_graph_leave(w->graph, &x, 1);
    }
    return x;
}

uint32_t model_run_dropout_of(const ModelWalk *w, double share, uint32_t module, uint32_t x,
                              uint64_t n) {
    if (w->graph->evaluates) {
        return pass_by(w, module, x);
    }
    uint8_t dtype = plan_graph_value_at(w->graph, x)->dtype;
    PlanGraphResult results[] = {{(PlanDtype)dtype, n}, {PLAN_UINT8, n}};
    if (module != PLAN_NONE) {
        plan_graph_enter(w->graph, module, &x, 1);
    }
    uint32_t y =
        plan_graph_op_making(w->graph, PLAN_OP_DROPOUT, &x, results,
                             (int64_t[]){[DROPOUT_N] = (int64_t)n,
                                         [DROPOUT_STREAM] = model_dropouts_so_far(w->graph),
                                         [DROPOUT_MICROBATCHES] = 1},
                             &share);
    uint32_t mask = y + 1;
    plan_graph_let_go_after(w->graph, x, mask); /* the mask goes when the function returns */
    if (module != PLAN_NONE) {
        plan_graph_leave(w->graph, &y, 1);
    }
    return y;
}

uint32_t model_run_dropout(const ModelWalk *w, uint32_t module, uint32_t x, uint64_t n) {
    return w->dropout == 0 ? x : model_run_dropout_of(w, w->dropout, module, x, n);
}
