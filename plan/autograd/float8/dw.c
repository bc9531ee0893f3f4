/* plan/autograd/float8/dw.c - the gradient of a layer's weight: a product of the layer's input,
 * cast with rows and columns exchanged.
 */
#include "plan/autograd/float8/words.h"

/* Value i of the op that made x. */
static PlanOperand of_maker(const PlanBackward *b, const PlanGraphOp *maker, unsigned i) {
    uint32_t value = plan_graph_ref(b->run->graph, maker->values + i);
    uint32_t parameter = plan_graph_value_at(b->run->graph, value)->parameter;
    return parameter != PLAN_NONE ? b->run->flavour->parameter(b->run, parameter)
                                  : plan_run_operand_of(b->run, plan_run_value(b->run, value));
}

/* What x is made of: itself, where it is kept. */
static PlanFloat8Source made_of(const PlanBackward *b) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    if (d->maker < 0) {
        return plan_float8_of_tensor(b->run, plan_run_value(b->run, value_at(b, 0)), d->m, d->k);
    }
    const PlanGraphOp *maker = plan_graph_op_at(b->run->graph, d->maker);
    bool adds = maker->kind == PLAN_OP_ADD_RMSNORM; /* x and a term, and norms their sum */
    uint32_t from = plan_graph_ref(b->run->graph, maker->values + (adds ? maker->n_inputs : 0));
    PlanFloat8Source x = plan_float8_of_tensor(b->run, plan_run_value(b->run, from), d->m, d->k);
    if (maker->kind == PLAN_OP_SWIGLU) {
        x.made = PLAN_FLOAT8_BY_SWIGLU;
        x.up = of_maker(b, maker, 1);
    } else if (adds || maker->kind == PLAN_OP_RMSNORM) {
        x.made = PLAN_FLOAT8_BY_NORM;
        x.weight = of_maker(b, maker, adds ? 2 : 1);
        x.rstd = of_maker(b, maker, adds ? 5 : 3);
    }
    return x;
}

/* Tensorwise, ranks that share what SwiGLU makes have one scale for all of it. */
void plan_float8_cast_input_turned(const PlanBackward *b, bool found) {
    PlanRun *run = b->run;
    PlanFloat8Source x = made_of(b);
    PlanFloat8Along along = plan_float8_along_columns(run);
    PlanTensor scale = plan_float8_by_rows(run) || run->graph->shared.tensor == 1
                           ? plan_float8_scale(run, &x, along, found)
                           : plan_float8_joined_scale(run, &x, along, found);
    PlanScaled cast = {plan_float8_cast_turned(run, &x, scale, along), scale};
    plan_float8_leave_cast(run, value_at(b, LAYER_INPUT), true, cast);
}

PlanNode *plan_float8_node_of_swiglu(const PlanBackward *b, PlanEdge **ret_edge) {
    PlanRun *run = b->run;
    const PlanGraphFloat8Linear *d = shape_of(run, b->op);
    *ret_edge = &run->tape.edges.items[run->tape.nodes.items[b->node].edges];
    if (d->maker < 0 || (*ret_edge)->node == PLAN_NONE) {
        return NULL;
    }
    PlanNode *node = &run->tape.nodes.items[(*ret_edge)->node];
    bool is_maker = node->op == (uint32_t)d->maker && node->n_dependencies == 1;
    return is_maker && plan_float8_follows_swiglu(run->graph, b->op) ? node : NULL;
}

/* The hidden layer and both gradients are there at once, for one kernel makes all three. */
bool plan_float8_go_through_swiglu(const PlanBackward *b) {
    PlanEdge *edge;
    if (!plan_float8_node_of_swiglu(b, &edge)) {
        return false;
    }
    plan_float8_cast_input_turned(b, true);
    plan_go_through_swiglu(b, edge);
    return true;
}

/* By rows, torchao has gradients made by the library's product and scaled behind it
 * (float8_ops.py, addmm_float8_unwrapped): of dx by whatever reads it, of dw by a kernel. */
void plan_float8_make_dw(const PlanBackward *b, const PlanScaled *dy_turned) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    const PlanScaled *x = &b->run->float8.input.cast;
    b->dx[1] = like_input(b, LAYER_WEIGHT, "dw");
    PlanFloat8Product product = {.a = *dy_turned,
                                 .b = plan_run_operand_of(b->run, x->numbers),
                                 .b_scale = x->scale,
                                 .made = b->dx[1]};
    plan_float8_multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DW, d, &product);
    if (plan_float8_by_rows(b->run)) {
        LAUNCH(b->run, PLAN_OP_FLOAT8_UNSCALE,
               DIMS([FLOAT8_UNSCALE_ROWS] = d->n, [FLOAT8_UNSCALE_COLS] = d->k), NULL,
               dy_turned->scale, x->scale, b->dx[1]);
    }
}
