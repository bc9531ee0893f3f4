/* exec/host/optimizer.c - the optimizers' steps, and the norms and factors of clipping, over lists
 * of tensors.
 */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/host-step.h"
#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/optimizer.h"
#include "kernels/host/reduce.h"

/* List j's tensor i of an op whose slots are all lists. */
static float *listed(const ExecTask *t, unsigned j, unsigned i) {
    return f32(t, j * list_length(t) + i);
}

/* The count of steps lives on the device, one a tensor, as PyTorch's fused kernel has it. */
static void adam_fused(const ExecTask *t, unsigned i, size_t n) {
    float *steps = listed(t, 4, i);
    *steps += 1;
    KernelAdam adam = exec_adam_of(t, (int64_t)*steps);
    kernel_adam_f32(listed(t, 1, i), listed(t, 2, i), listed(t, 3, i), listed(t, 0, i), n, &adam);
}

/* Behind its two numbers. */
static void adam_fused_scaled(const ExecTask *t) {
    unsigned n_lists = list_length(t);
    bool is_finite = *f32(t, 1) == 0;
    for (unsigned i = 0; i < n_lists && is_finite; i++) {
        float *lists[5];
        for (unsigned j = 0; j < G_N_ELEMENTS(lists); j++) {
            lists[j] = f32(t, 2 + j * n_lists + i);
        }
        size_t n = operand(t, 2 + i).elements;
        if (t->pointers[0]) {
            float inverse = (float)(1 / (double)*f32(t, 0));
            kernel_mul_scalar_inplace_f32(lists[0], inverse, n);
        }
        *lists[4] += 1;
        KernelAdam adam = exec_adam_of(t, (int64_t)*lists[4]);
        kernel_adam_f32(lists[1], lists[2], lists[3], lists[0], n, &adam);
    }
}

static void unscale_all(const ExecTask *t) {
    for (unsigned i = 2; i < 2 + list_length(t); i++) {
        if (!kernel_unscale_inplace_f32(f32(t, i), *f32(t, 0), operand(t, i).elements)) {
            *f32(t, 1) = 1;
        }
    }
}

static void sgd_fused(const ExecTask *t, unsigned i, size_t n) {
    bool momentum = t->op->kind == PLAN_OP_MOMENTUM_FUSED;
    KernelSgd sgd = {.lr = attr(t, 0),
                     .momentum = momentum ? attr(t, 1) : 0,
                     .weight_decay = attr(t, momentum ? 2 : 1),
                     .step = momentum && attr(t, 3) != 0 ? 1 : 2};
    kernel_sgd_f32(listed(t, 1, i), momentum ? listed(t, 2, i) : NULL, listed(t, 0, i), n, &sgd);
}

static void scale_all(const ExecTask *t) {
    for (unsigned i = 1; i <= list_length(t); i++) {
        kernel_scale_by_inplace_f32(f32(t, i), f32(t, 0), operand(t, i).elements);
    }
}

/* A foreach optimizer's step, of one tensor of each list; a is the first list's. */
static void foreach_step(const ExecTask *t, unsigned i, float *a, size_t n) {
    switch ((ExecForeachOp)t->op->kind) {
    case PLAN_OP_ADAM_DECAY:
        kernel_mul_scalar_inplace_f32(a, (float)(1 - attr(t, 0) * attr(t, 1)), n);
        break;
    case PLAN_OP_ADAM_MOMENT:
        kernel_lerp_inplace_f32(listed(t, 1, i), a, (float)(1 - attr(t, 0)), n);
        break;
    case PLAN_OP_ADAM_SQUARE_DECAY:
    case PLAN_OP_MOMENTUM_DECAY:
        kernel_mul_scalar_inplace_f32(a, (float)attr(t, 0), n);
        break;
    case PLAN_OP_ADAM_SQUARE:
        kernel_addcmul_inplace_f32(listed(t, 1, i), a, a, (float)(1 - attr(t, 0)), n);
        break;
    case PLAN_OP_ADAM_SQRT:
        kernel_sqrt_f32(listed(t, 1, i), a, n);
        break;
    case PLAN_OP_ADAM_DIVIDE:
        kernel_copy_f32(listed(t, 1, i), a, n);
        kernel_div_scalar_inplace_f32(listed(t, 1, i), (float)sqrt(bias_correction(t, attr(t, 0))),
                                      n);
        break;
    case PLAN_OP_ADAM_CORRECT:
        kernel_div_scalar_inplace_f32(a, (float)sqrt(bias_correction(t, attr(t, 0))), n);
        break;
    case PLAN_OP_ADAM_EPS:
        kernel_add_scalar_inplace_f32(a, (float)attr(t, 0), n);
        break;
    case PLAN_OP_ADAM_UPDATE:
        kernel_addcdiv_inplace_f32(listed(t, 2, i), a, listed(t, 1, i),
                                   (float)(-attr(t, 0) / bias_correction(t, attr(t, 1))), n);
        break;
    case PLAN_OP_GRADIENT_DECAY:
        kernel_add_scaled_f32(listed(t, 2, i), a, listed(t, 1, i), (float)attr(t, 0), n);
        break;
    case PLAN_OP_SGD_UPDATE:
        kernel_add_scaled_f32(listed(t, 1, i), listed(t, 1, i), a, (float)-attr(t, 0), n);
        break;
    case PLAN_OP_MOMENTUM_START:
        kernel_copy_f32(listed(t, 1, i), a, n);
        break;
    case PLAN_OP_MOMENTUM_ADD:
        kernel_add_inplace_f32(listed(t, 1, i), a, n);
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
        kernel_fill_f32(listed(t, 1, i), 0, operand(t, i).elements);
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
        kernel_norm_f32(listed(t, 1, i), listed(t, 0, i), n);
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
