/* exec/host/optimizer.c - the optimizers' steps, and the norms and factors of clipping, over lists
 * of tensors.
 */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/offload/host-step.h"
#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/reduce.h"

/* List j's tensor i of an op whose slots are all lists. */
static float *listed(const ExecTask *t, PlanSlotNumber j, unsigned i) {
    return f32(t, j * list_length(t) + i);
}

/* The count of steps lives on the device, one a tensor, as PyTorch's fused kernel has it. */
static void adam_fused(const ExecTask *t, unsigned i, size_t n) {
    float *steps = listed(t, ADAM_FUSED_STEPS, i);
    *steps += 1;
    KernelAdam adam = exec_adam_of(t, (int64_t)*steps);
    kernel_adam_f32(listed(t, ADAM_FUSED_PARAMETER, i), listed(t, ADAM_FUSED_EXP_AVG, i),
                    listed(t, ADAM_FUSED_EXP_AVG_SQ, i), listed(t, ADAM_FUSED_GRADIENT, i), n,
                    &adam);
}

/* Behind its two numbers the lists of ADAM_FUSED. */
static void adam_fused_scaled(const ExecTask *t) {
    unsigned n_lists = list_length(t);
    bool is_finite = *f32(t, ADAM_FUSED_SCALED_FOUND) == 0;
    for (unsigned i = 0; i < n_lists && is_finite; i++) {
        float *lists[5];
        for (unsigned j = 0; j < G_N_ELEMENTS(lists); j++) {
            lists[j] = f32(t, ADAM_FUSED_SCALED_GRADIENT + j * n_lists + i);
        }
        size_t n = operand(t, ADAM_FUSED_SCALED_GRADIENT + i).elements;
        if (t->pointers[ADAM_FUSED_SCALED_SCALE]) {
            float inverse = (float)(1 / (double)*f32(t, ADAM_FUSED_SCALED_SCALE));
            kernel_mul_scalar_inplace_f32(lists[ADAM_FUSED_GRADIENT], inverse, n);
        }
        *lists[ADAM_FUSED_STEPS] += 1;
        KernelAdam adam = exec_adam_of(t, (int64_t)*lists[ADAM_FUSED_STEPS]);
        kernel_adam_f32(lists[ADAM_FUSED_PARAMETER], lists[ADAM_FUSED_EXP_AVG],
                        lists[ADAM_FUSED_EXP_AVG_SQ], lists[ADAM_FUSED_GRADIENT], n, &adam);
    }
}

static void unscale_all(const ExecTask *t) {
    for (unsigned i = UNSCALE_ALL_GRADIENT; i < UNSCALE_ALL_GRADIENT + list_length(t); i++) {
        if (!kernel_unscale_inplace_f32(f32(t, i), *f32(t, UNSCALE_ALL_INVERSE),
                                        operand(t, i).elements)) {
            *f32(t, UNSCALE_ALL_FOUND) = 1;
        }
    }
}

static void sgd_fused(const ExecTask *t, unsigned i, size_t n) {
    bool momentum = t->op->kind == PLAN_OP_MOMENTUM_FUSED;
    KernelSgd sgd = {.lr = attr(t, SGD_FUSED_LR),
                     .momentum = momentum ? attr(t, MOMENTUM_FUSED_MOMENTUM_ATTR) : 0,
                     .weight_decay =
                         attr(t, momentum ? MOMENTUM_FUSED_WEIGHT_DECAY : SGD_FUSED_WEIGHT_DECAY),
                     .step = momentum && attr(t, MOMENTUM_FUSED_FIRST) != 0 ? 1 : 2};
    kernel_sgd_f32(listed(t, SGD_FUSED_PARAMETER, i),
                   momentum ? listed(t, MOMENTUM_FUSED_MOMENTUM, i) : NULL,
                   listed(t, SGD_FUSED_GRADIENT, i), n, &sgd);
}

static void scale_all(const ExecTask *t) {
    for (unsigned i = SCALE_ALL_GRADIENT; i < SCALE_ALL_GRADIENT + list_length(t); i++) {
        kernel_scale_by_inplace_f32(f32(t, i), f32(t, SCALE_ALL_FACTOR), operand(t, i).elements);
    }
}

