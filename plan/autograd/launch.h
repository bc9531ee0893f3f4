/* plan/autograd/launch.h - ops of the compute lane in a line each, for what is written op by op:
 * backward, latent attention, experts that exchange rows, layers and sequences that ranks share,
 * weights in 4 bits, and what the optimizer, clipping and loss scaling work out.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/eager.h"

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

/* y of each number of x, or one number of all of them. */
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

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* An op of no axis, of these tensors. attrs: NULL where its kind has none. */
#define LAUNCH(run, kind, dims, attrs, ...)                                                        \
    launch_op(run, kind, dims, attrs, (PlanTensor[]){__VA_ARGS__},                                 \
              G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))

/* The same of operands. */
#define LAUNCH_OPERANDS(run, kind, dims, attrs, ...)                                               \
    launch_operands(run, kind, dims, attrs, (const PlanOperand[]){__VA_ARGS__},                    \
                    G_N_ELEMENTS(((const PlanOperand[]){__VA_ARGS__})))

/* The op begun last, of these tensors. */
#define LAUNCH_BEGUN(run, ...)                                                                     \
    launch_of(run, (PlanTensor[]){__VA_ARGS__}, G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))
