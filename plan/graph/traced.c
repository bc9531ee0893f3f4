#include "plan/graph/traced.h"
#include "plan/graph/private.h"

PlanTraced *plan_traced_new(void) {
    PlanTraced *traced = g_new0(PlanTraced, 1);
    traced->refs = g_array_new(FALSE, FALSE, sizeof(PlanTracedRef));
    traced->outs = g_array_new(FALSE, FALSE, sizeof(PlanTracedOut));
    traced->kernels = g_array_new(FALSE, FALSE, sizeof(PlanTracedKernel));
    traced->events = g_array_new(FALSE, FALSE, sizeof(PlanTracedEvent));
    traced->kinds = g_array_new(FALSE, FALSE, sizeof(PlanTracedKind));
    traced->steps = g_array_new(FALSE, FALSE, sizeof(PlanTracedStep));
    traced->values = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    traced->pieces = g_array_new(FALSE, FALSE, sizeof(PlanTracedPiece));
    traced->sums = g_array_new(FALSE, FALSE, sizeof(PlanTracedSum));
    traced->copied = g_array_new(FALSE, FALSE, sizeof(PlanTracedSum));
    return traced;
}

void plan_traced_free(PlanTraced *traced) {
    if (!traced) {
        return;
    }
    GArray *arrays[] = {traced->refs,   traced->outs,  traced->kernels, traced->events,
                        traced->kinds,  traced->steps, traced->values,  traced->copied,
                        traced->pieces, traced->sums};
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_array_unref(arrays[i]);
    }
    g_free(traced);
}

/* An output is a view into an existing storage, or has one of its own. Views do not keep a storage
 * alive here: the recording says when Python drops the last tensor of it. */
static uint32_t add_output(PlanGraph *graph, const PlanTracedOut *out, const uint32_t *values,
                           uint32_t n_inputs) {
    uint32_t base = PLAN_NONE;
    if (out->storage.of != PLAN_TRACED_NOTHING) {
        uint32_t at = out->storage.index + (out->storage.of == PLAN_TRACED_OUTPUT ? n_inputs : 0);
        base = plan_graph_value_at(graph, values[at])->base;
    }
    return plan_graph_add_value(
        graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                .base = base,
                                .elements = plan_traced_count(out->elements, graph->samples),
                                .dtype = out->dtype,
                                .requires_grad = out->wants_gradient});
}

static void add_op(PlanGraph *graph, const PlanTraced *traced, const PlanTracedStep *step,
                   uint32_t module) {
    const PlanTracedKind *kind = plan_graph_at(traced->kinds, PlanTracedKind, step->index);
    uint32_t n = kind->n_inputs + kind->n_outs;
    g_autofree uint32_t *values = g_new(uint32_t, n);
    for (uint32_t i = 0; i < kind->n_inputs; i++) {
        values[i] = g_array_index(traced->values, uint32_t, step->values + i);
    }
    for (uint32_t i = 0; i < kind->n_outs; i++) {
        values[kind->n_inputs + i] =
            add_output(graph, plan_graph_at(traced->outs, PlanTracedOut, kind->outs + i), values,
                       kind->n_inputs);
    }
    int64_t which = step->index;
    PlanGraphOp op = {.kind = PLAN_GRAPH_TRACED,
                      .module = module,
                      .values = plan_graph_add_refs(graph, values, n),
                      .n_inputs = kind->n_inputs,
                      .n_outputs = kind->n_outs,
                      .dims = graph->dims.len,
                      .attrs = graph->attrs.len};
    plan_vector_push(&graph->dims, which);
    plan_vector_push(&graph->ops, op);
    plan_graph_add_step(graph, PLAN_STEP_OP, graph->ops.len - 1, NULL, 0);
}

/* In the order in which they go. */
static void let_go(PlanGraph *graph, uint32_t value, uint64_t turn) {
    plan_graph_value_at(graph, value)->held_until = graph->steps.len - 1;
    plan_graph_value_at(graph, value)->rank = turn;
}

void plan_graph_traced(PlanGraph *graph, const PlanTraced *traced) {
    g_autoptr(GArray) inside = g_array_new(FALSE, FALSE, sizeof(uint32_t)); /* modules */
    graph->traced = traced;
    graph->first_cast = PLAN_NONE;
    for (uint32_t i = 0; i < traced->copied->len; i++) {
        uint32_t value = plan_graph_at(traced->copied, PlanTracedSum, i)->value;
        uint32_t p = plan_graph_value_at(graph, value)->parameter;
        plan_graph_parameter_at(graph, p)->copies_gradient = true;
    }
    for (uint32_t i = 0; i < traced->steps->len; i++) {
        const PlanTracedStep *step = plan_graph_at(traced->steps, PlanTracedStep, i);
        const uint32_t *values = &g_array_index(traced->values, uint32_t, step->values);
        uint32_t module = inside->len ? g_array_index(inside, uint32_t, inside->len - 1) : 0;
        switch (step->kind) {
        case PLAN_TRACED_OP:
            add_op(graph, traced, step, module);
            break;
        case PLAN_TRACED_ENTER:
            g_array_append_val(inside, step->index);
            plan_graph_add_step(graph, PLAN_STEP_ENTER, step->index, values, step->n_values);
            break;
        case PLAN_TRACED_RETURN:
            plan_graph_add_step(graph, PLAN_STEP_RETURN, step->index, NULL, 0);
            break;
        case PLAN_TRACED_LEAVE:
            g_array_set_size(inside, inside->len - 1);
            plan_graph_add_step(graph, PLAN_STEP_LEAVE, step->index, values, step->n_values);
            break;
        case PLAN_TRACED_CASTS:
            graph->first_cast = graph->ops.len;
            break;
        case PLAN_TRACED_LET:
            let_go(graph, step->index, i);
            break;
        case PLAN_TRACED_END: /* what is freed after this is freed after backward */
            graph->n_train_steps = graph->steps.len;
            plan_graph_add_step(graph, PLAN_STEP_RETURN, 0, NULL, 0);
            break;
        }
    }
    plan_graph_finish(graph, traced->loss);
}
