/* models/layers/stage.c - where a walk begins, and where that of a stage ends which is not the last
 * one. */
#include "models/layers/shared.h"

uint32_t model_enter_root(const ModelWalk *w, uint32_t root, uint64_t vocab,
                          ModelBatch *ret_batch) {
    PlanGraph *graph = w->graph;
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, w->rows, vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, w->rows, vocab);
    *ret_batch = (ModelBatch){tokens, targets};
    if (graph->pipeline.n_stages == 1) {
        plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
        return tokens;
    }
    uint32_t x = plan_graph_is_first_stage(graph)
                     ? tokens
                     : plan_graph_arriving(graph, model_walk_between(w).rows * w->width);
    plan_graph_enter(graph, root, &x, 1);
    return x;
}

void model_leave_stage(const ModelWalk *w, ModelStream stream) {
    w->graph->leaves = stream.a;
    plan_graph_leave(w->graph, &stream.a, 1);
    plan_graph_finish(w->graph, stream.a);
}
