/* exec/cuda/ops/optimizer.c - ops over lists of tensors: the optimizers, clipping, zeroing. */
#include <math.h>

#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/lists/optimizer.h"

typedef struct {
    KernelCudaTensors tensors;
    size_t *elements;
    KernelCudaType *types; /* of all lists, one after the other */
} Lists;

/* The op's first lists, which stand in the kernel's order; `first` is where they begin. */
static Lists lists_of(const ExecTask *t, unsigned first, unsigned n_lists) {
    unsigned n = list_length(t);
    Lists lists = {.elements = g_new(size_t, n), .types = g_new(KernelCudaType, n * n_lists)};
    lists.tensors = (KernelCudaTensors){.n = n, .elements = lists.elements};
    for (unsigned i = 0; i < n; i++) {
        lists.elements[i] = operand(t, first + i).elements;
    }
    for (unsigned l = 0; l < n_lists; l++) {
        unsigned from = first + l * n;
        lists.tensors.data[l] = t->pointers + from;
        lists.tensors.types[l] = lists.types + l * n;
        for (unsigned i = 0; i < n; i++) {
            lists.types[l * n + i] = type_at(t, from + i);
        }
    }
    return lists;
}

static KernelCudaFault clear(Lists *lists, KernelCudaFault fault) {
    g_free(lists->elements);
    g_free(lists->types);
    return fault;
}

static KernelCudaFault each(const ExecTask *t, KernelCuda *kernels, unsigned n_lists,
                            KernelCudaEach op, double number) {
    Lists lists = lists_of(t, 0, n_lists);
    return clear(&lists, kernel_cuda_foreach(kernels, &lists.tensors, op, (float)number));
}

static KernelCudaAdam adam_of(const ExecTask *t) {
    return (KernelCudaAdam){.lr = attr(t, ADAM_FUSED_LR),
                            .beta1 = attr(t, ADAM_FUSED_BETA1),
                            .beta2 = attr(t, ADAM_FUSED_BETA2),
                            .eps = attr(t, ADAM_FUSED_EPS),
                            .weight_decay = attr(t, ADAM_FUSED_WEIGHT_DECAY),
                            .decoupled = attr(t, ADAM_FUSED_DECOUPLED) != 0};
}

/* The count of steps lives on the device, one a tensor, as PyTorch's fused kernel has it: behind
 * four lists, the first of which begins at an operand. */
static float *const *steps_of(const ExecTask *t, unsigned first) {
    return (float *const *)(gpointer)(t->pointers + first + 4 * list_length(t));
}

static KernelCudaFault adam_fused(const ExecTask *t, KernelCuda *kernels) {
    KernelCudaAdam adam = adam_of(t);
    Lists lists = lists_of(t, ADAM_FUSED_GRADIENT, 4);
    return clear(
        &lists, kernel_cuda_adam(kernels, &lists.tensors, steps_of(t, ADAM_FUSED_GRADIENT), &adam));
}

static KernelCudaFault adam_fused_scaled(const ExecTask *t, KernelCuda *kernels) {
    KernelCudaAdam adam = adam_of(t);
    Lists lists = lists_of(t, ADAM_FUSED_SCALED_GRADIENT, 4);
    return clear(&lists, kernel_cuda_adam_if_finite(kernels, &lists.tensors,
                                                    steps_of(t, ADAM_FUSED_SCALED_GRADIENT), &adam,
                                                    t->pointers[ADAM_FUSED_SCALED_FOUND],
                                                    t->pointers[ADAM_FUSED_SCALED_SCALE]));
}

static KernelCudaFault unscale_all(const ExecTask *t, KernelCuda *kernels) {
    Lists lists = lists_of(t, UNSCALE_ALL_GRADIENT, 1);
    return clear(&lists,
                 kernel_cuda_unscale(kernels, &lists.tensors, t->pointers[UNSCALE_ALL_INVERSE],
                                     t->pointers[UNSCALE_ALL_FOUND]));
}

static KernelCudaFault sgd_fused(const ExecTask *t, KernelCuda *kernels) {
    bool momentum = t->op->kind == PLAN_OP_MOMENTUM_FUSED;
    KernelCudaSgd sgd = {
        .lr = attr(t, SGD_FUSED_LR),
        .momentum = momentum ? attr(t, MOMENTUM_FUSED_MOMENTUM_ATTR) : 0,
        .weight_decay = attr(t, momentum ? MOMENTUM_FUSED_WEIGHT_DECAY : SGD_FUSED_WEIGHT_DECAY),
        .first = momentum && attr(t, MOMENTUM_FUSED_FIRST) != 0};
    Lists lists = lists_of(t, SGD_FUSED_GRADIENT, momentum ? 3 : 2);
    return clear(&lists, kernel_cuda_sgd(kernels, &lists.tensors, &sgd));
}

static KernelCudaFault scale_all(const ExecTask *t, KernelCuda *kernels) {
    Lists lists = lists_of(t, SCALE_ALL_GRADIENT, 1);
    return clear(&lists, kernel_cuda_foreach_scale_by(kernels, &lists.tensors,
                                                      t->pointers[SCALE_ALL_FACTOR],
                                                      type_at(t, SCALE_ALL_FACTOR)));
}

