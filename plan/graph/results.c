#include "plan/graph/results.h"

#include "plan/graph/boundaries.h"

static uint32_t copy_of(PlanGraph *graph, uint32_t x) {
    const PlanGraphValue *v = plan_graph_value_at(graph, x);
    PlanGraphValue copy = {.parameter = PLAN_NONE,
                           .base = PLAN_NONE,
                           .elements = v->elements,
                           .dtype = v->dtype,
                           .requires_grad = v->requires_grad};
    uint32_t values[] = {x, plan_graph_add_value(graph, copy)};
    plan_graph_add_op(graph, plan_graph_new_op(PLAN_GRAPH_RESULT, 1, 1), values,
                      (const int64_t[]){(int64_t)copy.elements}, 1);
    return values[1];
}

/* Without gradients DDP copies all the same, returns what it was given, and lets go of the copies,
 * a tuple that goes from its end. */
static void drop_copies(PlanGraph *graph, const uint32_t *copies, unsigned n) {
    for (unsigned i = n; i-- > 0;) {
        plan_graph_hold_until(graph, copies[i], graph->results_copied);
        if (i + 1 < n) {
            plan_graph_let_go_after(graph, copies[i], copies[i + 1]);
        }
    }
}

void plan_results_copy(PlanGraph *graph, const uint32_t *results, unsigned n) {
    uint32_t *copies = g_newa(uint32_t, n + 1);
    for (unsigned i = 0; i < n; i++) {
        uint32_t x = plan_graph_stand_in(graph, results[i]);
        copies[i] = copy_of(graph, plan_boundary_differentiated(graph, x, n));
    }
    graph->results_copied = graph->steps.len - 1;
    if (graph->evaluates) {
        drop_copies(graph, copies, n);
        return;
    }
    for (unsigned i = 1; i < n; i++) { /* as a list of Python's goes */
        plan_graph_let_go_after(graph, results[n - i - 1], results[n - i]);
    }
    for (unsigned i = 0; i < n; i++) {
        plan_graph_hold_until(graph, results[i], graph->results_copied);
        plan_graph_stand_for(graph, results[i], copies[i]);
    }
}
