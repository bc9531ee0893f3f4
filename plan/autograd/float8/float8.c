#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/mxfp8.h"
#include "plan/autograd/float8/words.h"

static uint32_t x_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_ref(run->graph, op->values);
}

/* ---- forward -------------------------------------------------------------------------------- */

/* As a product of forward takes it. */
static PlanScaled cast_for_y(PlanRun *run, const PlanFloat8Source *source, bool found) {
    if (plan_float8_by_rows(run)) {
        return plan_float8_cast_rows(run, source);
    }
    PlanTensor scale = plan_float8_scale(run, source, PLAN_FLOAT8_WHOLE, found);
    return (PlanScaled){plan_float8_cast(run, source, scale, PLAN_FLOAT8_WHOLE, NULL), scale};
}

static void cast_input(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    PlanFloat8Source x = plan_float8_of_tensor(run, plan_run_value(run, x_of(run, op)), d->m, d->k);
    plan_float8_leave_cast(run, x_of(run, op), false, cast_for_y(run, &x, d->maker >= 0));
}

/* A recomputed block (under FSDP1 any block) leaves its cast weight for backward, except with
 * row-wise scales. FSDP1's parameters are views, so the compiler keeps the half-size cast rather
 * than the view. */
static void give_weight(PlanRun *run, const PlanGraphOp *op, PlanTensor w8) {
    bool is_left = run->builder.phase == PLAN_PHASE_RECOMPUTE || run->flavour->flatten;
    if (is_left && !plan_float8_by_rows(run)) {
        give(run, op, LAYER_WEIGHT_CAST, w8);
        return;
    }
    give(run, op, LAYER_WEIGHT_CAST, PLAN_NO_TENSOR);
    plan_run_unref(run, w8);
}

static PlanTensor multiplied(PlanRun *run, const PlanGraphOp *op, PlanOperand w8,
                             PlanTensor w_scale) {
    const PlanGraphValue *y =
        plan_graph_value_at(run->graph, plan_graph_ref(run->graph, op->values + op->n_inputs));
    PlanTensor made = plan_run_new_tensor(run, y->elements, (PlanDtype)y->dtype, "y");
    PlanFloat8Product product = {
        .a = run->float8.input.cast, .b = w8, .b_scale = w_scale, .made = made};
    plan_float8_multiply(run, PLAN_OP_FLOAT8_LINEAR, shape_of(run, op), &product);
    return made;
}

static void forward_of_gathered(PlanRun *run, const PlanGraphOp *op, PlanOperand scale) {
    PlanFloat8Source w = plan_float8_of_weight(run, op);
    PlanTensor w_scale = plan_float8_inverse(run, scale, 1, PLAN_FLOAT8_INVERT, PLAN_E4M3);
    give(run, op, LAYER_RESULT, multiplied(run, op, w.x, w_scale));
    give(run, op, LAYER_WEIGHT_SCALE, w_scale);
    give(run, op, LAYER_WEIGHT_CAST,
         plan_float8_keeps_copy(run, op) ? plan_float8_turn(run, &w, PLAN_E4M3) : PLAN_NO_TENSOR);
}

static void forward_of_cast(PlanRun *run, const PlanGraphOp *op) {
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanScaled w = cast_for_y(run, &weight, false);
    give(run, op, LAYER_RESULT, multiplied(run, op, plan_run_operand_of(run, w.numbers), w.scale));
    give(run, op, LAYER_WEIGHT_SCALE, w.scale);
    give_weight(run, op, w.numbers);
}

