/* plan/optimizer.c - AdamW as PyTorch's foreach implementation runs it.
 *
 * One launch per arithmetic step over all tensors; the square roots live in a list of temporaries
 * until the step ends, and are let go from the last to the first (torch/optim/adam.py,
 * _multi_tensor_adam). State is made in the first step, two tensors a parameter, in its order.
 */
#include "plan/eager.h"

static void make_moments(PlanRun *run) {
    static const char *const names[] = {"exp_avg", "exp_avg_sq"};
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        PlanOperand owned = run->flavour->owned(run, p);
        for (unsigned i = 0; owned.elements && i < 2; i++) {
            plan_run_at_unit(run, run->unit_of_parameter[p]);
            uint32_t buffer = plan_builder_buffer(&run->builder, owned.elements, PLAN_FP32,
                                                  PLAN_OPTIMIZER_STATE, 0, names[i]);
            plan_builder_alloc(&run->builder, buffer);
            plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                                  (int64_t[]){(int64_t)owned.elements}, (double[]){0});
            plan_builder_whole(&run->builder, buffer);
            plan_builder_launch(&run->builder, 0);
            run->moments[2 * p + i] = buffer;
        }
    }
}

typedef enum {
    LIST_PARAMETER,
    LIST_GRADIENT,
    LIST_EXP_AVG,
    LIST_EXP_AVG_SQ,
    LIST_ROOT
} List;

static void append(PlanRun *run, const uint32_t *roots, List list) {
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        PlanOperand operand = run->flavour->owned(run, p);
        if (!operand.elements) {
            continue;
        }
        switch (list) {
        case LIST_PARAMETER:
            break;
        case LIST_GRADIENT:
            operand = run->flavour->gradient(run, p);
            break;
        case LIST_EXP_AVG:
        case LIST_EXP_AVG_SQ:
            operand = (PlanOperand){.buffer = run->moments[2 * p + (list == LIST_EXP_AVG_SQ)],
                                    .elements = operand.elements};
            break;
        case LIST_ROOT:
            operand = (PlanOperand){.buffer = roots[p], .elements = operand.elements};
            break;
        }
        plan_builder_operand(&run->builder, operand.buffer, operand.offset_bytes, operand.elements);
    }
}

/* One foreach kernel over up to three lists. */
static void launch_over(PlanRun *run, const uint32_t *roots, PlanOpKind kind, unsigned n,
                        const List *lists, double a, double b) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, NULL, (double[]){a, b});
    for (unsigned i = 0; i < n; i++) {
        append(run, roots, lists[i]);
    }
    plan_builder_launch(&run->builder, 0);
}

static bool owns_something(PlanRun *run) {
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        if (run->flavour->owned(run, p).elements) {
            return true;
        }
    }
    return false;
}

static void step(PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    uint32_t n = run->graph->parameters->len;
    g_autofree uint32_t *roots = g_new(uint32_t, n);
    List parameter[] = {LIST_PARAMETER}, moment[] = {LIST_GRADIENT, LIST_EXP_AVG},
         decay[] = {LIST_EXP_AVG_SQ}, square[] = {LIST_GRADIENT, LIST_EXP_AVG_SQ},
         root[] = {LIST_EXP_AVG_SQ, LIST_ROOT}, correct[] = {LIST_ROOT},
         update[] = {LIST_EXP_AVG, LIST_ROOT, LIST_PARAMETER};
    launch_over(run, roots, PLAN_OP_ADAM_DECAY, 1, parameter, s->lr, s->weight_decay);
    launch_over(run, roots, PLAN_OP_ADAM_MOMENT, 2, moment, s->beta1, 0);
    launch_over(run, roots, PLAN_OP_ADAM_SQUARE_DECAY, 1, decay, s->beta2, 0);
    launch_over(run, roots, PLAN_OP_ADAM_SQUARE, 2, square, s->beta2, 0);
    for (uint32_t p = 0; p < n; p++) {
        uint64_t elements = run->flavour->owned(run, p).elements;
        roots[p] = PLAN_NONE;
        if (elements) {
            roots[p] = plan_builder_buffer(&run->builder, elements, PLAN_FP32, PLAN_TEMPORARY_OP, 0,
                                           "root");
            plan_builder_alloc(&run->builder, roots[p]);
        }
    }
    launch_over(run, roots, PLAN_OP_ADAM_SQRT, 2, root, 0, 0);
    launch_over(run, roots, PLAN_OP_ADAM_CORRECT, 1, correct, s->beta2, 0);
    launch_over(run, roots, PLAN_OP_ADAM_EPS, 1, correct, s->eps, 0);
    launch_over(run, roots, PLAN_OP_ADAM_UPDATE, 3, update, s->lr, s->beta1);
    for (uint32_t p = n; p-- > 0;) {
        if (roots[p] != PLAN_NONE) {
            plan_builder_free(&run->builder, roots[p]);
        }
    }
}

void plan_run_optimizer(PlanRun *run, bool first) {
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    if (first) {
        make_moments(run);
    }
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    if (owns_something(run)) { /* a rank beyond the last row has nothing to step */
        step(run);
    }
    run->flavour->zero_grad(run);
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}
