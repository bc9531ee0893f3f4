/* plan/graph/ops.c - ops in program order, and what autocast casts for them. */
#include "plan/graph/autocast.h"
#include "plan/graph/private.h"

uint32_t plan_graph_add_view(PlanGraph *graph, uint32_t base, uint64_t offset, uint64_t elements) {
    PlanGraphValue of = *plan_graph_value_at(graph, plan_graph_stand_in(graph, base));
    return plan_graph_add_value(graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                                        .base = of.base,
                                                        .offset = of.offset + offset,
                                                        .elements = elements,
                                                        .dtype = of.dtype,
                                                        .requires_grad = of.requires_grad});
}

void plan_graph_add_op(PlanGraph *graph, PlanGraphOp op, const uint32_t *values,
                       const int64_t *dims, unsigned n_dims) {
    unsigned n = op.n_inputs + op.n_outputs;
    op.module = plan_graph_module_now(graph);
    op.values = plan_graph_add_refs(graph, values, n);
    for (unsigned i = 0; i < op.n_inputs; i++) {
        uint32_t *value = &graph->value_refs.items[op.values + i];
        *value = plan_graph_stand_in(graph, *value);
    }
    op.dims = graph->dims.len;
    op.attrs = graph->attrs.len;
    int64_t *to;
    plan_vector_extend(&graph->dims, n_dims, &to);
    for (unsigned i = 0; i < n_dims; i++) {
        to[i] = dims[i];
    }
    plan_vector_push(&graph->ops, op);
    plan_graph_add_step(graph, PLAN_STEP_OP, graph->ops.len - 1, NULL, 0);
    for (unsigned i = 0; i < n; i++) {
        uint32_t value = plan_graph_ref(graph, op.values + i);
        if (value != PLAN_NONE) {
            plan_graph_hold_until(graph, value, graph->steps.len - 1);
        }
    }
    plan_graph_read_addends(graph);
}

/* Other outputs are for backward alone. */
static bool is_result(PlanOpKind kind, unsigned output) {
    switch (kind) {
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
        return output < 2;
    case PLAN_OP_COMPILED_LOSS:
        return output == 2; /* behind what its first kernel leaves of each row */
    default:
        return output == 0;
    }
}

bool plan_graph_is_kept_copy(const PlanGraph *graph, uint32_t x, uint32_t copy) {
    uint32_t p = plan_graph_value_at(graph, x)->parameter;
    return p != PLAN_NONE && g_array_index(graph->now.copies, uint32_t, p) == copy;
}

void plan_graph_let_go_of_casts(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                                unsigned n, uint32_t last_made) {
    uint32_t before = last_made;
    for (unsigned i = 0; i < n; i++) {
        if (used[i] != given[i] && !plan_graph_is_kept_copy(graph, given[i], used[i])) {
            plan_graph_let_go_after(graph, used[i], before);
            before = used[i];
        }
    }
}

/* The op reads a cast; the caller's variable still holds the tensor that was cast. */
static void hold_what_was_cast(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                               unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (used[i] != given[i]) {
            plan_graph_hold_until(graph, given[i], graph->steps.len - 1);
        }
    }
}

static bool any_wants_gradient(const PlanGraph *graph, const uint32_t *values, unsigned n) {
    bool wants = false;
    for (unsigned i = 0; i < n; i++) {
        wants |= plan_graph_wants_gradient(graph, values[i]);
    }
    return wants;
}

/* Slots that an op reads; slots that it only writes follow them. */
static unsigned n_read(const PlanOpInfo *info) {
    unsigned n = info->n_slots;
    while (n > 0 && !(info->slots[n - 1].flags & PLAN_SLOT_READ)) {
        n--;
    }
    return n;
}

/* What an op makes of such inputs, where it would make `given` if nothing had been cast for units
 * (boundaries.h): between them it takes what comes. */
static PlanDtype result_between_units(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                                      unsigned n, PlanDtype given) {
    if (!graph->units.modules || graph->now.units_entered || kind == PLAN_OP_CAST ||
        given != graph->dtype) {
        return given;
    }
    bool found = false;
    PlanDtype widest = given;
    uint32_t weight = PLAN_NONE;
    for (unsigned i = 0; i < n; i++) {
        const PlanGraphValue *v =
            inputs[i] == PLAN_NONE ? NULL : plan_graph_value_at(graph, inputs[i]);
        if (v && v->parameter != PLAN_NONE) {
            weight = v->parameter;
        } else if (v && plan_graph_is_floating((PlanDtype)v->dtype)) {
            widest = found && v->dtype != widest ? PLAN_FP32 : (PlanDtype)v->dtype;
            found = true;
        }
    }
    if (weight != PLAN_NONE && widest != given) {
        graph->meets_weight = weight;
    }
    return widest;
}

/* Casts are ops of the walk, in the order in which PyTorch makes them: as a compiler of C++ works
 * out a call's arguments, the last first. */
static void cast_inputs(PlanGraph *graph, PlanOpKind kind, uint32_t *inputs, unsigned n) {
    for (unsigned i = n; i-- > 0;) {
        PlanDtype dtype;
        if (plan_autocast_input(graph, kind, inputs[i], &dtype)) {
            inputs[i] = plan_graph_cast(graph, inputs[i], dtype);
        }
    }
}

