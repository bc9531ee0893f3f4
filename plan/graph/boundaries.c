#include "plan/graph/boundaries.h"

/* A name that stands for another value inside of the unit that was entered at a step. */
typedef struct {
    uint32_t enter_step, name, before; /* before: what it stood for */
} StandIn;

static bool is_unit(const PlanGraph *graph, uint32_t module) {
    return graph->units.modules && graph->units.modules[module];
}

static PlanDtype dtype_of(const PlanGraph *graph, uint32_t value) {
    return (PlanDtype)plan_graph_value_at(graph, value)->dtype;
}

/* Orders two values themselves, not what stands in for them. */
static void goes_after(PlanGraph *graph, uint32_t value, uint32_t other) {
    plan_graph_value_at(graph, value)->rank = plan_graph_value_at(graph, other)->rank + 1;
}

/* A table of complex numbers is no floating-point tensor to PyTorch, which leaves it alone. */
static bool is_cast_to(const PlanGraph *graph, uint32_t value, PlanDtype dtype) {
    return value != PLAN_NONE && plan_graph_is_floating(dtype_of(graph, value)) &&
           dtype_of(graph, value) != dtype && !plan_graph_is_complex(graph, value);
}

static uint32_t cast(PlanGraph *graph, uint32_t value, PlanDtype dtype) {
    int64_t n = (int64_t)plan_graph_value_at(graph, value)->elements;
    return plan_graph_op(graph, PLAN_OP_CAST, &value, dtype, (uint64_t)n, &n, NULL);
}

void plan_boundary_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n,
                         uint32_t *ret_given) {
    guint first = graph->now.given->len;
    for (unsigned i = 0; i < n; i++) {
        uint32_t value = ret_given[i] = plan_graph_stand_in(graph, arguments[i]);
        if (is_unit(graph, module) && is_cast_to(graph, value, graph->dtype)) {
            ret_given[i] = cast(graph, value, graph->dtype);
            plan_graph_op_at(graph, graph->ops.len - 1)->module = module;
            StandIn given = {PLAN_NONE, arguments[i], value};
            g_array_append_val(graph->now.given, given);
            plan_graph_stand_for(graph, arguments[i], ret_given[i]);
        }
    }
    for (guint i = first; i < graph->now.given->len; i++) {
        g_array_index(graph->now.given, StandIn, i).enter_step = graph->steps.len;
    }
    graph->now.units_entered += is_unit(graph, module) && module != 0;
}

/* Who called holds what was cast for the call until it returns, behind what the call held; a tuple
 * lets go of its last first. */
static void end_given(PlanGraph *graph, uint32_t enter, uint32_t last_result) {
    GArray *given = graph->now.given;
    while (given->len) {
        StandIn one = g_array_index(given, StandIn, given->len - 1);
        if (one.enter_step != enter) {
            return;
        }
        uint32_t inside = plan_graph_stand_in(graph, one.name);
        goes_after(graph, inside, last_result);
        last_result = inside;
        plan_graph_hold_until(graph, one.before, graph->steps.len - 1);
        plan_graph_stand_for(graph, one.name, one.before);
        goes_after(graph, one.before, inside);
        g_array_set_size(given, given->len - 1);
    }
}

uint32_t plan_boundary_differentiated(PlanGraph *graph, uint32_t value, unsigned n) {
    bool is_loss = plan_graph_value_at(graph, value)->elements == 1;
    return n > 1 && !is_loss ? plan_graph_detached(graph, value) : value;
}

/* What was given, and what the module gave, goes when all is cast: first the results, in order. */
void plan_boundary_leave(PlanGraph *graph, uint32_t module, uint32_t enter, const uint32_t *results,
                         unsigned n) {
    if (!is_unit(graph, module)) {
        return;
    }
    graph->now.units_entered -= module != 0;
    uint32_t leave = graph->steps.len - 1, last = PLAN_NONE;
    for (unsigned i = 0; i < n; i++) {
        uint32_t value = plan_graph_stand_in(graph, results[i]);
        if (!graph->units.outputs_stay && is_cast_to(graph, value, graph->units.outputs)) {
            uint32_t x = module == 0 ? plan_boundary_differentiated(graph, value, n) : value;
            plan_graph_stand_for(graph, results[i], cast(graph, x, graph->units.outputs));
            graph->root_cast = module == 0 ? graph->steps.len - 1 : graph->root_cast;
        }
    }
    uint32_t step = graph->steps.len - 1;
    bool ends_with_loss =
        module == 0 && n > 1 && plan_graph_value_at(graph, results[n - 1])->elements == 1;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = ends_with_loss ? n - 1 - i : i; /* a tuple, which goes from its end */
        uint32_t value = plan_graph_ref(graph, plan_graph_step_at(graph, leave)->values + at);
        plan_graph_hold_until(graph, value, step);
        if (last != PLAN_NONE && step != leave) {
            goes_after(graph, value, last);
        }
        last = value;
    }
    PlanGraphStep entered = *plan_graph_step_at(graph, enter);
    for (unsigned i = 0; i < entered.n_values; i++) {
        uint32_t value = plan_graph_ref(graph, entered.values + i);
        plan_graph_hold_until(graph, value, step);
        if (step != leave && (module == 0 || i == 0)) { /* others may live on */
            goes_after(graph, value, last);
            last = value;
        }
    }
    end_given(graph, enter, last);
}
