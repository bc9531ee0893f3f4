/* plan/graph/steps.c - steps of the walk, and what is asked while they are written: until which
 * step a value is held, which module runs, and what a name stands for.
 */
#include "plan/graph/private.h"

uint32_t plan_graph_add_refs(PlanGraph *graph, const uint32_t *values, unsigned n) {
    uint32_t *refs;
    plan_vector_extend(&graph->value_refs, n, &refs);
    for (unsigned i = 0; i < n; i++) {
        refs[i] = values[i];
    }
    return graph->value_refs.len - n;
}

void plan_graph_add_step(PlanGraph *graph, PlanGraphStepKind kind, uint32_t index,
                         const uint32_t *values, unsigned n) {
    PlanGraphStep step = {.kind = kind,
                          .index = index,
                          .values = plan_graph_add_refs(graph, values, n),
                          .n_values = n};
    plan_vector_push(&graph->steps, step);
}

void plan_graph_hold_until(PlanGraph *graph, uint32_t value, uint32_t step) {
    uint32_t *hold = &plan_graph_value_at(graph, value)->held_until;
    if (*hold == PLAN_NONE || *hold < step) {
        *hold = step;
    }
}

uint32_t plan_graph_module_now(const PlanGraph *graph) {
    uint32_t n = graph->now.frames->len;
    return n ? g_array_index(graph->now.frames, uint32_t, n - 2) : 0;
}

void plan_graph_let_go_after(PlanGraph *graph, uint32_t value, uint32_t other) {
    plan_graph_value_at(graph, plan_graph_stand_in(graph, value))->rank =
        plan_graph_value_at(graph, plan_graph_stand_in(graph, other))->rank + 1;
}

uint32_t plan_graph_stand_in(const PlanGraph *graph, uint32_t value) {
    const GArray *all = graph->now.stand_ins;
    uint32_t other = value < all->len ? g_array_index(all, uint32_t, value) : PLAN_NONE;
    return other == PLAN_NONE ? value : other;
}

void plan_graph_stand_for(PlanGraph *graph, uint32_t name, uint32_t value) {
    uint32_t none = PLAN_NONE;
    while (graph->now.stand_ins->len <= name) {
        g_array_append_val(graph->now.stand_ins, none);
    }
    g_array_index(graph->now.stand_ins, uint32_t, name) = value;
}