void plan_float8_forward(PlanRun *run, const PlanGraphOp *op) {
    if (run->graph->float8 == PLAN_FLOAT8_MXFP8) {
        plan_mxfp8_forward(run, op);
        return;
    }
    if (run->graph->shared.tensor > 1) {
        plan_float8_shared_forward(run, op);
        return;
    }
    PlanOperand scale = plan_float8_gathered_scale(run, op);
    if (!plan_float8_has_cast(run, op, false)) {
        cast_input(run, op);
    }
    if (scale.buffer != PLAN_NONE) {
        forward_of_gathered(run, op, scale);
    } else {
        forward_of_cast(run, op);
    }
    if (!shape_of(run, op)->again) {
        plan_float8_forget(run);
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

static PlanFloat8Gradient cast_gradient(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanFloat8Source dy = plan_float8_of_tensor(b->run, b->dy[0], d->m, d->n);
    PlanFloat8Gradient g;
    if (plan_float8_by_rows(b->run)) {
        g.as_is = plan_float8_cast_rows(b->run, &dy);
        g.turned = plan_float8_found_turned(b->run, &dy);
        return g;
    }
    bool found = plan_float8_gradient_is_searched(b->run->graph, b->op);
    dy.to = PLAN_E5M2;
    g.as_is.scale = plan_float8_scale(b->run, &dy, PLAN_FLOAT8_WHOLE, found);
    g.turned.scale = plan_run_ref(b->run, g.as_is.scale);
    g.as_is.numbers =
        plan_float8_cast(b->run, &dy, g.as_is.scale, PLAN_FLOAT8_WHOLE, &g.turned.numbers);
    return g;
}

/* As the product of dx takes it; *ret_turned: it lies transposed. */
static PlanScaled weight_for_dx(const PlanBackward *b, bool *ret_turned) {
    PlanRun *run = b->run;
    PlanScaled weight;
    PlanFloat8Source w = plan_float8_of_weight(run, b->op);
    PlanOperand gathered = plan_float8_gathered_scale(run, b->op);
    bool is_gathered = gathered.buffer != PLAN_NONE;
    bool has_kept = run->tape.nodes.items[b->node].n_saved && !plan_float8_by_rows(run);
    PlanFloat8Along along = plan_float8_along_columns(run);
    weight.scale = has_kept ? plan_run_ref(run, saved(b, LAYER_WEIGHT_SCALE))
                   : is_gathered
                       ? plan_float8_inverse(run, gathered, 1, PLAN_FLOAT8_INVERT, PLAN_E4M3)
                       : plan_float8_scale(run, &w, along, false);
    PlanTensor left = has_kept ? saved(b, LAYER_WEIGHT_CAST) : PLAN_NO_TENSOR;
    weight.numbers = is_there(left) ? plan_run_ref(run, left)
                     : is_gathered  ? plan_float8_turn(run, &w, PLAN_E4M3)
                                    : plan_float8_cast_turned(run, &w, weight.scale, along);
    *ret_turned = is_gathered || !is_there(left); /* forward's own lies as it is */
    return weight;
}

static void make_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d, const PlanScaled *dy) {
    bool is_turned;
    PlanScaled w = weight_for_dx(b, &is_turned);
    b->dx[0] = like_input(b, LAYER_INPUT, "dx");
    PlanFloat8Product product = {.a = *dy,
                                 .b = plan_run_operand_of(b->run, w.numbers),
                                 .b_scale = w.scale,
                                 .made = b->dx[0],
                                 .scaled = plan_float8_by_rows(b->run),
                                 .turned = is_turned};
    plan_float8_multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DX, d, &product);
    drop(b->run, &w);
}

void plan_float8_backward(const PlanBackward *b) {
    if (b->run->graph->float8 == PLAN_FLOAT8_MXFP8) {
        plan_mxfp8_backward(b);
        return;
    }
    if (b->run->graph->shared.tensor > 1) {
        plan_float8_shared_backward(b);
        return;
    }
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    PlanFloat8Gradient g = cast_gradient(b, d);
    make_dx(b, d, &g.as_is);
    drop(b->run, &g.as_is);
    if (!plan_float8_go_through_swiglu(b) && !plan_float8_has_cast(b->run, b->op, true)) {
        plan_float8_cast_input_turned(b, false);
    }
    plan_float8_make_dw(b, &g.turned);
    drop(b->run, &g.turned);
    if (plan_float8_is_first_of_input(b->run, b->op)) {
        plan_float8_forget(b->run);
    }
}
