/* plan/autograd/launch.h - an op in a statement: LAUNCH, LAUNCH_OPERANDS on the compute lane, for
 * forward and backward; LAUNCH_ON any lane, for flavours, clipping and the optimizer.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

static inline void launch_of(PlanRun *run, const PlanTensor *tensors, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        plan_run_operand(run, tensors[i]);
    }
    plan_run_launch(run);
}

static inline void launch_op(PlanRun *run, PlanOpKind kind, const int64_t *dims,
                             const double *attrs, const PlanTensor *tensors, unsigned n) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, dims, attrs);
    launch_of(run, tensors, n);
}

static inline void launch_operands(PlanRun *run, PlanOpKind kind, const int64_t *dims,
                                   const double *attrs, const PlanOperand *operands, unsigned n) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, dims, attrs);
    for (unsigned i = 0; i < n; i++) {
        plan_builder_operand(&run->builder, operands[i]);
    }
    plan_run_launch(run);
}

/* An op that makes a number of y from each number of x, or one number from all of them. */
static inline void launch_each(PlanRun *run, PlanOpKind kind, PlanTensor x, double attr,
                               PlanTensor y) {
    launch_op(run, kind, (int64_t[]){(int64_t)x.elements}, &attr, (PlanTensor[]){x, y}, 2);
}

/* The same in a new tensor of x's dtype. */
static inline PlanTensor launch_new(PlanRun *run, PlanOpKind kind, PlanTensor x, double attr,
                                    const char *name) {
    PlanTensor y = plan_run_new_tensor(run, kind == PLAN_OP_NORM ? 1 : x.elements,
                                       plan_run_dtype_of(run, x), name);
    launch_each(run, kind, x, attr, y);
    return y;
}

/* A missing operand; and all of a buffer, or NOTHING where there is none (PLAN_NONE). */
#define NOTHING ((PlanOperand){.buffer = PLAN_NONE})
static inline PlanOperand all_of(const PlanRun *run, uint32_t buffer) {
    return buffer == PLAN_NONE ? NOTHING : plan_operand_whole(run->builder.buffers.items, buffer);
}

static inline void launch_on(PlanRun *run, uint8_t lane, PlanOpKind kind, PlanAxis axis,
                             const int64_t *dims, const double *attrs, const PlanOperand *operands,
                             unsigned n) {
    plan_builder_begin_op(&run->builder, kind, axis, dims, attrs);
    for (unsigned i = 0; i < n; i++) {
        plan_builder_operand(&run->builder, operands[i]);
    }
    plan_builder_launch(&run->builder, lane);
}

/* An op on each number of one operand, in place: fills it with a number, or multiplies by it. */
static inline void launch_in_place(PlanRun *run, uint8_t lane, PlanOpKind kind, double number,
                                   PlanOperand x) {
    launch_on(run, lane, kind, PLAN_AXIS_NONE, (int64_t[]){(int64_t)x.elements}, &number, &x, 1);
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* An op of no axis, of these tensors. attrs: NULL where its kind has none. */
#define LAUNCH(run, kind, dims, attrs, ...)                                                        \
    launch_op(run, kind, dims, attrs, (PlanTensor[]){__VA_ARGS__},                                 \
              G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))

/* The same of operands. */
#define LAUNCH_OPERANDS(run, kind, dims, attrs, ...)                                               \
    launch_operands(run, kind, dims, attrs, (const PlanOperand[]){__VA_ARGS__},                    \
                    G_N_ELEMENTS(((const PlanOperand[]){__VA_ARGS__})))

/* On a lane, of operands. Deterministic algorithms fill nothing before it (plan_run_launch()). */
#define LAUNCH_ON(run, lane, kind, axis, dims, attrs, ...)                                         \
    launch_on(run, lane, kind, axis, dims, attrs, (const PlanOperand[]){__VA_ARGS__},              \
              G_N_ELEMENTS(((const PlanOperand[]){__VA_ARGS__})))

/* The op begun last, of these tensors. */
#define LAUNCH_BEGUN(run, ...)                                                                     \
    launch_of(run, (PlanTensor[]){__VA_ARGS__}, G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))