static KernelCudaFault norms(const ExecTask *t, KernelCuda *kernels) {
    Lists lists = lists_of(t, NORMS_GRADIENT, 2);
    return clear(&lists, kernel_cuda_norms(kernels, &lists.tensors));
}

KernelCudaFault exec_cuda_largest_of_each(const ExecTask *t, KernelCuda *kernels) {
    Lists lists = lists_of(t, FLOAT8_LARGEST_X, 2);
    return clear(&lists, kernel_cuda_largest_of_each(kernels, &lists.tensors));
}

/* What belongs to the step itself, which is not taken where a gradient was not finite. */
static bool is_skipped(const ExecTask *t) {
    PlanOpKind kind = (PlanOpKind)t->op->kind;
    return t->stepping.skips && kind != PLAN_OP_NORMS && kind != PLAN_OP_SCALE_ALL &&
           kind != PLAN_OP_ZERO_ALL && kind != PLAN_OP_UNSCALE_ALL &&
           kind != PLAN_OP_ADAM_FUSED_SCALED;
}

/* Momentum that is to start is none yet. */
static KernelCudaFault skip(const ExecTask *t, KernelCuda *kernels) {
    if (t->op->kind != PLAN_OP_MOMENTUM_START) {
        return NULL;
    }
    Lists lists = lists_of(t, list_length(t), 1);
    return clear(&lists, kernel_cuda_foreach(kernels, &lists.tensors, KERNEL_CUDA_EACH_ZERO, 0));
}

KernelCudaFault exec_cuda_optimize(const ExecTask *t, KernelCuda *k) {
    if (is_skipped(t)) {
        return skip(t, k);
    }
    switch ((ExecListOp)t->op->kind) {
    case PLAN_OP_ADAM_DECAY:
        return each(t, k, 1, KERNEL_CUDA_EACH_MUL,
                    1 - attr(t, ADAM_DECAY_LR) * attr(t, ADAM_DECAY_WEIGHT_DECAY));
    case PLAN_OP_ADAM_MOMENT:
        return each(t, k, 2, KERNEL_CUDA_EACH_LERP, 1 - attr(t, ADAM_MOMENT_BETA1));
    case PLAN_OP_ADAM_SQUARE_DECAY:
        return each(t, k, 1, KERNEL_CUDA_EACH_MUL, attr(t, ADAM_SQUARE_DECAY_BETA2));
    case PLAN_OP_MOMENTUM_DECAY:
        return each(t, k, 1, KERNEL_CUDA_EACH_MUL, attr(t, MOMENTUM_DECAY_MOMENTUM_ATTR));
    case PLAN_OP_ADAM_SQUARE:
        return each(t, k, 2, KERNEL_CUDA_EACH_ADDCMUL, 1 - attr(t, ADAM_SQUARE_BETA2));
    case PLAN_OP_ADAM_SQRT:
        return each(t, k, 2, KERNEL_CUDA_EACH_SQRT, 0);
    case PLAN_OP_ADAM_DIVIDE:
        return each(t, k, 2, KERNEL_CUDA_EACH_DIV_TO,
                    sqrt(bias_correction(t, attr(t, ADAM_DIVIDE_BETA2))));
    case PLAN_OP_ADAM_CORRECT:
        return each(t, k, 1, KERNEL_CUDA_EACH_DIV,
                    sqrt(bias_correction(t, attr(t, ADAM_CORRECT_BETA2))));
    case PLAN_OP_ADAM_EPS:
        return each(t, k, 1, KERNEL_CUDA_EACH_ADD, attr(t, ADAM_EPS_EPS));
    case PLAN_OP_ADAM_UPDATE:
        return each(t, k, 3, KERNEL_CUDA_EACH_ADDCDIV,
                    -attr(t, ADAM_UPDATE_LR) / bias_correction(t, attr(t, ADAM_UPDATE_BETA1)));
    case PLAN_OP_ADAM_FUSED:
        return adam_fused(t, k);
    case PLAN_OP_GRADIENT_DECAY:
        return each(t, k, 3, KERNEL_CUDA_EACH_ADD_TO, attr(t, GRADIENT_DECAY_WEIGHT_DECAY));
    case PLAN_OP_SGD_UPDATE:
        return each(t, k, 2, KERNEL_CUDA_EACH_ADD_SCALED, -attr(t, SGD_UPDATE_LR));
    case PLAN_OP_SGD_FUSED:
    case PLAN_OP_MOMENTUM_FUSED:
        return sgd_fused(t, k);
    case PLAN_OP_MOMENTUM_START:
        return each(t, k, 2, KERNEL_CUDA_EACH_COPY, 0);
    case PLAN_OP_MOMENTUM_ADD:
        return each(t, k, 2, KERNEL_CUDA_EACH_SUM, 0);
    case PLAN_OP_NORMS:
        return norms(t, k);
    case PLAN_OP_SCALE_ALL:
        return scale_all(t, k);
    case PLAN_OP_ZERO_ALL:
        return each(t, k, 1, KERNEL_CUDA_EACH_ZERO, 0);
    case PLAN_OP_UNSCALE_ALL:
        return unscale_all(t, k);
    case PLAN_OP_ADAM_FUSED_SCALED:
        return adam_fused_scaled(t, k);
    }
    g_assert_not_reached();
}