/* A foreach optimizer's step, of one tensor of each list; a is the first list's. */
static void foreach_step(const ExecTask *t, unsigned i, float *a, size_t n) {
    switch ((ExecForeachOp)t->op->kind) {
    case PLAN_OP_ADAM_DECAY:
        kernel_mul_scalar_inplace_f32(
            a, (float)(1 - attr(t, ADAM_DECAY_LR) * attr(t, ADAM_DECAY_WEIGHT_DECAY)), n);
        break;
    case PLAN_OP_ADAM_MOMENT:
        kernel_lerp_inplace_f32(listed(t, ADAM_MOMENT_EXP_AVG, i), a,
                                (float)(1 - attr(t, ADAM_MOMENT_BETA1)), n);
        break;
    case PLAN_OP_ADAM_SQUARE_DECAY:
        kernel_mul_scalar_inplace_f32(a, (float)attr(t, ADAM_SQUARE_DECAY_BETA2), n);
        break;
    case PLAN_OP_MOMENTUM_DECAY:
        kernel_mul_scalar_inplace_f32(a, (float)attr(t, MOMENTUM_DECAY_MOMENTUM_ATTR), n);
        break;
    case PLAN_OP_ADAM_SQUARE:
        kernel_addcmul_inplace_f32(listed(t, ADAM_SQUARE_EXP_AVG_SQ, i), a, a,
                                   (float)(1 - attr(t, ADAM_SQUARE_BETA2)), n);
        break;
    case PLAN_OP_ADAM_SQRT:
        kernel_sqrt_f32(listed(t, ADAM_SQRT_ROOT, i), a, n);
        break;
    case PLAN_OP_ADAM_DIVIDE:
        kernel_copy_f32(listed(t, ADAM_DIVIDE_DENOMINATOR, i), a, n);
        kernel_div_scalar_inplace_f32(listed(t, ADAM_DIVIDE_DENOMINATOR, i),
                                      (float)sqrt(bias_correction(t, attr(t, ADAM_DIVIDE_BETA2))),
                                      n);
        break;
    case PLAN_OP_ADAM_CORRECT:
        kernel_div_scalar_inplace_f32(
            a, (float)sqrt(bias_correction(t, attr(t, ADAM_CORRECT_BETA2))), n);
        break;
    case PLAN_OP_ADAM_EPS:
        kernel_add_scalar_inplace_f32(a, (float)attr(t, ADAM_EPS_EPS), n);
        break;
    case PLAN_OP_ADAM_UPDATE:
        kernel_addcdiv_inplace_f32(
            listed(t, ADAM_UPDATE_PARAMETER, i), a, listed(t, ADAM_UPDATE_ROOT, i),
            (float)(-attr(t, ADAM_UPDATE_LR) / bias_correction(t, attr(t, ADAM_UPDATE_BETA1))), n);
        break;
    case PLAN_OP_GRADIENT_DECAY:
        kernel_add_scaled_f32(listed(t, GRADIENT_DECAY_DECAYED, i), a,
                              listed(t, GRADIENT_DECAY_PARAMETER, i),
                              (float)attr(t, GRADIENT_DECAY_WEIGHT_DECAY), n);
        break;
    case PLAN_OP_SGD_UPDATE:
        kernel_add_scaled_f32(listed(t, SGD_UPDATE_PARAMETER, i),
                              listed(t, SGD_UPDATE_PARAMETER, i), a, (float)-attr(t, SGD_UPDATE_LR),
                              n);
        break;
    case PLAN_OP_MOMENTUM_START:
        kernel_copy_f32(listed(t, MOMENTUM_START_MOMENTUM, i), a, n);
        break;
    case PLAN_OP_MOMENTUM_ADD:
        kernel_add_inplace_f32(listed(t, MOMENTUM_ADD_MOMENTUM, i), a, n);
        break;
    }
}

static void zero_all(const ExecTask *t) {
    for (unsigned i = 0; i < list_length(t); i++) {
        kernel_fill_f32(f32(t, i), 0, operand(t, i).elements);
    }
}

/* Momentum that is to start is none yet. */
static void skip(const ExecTask *t) {
    for (unsigned i = 0; i < list_length(t) && t->op->kind == PLAN_OP_MOMENTUM_START; i++) {
        kernel_fill_f32(listed(t, MOMENTUM_START_MOMENTUM, i), 0, operand(t, i).elements);
    }
}

/* One tensor of each list. */
static void step_of(const ExecTask *t, unsigned i) {
    size_t n = operand(t, i).elements;
    switch ((ExecListOp)t->op->kind) {
        EXEC_FOREACH_OPS(EXEC_CASE)
        foreach_step(t, i, listed(t, 0, i), n);
        break;
    case PLAN_OP_ADAM_FUSED:
        adam_fused(t, i, n);
        break;
    case PLAN_OP_SGD_FUSED:
    case PLAN_OP_MOMENTUM_FUSED:
        sgd_fused(t, i, n);
        break;
    case PLAN_OP_NORMS:
        kernel_norm_f32(listed(t, NORMS_NORM, i), listed(t, NORMS_GRADIENT, i), n);
        break;
    case PLAN_OP_SCALE_ALL: /* exec_host_optimize()'s */
    case PLAN_OP_ZERO_ALL:
    case PLAN_OP_UNSCALE_ALL:
    case PLAN_OP_ADAM_FUSED_SCALED:
        g_assert_not_reached();
    }
}

void exec_host_optimize(const ExecTask *t) {
    switch (t->op->kind) {
    case PLAN_OP_SCALE_ALL:
        scale_all(t);
        return;
    case PLAN_OP_ZERO_ALL:
        zero_all(t);
        return;
    case PLAN_OP_UNSCALE_ALL:
        unscale_all(t);
        return;
    case PLAN_OP_ADAM_FUSED_SCALED:
        adam_fused_scaled(t);
        return;
    default:
        break;
    }
    if (t->stepping.skips && t->op->kind != PLAN_OP_NORMS) {
        skip(t);
        return;
    }
    for (unsigned i = 0; i < list_length(t); i++) {
        step_of(t, i);
    }
}