uint32_t plan_graph_op_making(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                              const PlanGraphResult *results, const int64_t *dims,
                              const double *attrs) {
    const PlanOpInfo *info = plan_op_info(kind);
    unsigned n_inputs = n_read(info), n_outputs = info->n_slots - n_inputs;
    uint32_t values[PLAN_MAX_SLOTS], given[PLAN_MAX_SLOTS];
    g_assert(!info->n_lists);
    for (unsigned i = 0; i < n_inputs; i++) {
        values[i] = given[i] = plan_graph_stand_in(graph, inputs[i]);
    }
    if (graph->now.autocasts) {
        cast_inputs(graph, kind, values, n_inputs);
    }
    bool differentiable = any_wants_gradient(graph, values, n_inputs);
    for (unsigned i = 0; i < n_outputs; i++) {
        bool casts = graph->now.autocasts && i < plan_autocast_n_results(kind);
        PlanDtype dtype = results[i].dtype;
        if (casts) {
            dtype = plan_autocast_result(graph, kind, i, values, n_inputs, dtype);
        }
        if (i < plan_autocast_n_results(kind)) {
            dtype = result_between_units(graph, kind, values, n_inputs, dtype);
        }
        values[n_inputs + i] = plan_graph_add_value(
            graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                    .base = PLAN_NONE,
                                    .elements = results[i].elements,
                                    .dtype = (uint8_t)dtype,
                                    .requires_grad = differentiable && is_result(kind, i)});
    }
    plan_graph_add_op(graph, plan_graph_new_op(kind, n_inputs, n_outputs), values, dims,
                      info->n_dims);
    for (unsigned i = 0; i < info->n_attrs; i++) {
        plan_vector_push(&graph->attrs, attrs[i]);
    }
    if (graph->now.autocasts) {
        hold_what_was_cast(graph, given, values, n_inputs);
        plan_graph_let_go_of_casts(graph, given, values, n_inputs,
                                   values[n_inputs + n_outputs - 1]);
    }
    return n_outputs ? values[n_inputs] : PLAN_NONE;
}

uint32_t plan_graph_op(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                       uint64_t elements, const int64_t *dims, const double *attrs) {
    PlanGraphResult result = {dtype, elements};
    g_assert(n_read(plan_op_info(kind)) + 1 == plan_op_info(kind)->n_slots);
    return plan_graph_op_making(graph, kind, inputs, &result, dims, attrs);
}

/* An op whose result takes the place of a value, `into`. */
static uint32_t run_into(PlanGraph *graph, uint32_t into, PlanOpKind kind, const uint32_t *inputs,
                         const int64_t *dims, const double *number) {
    PlanGraphValue of = *plan_graph_value_at(graph, into);
    uint32_t y = plan_graph_op(graph, kind, inputs, (PlanDtype)of.dtype, of.elements, dims, number);
    PlanGraphValue *made = plan_graph_value_at(graph, y);
    made->base = of.base;
    made->offset = of.offset;
    plan_graph_hold_until(graph, into, graph->steps.len - 1);
    return y;
}

uint32_t plan_graph_op_into(PlanGraph *graph, uint32_t into, PlanOpKind kind,
                            const uint32_t *inputs, const int64_t *dims) {
    return run_into(graph, into, kind, inputs, dims, NULL);
}

/* The sum is a compiler's to place (addends.c). */
uint32_t plan_graph_add_scaled(PlanGraph *graph, uint32_t y, uint32_t product, double number) {
    uint64_t n = plan_graph_value_at(graph, y)->elements;
    int64_t dims[] = {[ADD_SCALED_N] = (int64_t)n, [ADD_SCALED_WITHIN] = 0};
    uint32_t sum = run_into(graph, y, PLAN_OP_ADD_SCALED, (uint32_t[]){y, product}, dims, &number);
    PlanGraphAddend addend = {graph->ops.len - 1, product, PLAN_NONE};
    g_array_append_val(graph->addends, addend);
    return sum;
}

uint32_t plan_graph_cast(PlanGraph *graph, uint32_t x, PlanDtype dtype) {
    x = plan_graph_stand_in(graph, x);
    PlanGraphValue v = *plan_graph_value_at(graph, x);
    if (v.dtype == dtype) {
        return x;
    }
    bool is_compiled = plan_graph_is_compiled(graph) && graph->now.fused;
    bool kept = v.parameter != PLAN_NONE && v.requires_grad && graph->autocast.keeps_copies &&
                !is_compiled && graph->now.autocasts && dtype == graph->autocast.lower &&
                v.dtype == PLAN_FP32;
    uint32_t *copy = kept ? plan_graph_at(graph->now.copies, uint32_t, v.parameter) : NULL;
    if (kept && *copy != PLAN_NONE) {
        return *copy;
    }
    int64_t n = (int64_t)v.elements;
    uint32_t made = plan_graph_op(graph, PLAN_OP_CAST, &x, dtype, v.elements, &n, NULL);
    if (kept) {
        *copy = made;
    }
    return made;
}

void plan_graph_leave_autocast(PlanGraph *graph, uint32_t module) {
    if (!graph->now.autocasts) {
        return;
    }
    graph->now.autocasts = false;
    plan_graph_add_step(graph, PLAN_STEP_RETURN, module, NULL, 0);
    for (uint32_t p = 0; p < graph->now.copies->len; p++) {
        uint32_t copy = g_array_index(graph->now.copies, uint32_t, p);
        if (copy != PLAN_NONE) {
            plan_graph_hold_until(graph, copy, graph->steps.len - 1);
        }
    }
}
