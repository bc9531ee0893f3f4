#include "plan/autograd/float8/words.h"

/* A weight in float8 is numbers and a scale; a DTensor numbers and a mesh. */
static bool is_of_two(PlanRun *run, uint32_t value) {
    uint32_t p = plan_graph_value_at(run->graph, value)->parameter;
    return p != PLAN_NONE && (run->graph->shared.tensor > 1 ||
                              run->flavour->float8_scale(run, p).buffer != PLAN_NONE);
}

/* What the block's program is given, in the order of first use: of each whether it is a parameter,
 * and that of the weight, counted with each that is two as two. */
typedef struct {
    GArray *is_parameter; /* bool */
    unsigned n_apart, of_weight;
} Given;

static void add_input(Given *given, bool is_parameter, unsigned n) {
    g_array_append_val(given->is_parameter, is_parameter);
    given->n_apart += n;
}

static void count_inputs(PlanRun *run, const PlanGraphOp *op, uint32_t weight, bool *is_known,
                         Given *given) {
    for (unsigned i = 0; i < op->n_inputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + i);
        const PlanGraphValue *v =
            value == PLAN_NONE ? NULL : plan_graph_value_at(run->graph, value);
        if (!v || is_known[v->base]) {
            continue;
        }
        is_known[v->base] = true;
        given->of_weight = value == weight ? given->n_apart : given->of_weight;
        add_input(given, v->parameter != PLAN_NONE, is_of_two(run, value) ? 2 : 1);
        if (run->graph->shared.tensor > 1 && given->is_parameter->len == 1) {
            add_input(given, false, 1); /* the mesh over which the block's tokens are gathered */
        }
    }
    for (unsigned i = 0; i < op->n_outputs; i++) {
        is_known[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] = true;
    }
}

/* PyTorch 2.13 keeps parameters for backward rather than what is made of them, for they are free to
 * keep (torch._functorch.config.treat_parameters_as_free_to_save). It knows them by their numbers
 * among a program's inputs before weights are taken apart in numbers and scale (or mesh), and looks
 * for them by these numbers afterwards: of a weight that is another's number then, a copy as
 * backward wants it is kept instead, all of backward long. What is computed again is not. */
bool plan_float8_keeps_copy(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    if (run->checkpoint != PLAN_NONE || run->builder.phase != PLAN_PHASE_FORWARD) {
        return false;
    }
    g_autofree bool *is_known = g_new0(bool, graph->values.len);
    g_autoptr(GArray) is_parameter = g_array_new(FALSE, FALSE, sizeof(bool));
    Given given = {.is_parameter = is_parameter};
    uint32_t block = plan_graph_block_of(graph, op->module),
             weight = plan_graph_ref(graph, op->values + 1);
    const PlanGraphOp *first = plan_graph_op_at(graph, 0), *o = op;
    while (o > first && plan_graph_block_of(graph, o[-1].module) == block) {
        o--;
    }
    const PlanGraphOp *end = first + graph->ops.len;
    for (; o < end && plan_graph_block_of(graph, o->module) == block; o++) {
        count_inputs(run, o, weight, is_known, &given);
    }
    return given.of_weight >= is_parameter->len ||
           !g_array_index(is_parameter, bool, given.of_weight);
}
