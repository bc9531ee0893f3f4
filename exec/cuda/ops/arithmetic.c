/* exec/cuda/ops/arithmetic.c - arithmetic, element by element. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/reduce.h"

/* Four kinds alike, by the names of POWER. */
static KernelCudaFault number(const ExecTask *t, KernelCuda *k, KernelCudaNumber op) {
    return kernel_cuda_number(k, t->pointers[POWER_Y], t->pointers[POWER_X], dim(t, POWER_N), op,
                              attr(t, POWER_EXPONENT), type_at(t, POWER_X));
}

/* Whether the operands are of two types. The result then has the wider one, and the operand in the
 * narrower type, *ret_narrow, is copied into it first. */
static bool widens(const ExecTask *t, unsigned *ret_narrow) {
    *ret_narrow = type_at(t, ADD_A) == type_at(t, ADD_Y) ? ADD_B : ADD_A;
    return type_at(t, ADD_A) != type_at(t, ADD_B);
}

static KernelCudaFault copy_wide(const ExecTask *t, KernelCuda *k, unsigned narrow) {
    return kernel_cuda_cast(k, t->pointers[ADD_Y], type_at(t, ADD_Y), t->pointers[narrow],
                            type_at(t, narrow), dim(t, ADD_N));
}

static KernelCudaFault add(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    size_t n = dim(t, ADD_N), nb = dim(t, ADD_NB);
    unsigned narrow;
    if (nb != n) {
        return kernel_cuda_add_row(k, p[ADD_Y], p[ADD_A], p[ADD_B], n, nb, type_at(t, ADD_A),
                                   type_at(t, ADD_B));
    }
    if (!widens(t, &narrow)) {
        return kernel_cuda_add(k, p[ADD_Y], p[ADD_A], p[ADD_B], n, nb, type_at(t, ADD_A));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault
                 : kernel_cuda_accumulate(k, p[ADD_Y], type_at(t, ADD_Y), p[ADD_B - narrow],
                                          type_at(t, ADD_B - narrow), dim(t, ADD_N));
}

static KernelCudaFault mul(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    unsigned narrow;
    if (!widens(t, &narrow)) {
        return kernel_cuda_mul(k, p[MUL_Y], p[MUL_A], p[MUL_B], dim(t, MUL_N), type_at(t, MUL_A));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault
                 : kernel_cuda_mul(k, p[MUL_Y], p[MUL_Y], p[MUL_B - narrow], dim(t, MUL_N),
                                   type_at(t, MUL_Y));
}

KernelCudaFault exec_cuda_arithmetic(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecArithmeticOp)t->op->kind) {
    case PLAN_OP_ADD:
        return add(t, k);
    case PLAN_OP_MUL:
        return mul(t, k);
    case PLAN_OP_SUB:
        return kernel_cuda_add_scaled(k, p[SUB_Y], p[SUB_A], p[SUB_B],
                                      dim(t, SUB_ROWS) * dim(t, SUB_COLS), -1, type);
    case PLAN_OP_FILL:
        return kernel_cuda_fill(k, p[FILL_Y], dim(t, FILL_N), attr(t, FILL_VALUE), type);
    case PLAN_OP_SCALE:
        return kernel_cuda_scale(k, p[SCALE_X], type, p[SCALE_X], type, dim(t, SCALE_N),
                                 attr(t, SCALE_FACTOR));
    case PLAN_OP_BUCKET_COPY_IN:
        return kernel_cuda_scale(k, p[BUCKET_COPY_IN_BUCKET], type_at(t, BUCKET_COPY_IN_BUCKET),
                                 p[BUCKET_COPY_IN_GRADIENT], type, dim(t, BUCKET_COPY_IN_N),
                                 attr(t, BUCKET_COPY_IN_SCALE));
    case PLAN_OP_ACCUMULATE:
        return kernel_cuda_accumulate(k, p[ACCUMULATE_SUM], type_at(t, ACCUMULATE_SUM),
                                      p[ACCUMULATE_X], type, dim(t, ACCUMULATE_N));
    case PLAN_OP_CAST:
        return kernel_cuda_cast(k, p[CAST_Y], type_at(t, CAST_Y), p[CAST_X], type, dim(t, CAST_N));
    case PLAN_OP_POWER:
        return number(t, k, KERNEL_CUDA_POWER);
    case PLAN_OP_ADD_NUMBER:
        return number(t, k, KERNEL_CUDA_ADD_NUMBER);
    case PLAN_OP_TIMES_NUMBER:
        return number(t, k, KERNEL_CUDA_TIMES_NUMBER);
    case PLAN_OP_AT_MOST:
        return number(t, k, KERNEL_CUDA_AT_MOST);
    case PLAN_OP_ADD_SCALED:
        return kernel_cuda_add_scaled(k, p[ADD_SCALED_Y], p[ADD_SCALED_A], p[ADD_SCALED_X],
                                      dim(t, ADD_SCALED_N), attr(t, ADD_SCALED_NUMBER), type);
    case PLAN_OP_ADD_SCALED_BACKWARD:
        return kernel_cuda_scale(k, p[ADD_SCALED_BACKWARD_DX], type, p[ADD_SCALED_BACKWARD_DY],
                                 type, dim(t, ADD_SCALED_BACKWARD_N),
                                 attr(t, ADD_SCALED_BACKWARD_NUMBER));
    case PLAN_OP_UPDATE_SCALE:
        return kernel_cuda_update_scale(k, p[UPDATE_SCALE_FOUND], p[UPDATE_SCALE_SCALE],
                                        p[UPDATE_SCALE_TRACKER], attr(t, UPDATE_SCALE_GROWTH),
                                        attr(t, UPDATE_SCALE_BACKOFF),
                                        attr(t, UPDATE_SCALE_INTERVAL));
    }
    g_assert_not_reached();
}
