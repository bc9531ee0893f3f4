/* plan/clip.c - torch.nn.utils.clip_grad_norm_, op by op (torch/nn/utils/clip_grad.py).
 *
 * The norms of all gradients are stacked and their norm is taken; gradients are multiplied by
 * min(1, clip / (norm + 1e-6)), without asking the host. Of sharded gradients each rank knows the
 * norms of its parts: their squares are added over the ranks of the shard axis, one number a
 * parameter, before the norm of the norms is taken.
 */
#include "plan/optimizer.h"

typedef struct {
    PlanRun *run;
    PlanDtype dtype;
    uint32_t n;
} Clip;

static PlanTensor new_numbers(const Clip *c, uint64_t n, const char *name) {
    return plan_run_new_tensor(c->run, n, c->dtype, name);
}

static PlanTensor apply(const Clip *c, PlanOpKind kind, PlanTensor x, double attr,
                        const char *name) {
    PlanTensor y = new_numbers(c, kind == PLAN_OP_NORM ? 1 : x.elements, name);
    plan_builder_begin_op(&c->run->builder, kind, PLAN_AXIS_NONE, (int64_t[]){(int64_t)x.elements},
                          &attr);
    plan_run_operand(c->run, x);
    plan_run_operand(c->run, y);
    plan_builder_launch(&c->run->builder, 0);
    return y;
}

static void append_gradients(const Clip *c) {
    for (uint32_t p = 0; p < c->n; p++) {
        PlanOperand o = c->run->flavour->gradient(c->run, p);
        plan_builder_operand(&c->run->builder, o.buffer, o.offset_bytes, o.elements);
    }
}

/* The norm of each gradient, in one tensor; the norms themselves are still held. */
static PlanTensor stack_norms(const Clip *c, PlanTensor *norms) {
    PlanBuilder *builder = &c->run->builder;
    for (uint32_t p = 0; p < c->n; p++) {
        norms[p] = new_numbers(c, 1, "norm");
    }
    plan_builder_begin_op(builder, PLAN_OP_NORMS, PLAN_AXIS_NONE, NULL, NULL);
    append_gradients(c);
    for (uint32_t p = 0; p < c->n; p++) {
        plan_run_operand(c->run, norms[p]);
    }
    plan_builder_launch(builder, 0);
    PlanTensor stack = new_numbers(c, c->n, "norms");
    plan_builder_begin_op(builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE, (int64_t[]){c->n}, NULL);
    for (uint32_t p = 0; p < c->n; p++) {
        plan_run_operand(c->run, norms[p]);
    }
    plan_run_operand(c->run, stack);
    plan_builder_launch(builder, 0);
    return stack;
}

/* A functional all-reduce works on a copy, and is waited for at once. */
static PlanTensor add_up(const Clip *c, PlanTensor squares, PlanAxis axis, uint64_t ranks) {
    PlanTensor sums = apply(c, PLAN_OP_COPY, squares, 0, "sums");
    plan_builder_begin_op(&c->run->builder, PLAN_OP_ALL_REDUCE, axis,
                          (int64_t[]){(int64_t)sums.elements, (int64_t)ranks}, (double[]){0});
    plan_run_operand(c->run, sums);
    plan_builder_launch(&c->run->builder, 0);
    return sums;
}

static PlanTensor whole_norms(const Clip *c, PlanTensor norms, PlanAxis axis, uint64_t ranks) {
    PlanTensor squares = apply(c, PLAN_OP_POWER, norms, 2, "squares");
    PlanTensor sums = add_up(c, squares, axis, ranks);
    PlanTensor roots = apply(c, PLAN_OP_POWER, sums, 0.5, "norms");
    plan_run_unref(c->run, squares);
    plan_run_unref(c->run, sums);
    return roots;
}

static PlanTensor total_norm(const Clip *c, PlanAxis axis, uint64_t ranks) {
    g_autofree PlanTensor *norms = g_new(PlanTensor, c->n);
    PlanTensor stack = stack_norms(c, norms), total;
    if (axis == PLAN_AXIS_NONE) {
        total = apply(c, PLAN_OP_NORM, stack, 0, "norm");
    } else {
        PlanTensor roots = whole_norms(c, stack, axis, ranks);
        total = apply(c, PLAN_OP_NORM, roots, 0, "norm");
        plan_run_unref(c->run, roots);
    }
    plan_run_unref(c->run, stack);
    for (uint32_t p = c->n; p-- > 0;) {
        plan_run_unref(c->run, norms[p]);
    }
    return total;
}

static PlanTensor coefficient(const Clip *c, PlanTensor norm) {
    PlanTensor sum = apply(c, PLAN_OP_ADD_NUMBER, norm, 1e-6, "norm");
    PlanTensor inverse = apply(c, PLAN_OP_POWER, sum, -1, "inverse");
    PlanTensor ratio = apply(c, PLAN_OP_TIMES_NUMBER, inverse, c->run->strategy->clip, "ratio");
    plan_run_unref(c->run, inverse);
    plan_run_unref(c->run, sum);
    PlanTensor clamped = apply(c, PLAN_OP_AT_MOST, ratio, 1, "coefficient");
    plan_run_unref(c->run, ratio);
    return clamped;
}

void plan_clip_norm(PlanRun *run, PlanAxis axis, uint64_t ranks) {
    PlanOperand first = run->flavour->gradient(run, 0);
    Clip c = {.run = run,
              .dtype = (PlanDtype)plan_builder_at(&run->builder, first.buffer)->dtype,
              .n = run->graph->parameters->len};
    PlanTensor norm = total_norm(&c, axis, ranks);
    PlanTensor factor = coefficient(&c, norm);
    plan_builder_begin_op(&run->builder, PLAN_OP_SCALE_ALL, PLAN_AXIS_NONE, NULL, NULL);
    plan_run_operand(run, factor);
    append_gradients(&c);
    plan_builder_launch(&run->builder, 0);
    plan_run_unref(run, factor);
    plan_run_unref(run, norm);
}

void plan_clip_whole(PlanRun *run) {
    plan_clip_norm(run, PLAN_AXIS_NONE, 1);
}
