/* plan/graph/latent.c - ops of latent attention, which autograd/latent.c writes. */
#include "plan/graph/private.h"

void plan_graph_latent_split(PlanGraph *graph, uint32_t x, const PlanGraphLatentSplit *split,
                             uint32_t *ret_views) {
    uint64_t elements = plan_graph_value_at(graph, x)->elements;
    uint32_t values[3] = {x};
    for (unsigned i = 0; i < 2; i++) {
        values[1 + i] = ret_views[i] = plan_graph_add_view(graph, x, 0, elements);
    }
    plan_graph_add_op(graph, plan_graph_new_op(PLAN_GRAPH_LATENT_SPLIT, 1, 2), values,
                      (const int64_t *)split, sizeof *split / sizeof(int64_t));
}

uint32_t plan_graph_latent_rotate(PlanGraph *graph, uint32_t x, uint32_t turns,
                                  const PlanGraphLatentRotation *turn) {
    PlanGraphValue given = *plan_graph_value_at(graph, x);
    PlanGraphValue made = {.parameter = PLAN_NONE,
                           .base = PLAN_NONE,
                           .elements = (uint64_t)(turn->tokens * turn->heads * turn->dim),
                           .dtype = given.dtype,
                           .requires_grad = given.requires_grad};
    uint32_t values[] = {x, turns, plan_graph_add_value(graph, made)};
    plan_graph_add_op(graph, plan_graph_new_op(PLAN_GRAPH_LATENT_ROTATE, 2, 1), values,
                      (const int64_t *)turn, sizeof *turn / sizeof(int64_t));
    return values[2];
}

uint32_t plan_graph_latent_kept(PlanGraph *graph, uint32_t x) {
    PlanGraphValue same = *plan_graph_value_at(graph, x);
    same.base = PLAN_NONE;
    same.requires_grad = false;
    uint32_t values[] = {x, plan_graph_add_value(graph, same)};
    plan_graph_add_op(graph, plan_graph_new_op(PLAN_GRAPH_LATENT_KEPT, 1, 1), values, NULL, 0);
    return values[1];
}
