/* models/layers/router.h - which experts each token goes to, and with what scores.
 *
 * Inside models/layers only; the hidden layer around it is experts.c.
 */
#pragma once

#include "models/layers/experts.h"

/* What goes from step to step of a walk; pairs: of a token and one of its experts; own: those that
 * come to this rank's experts, as many as it has itself unless the router overloads it. */
typedef struct {
    const ModelWalk *w;
    const ModelExperts *experts;
    uint64_t pairs, own;
} ModelExpertWalk;

/* The scores and the experts of each pair; counts: of tokens by expert. */
typedef struct {
    uint32_t top, chosen, counts;
} ModelRouted;

ModelRouted model_router_run(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                             uint32_t x);
/* How many tokens each expert was chosen by. */
uint32_t model_router_count(const ModelExpertWalk *walk, uint32_t chosen);

static inline uint32_t model_expert_op(const ModelExpertWalk *walk, PlanOpKind kind,
                                       const uint32_t *inputs, PlanGraphResult result,
                                       const int64_t *dims, const double *attrs) {
    return plan_graph_op(walk->w->graph, kind, inputs, result.dtype, result.elements, dims, attrs);
}

/* In a variable of a function's, until that returns; what a compiler makes has no names. */
static inline void model_expert_hold(const ModelExpertWalk *walk, uint32_t tensor) {
    if (!walk->w->graph->now.in_parts) {
        plan_graph_hold(walk->w->graph, tensor);
    }
}
