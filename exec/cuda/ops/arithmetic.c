/* exec/cuda/ops/arithmetic.c - arithmetic, element by element. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/reduce.h"

static KernelCudaFault number(const ExecTask *t, KernelCuda *k, KernelCudaNumber op) {
    return kernel_cuda_number(k, t->pointers[1], t->pointers[0], dim(t, 0), op, attr(t, 0),
                              type_at(t, 0));
}

/* Of two operands in two types the result is in the wider: the other is copied into it first. */
static bool widens(const ExecTask *t, unsigned *ret_narrow) {
    *ret_narrow = type_at(t, 0) == type_at(t, 2) ? 1 : 0;
    return type_at(t, 0) != type_at(t, 1);
}

static KernelCudaFault copy_wide(const ExecTask *t, KernelCuda *k, unsigned narrow) {
    return kernel_cuda_cast(k, t->pointers[2], type_at(t, 2), t->pointers[narrow],
                            type_at(t, narrow), dim(t, 0));
}

static KernelCudaFault add(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    unsigned narrow;
    if (!widens(t, &narrow)) {
        return kernel_cuda_add(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault
                 : kernel_cuda_accumulate(k, p[2], type_at(t, 2), p[1 - narrow],
                                          type_at(t, 1 - narrow), dim(t, 0));
}

static KernelCudaFault mul(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    unsigned narrow;
    if (!widens(t, &narrow)) {
        return kernel_cuda_mul(k, p[2], p[0], p[1], dim(t, 0), type_at(t, 0));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault : kernel_cuda_mul(k, p[2], p[2], p[1 - narrow], dim(t, 0), type_at(t, 2));
}

KernelCudaFault exec_cuda_arithmetic(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecArithmeticOp)t->op->kind) {
    case PLAN_OP_ADD:
        return add(t, k);
    case PLAN_OP_MUL:
        return mul(t, k);
    case PLAN_OP_FILL:
        return kernel_cuda_fill(k, p[0], dim(t, 0), attr(t, 0), type);
    case PLAN_OP_SCALE:
        return kernel_cuda_scale(k, p[0], type, p[0], type, dim(t, 0), attr(t, 0));
    case PLAN_OP_BUCKET_COPY_IN:
        return kernel_cuda_scale(k, p[1], type_at(t, 1), p[0], type, dim(t, 0), attr(t, 0));
    case PLAN_OP_ACCUMULATE:
        return kernel_cuda_accumulate(k, p[1], type_at(t, 1), p[0], type, dim(t, 0));
    case PLAN_OP_CAST:
        return kernel_cuda_cast(k, p[1], type_at(t, 1), p[0], type, dim(t, 0));
    case PLAN_OP_POWER:
        return number(t, k, KERNEL_CUDA_POWER);
    case PLAN_OP_ADD_NUMBER:
        return number(t, k, KERNEL_CUDA_ADD_NUMBER);
    case PLAN_OP_TIMES_NUMBER:
        return number(t, k, KERNEL_CUDA_TIMES_NUMBER);
    case PLAN_OP_AT_MOST:
        return number(t, k, KERNEL_CUDA_AT_MOST);
    case PLAN_OP_UPDATE_SCALE:
        return kernel_cuda_update_scale(k, p[0], p[1], p[2], attr(t, 0), attr(t, 1), attr(t, 2));
    }
    g_assert_not_reached();
}
