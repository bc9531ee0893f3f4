/* exec/cuda/ops/muon.c - what Muon does with one matrix, as exec/host/muon.c has it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/products/turned.h"

/* The op's operands are a list of one tensor each. */
static KernelCudaFault each(const ExecTask *t, KernelCuda *k, KernelCudaEach op, size_t elements,
                            double number) {
    KernelCudaType types[KERNEL_CUDA_MAX_LISTS];
    KernelCudaTensors tensors = {.n = 1, .elements = &elements};
    for (unsigned i = 0; i < t->op->n_operands; i++) {
        types[i] = type_at(t, i);
        tensors.data[i] = t->pointers + i;
        tensors.types[i] = types + i;
    }
    return kernel_cuda_foreach(k, &tensors, op, (float)number);
}

static KernelCudaFault exchange_sides(const ExecTask *t, KernelCuda *k, unsigned to, unsigned from,
                                      size_t rows, size_t columns) {
    return kernel_cuda_exchange_sides(k, t->pointers[to], t->pointers[from], rows, columns,
                                      kernel_cuda_type_bytes(type_at(t, from)));
}

/* As torch.addmm: what the product is added to is copied to where the result will lie. */
static KernelCudaFault product(const ExecTask *t, KernelCuda *k) {
    size_t m = dim(t, PRODUCT_M), n = dim(t, PRODUCT_N);
    KernelCudaType type = type_at(t, PRODUCT_Y);
    gpointer *p = t->pointers, c = p[PRODUCT_C], y = p[PRODUCT_Y];
    KernelCudaFault fault = !c ? NULL
                            : dim(t, PRODUCT_C_TURNED)
                                ? exchange_sides(t, k, 3, 2, n, m)
                                : kernel_cuda_cast(k, y, type, c, type, m * n);
    return fault ? fault
                 : kernel_cuda_product(k, y, p[PRODUCT_A], dim(t, PRODUCT_A_TURNED), p[PRODUCT_B],
                                       dim(t, PRODUCT_B_TURNED), m, n, dim(t, PRODUCT_K),
                                       attr(t, PRODUCT_ALPHA), c ? attr(t, PRODUCT_BETA) : 0, type);
}

static KernelCudaFault update(const ExecTask *t, KernelCuda *k) {
    size_t rows = dim(t, MUON_UPDATE_ROWS), columns = dim(t, MUON_UPDATE_COLS);
    gpointer *p = t->pointers;
    return dim(t, MUON_UPDATE_TURNED)
               ? kernel_cuda_add_turned(k, p[MUON_UPDATE_PARAMETER],
                                        type_at(t, MUON_UPDATE_PARAMETER), p[MUON_UPDATE_X],
                                        type_at(t, MUON_UPDATE_X), columns, rows,
                                        -attr(t, MUON_UPDATE_LR))
               : each(t, k, KERNEL_CUDA_EACH_ADD_SCALED, rows * columns, -attr(t, MUON_UPDATE_LR));
}

KernelCudaFault exec_cuda_muon(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecMuonOp)t->op->kind) {
    case PLAN_OP_LERP:
        return each(t, k, KERNEL_CUDA_EACH_LERP_TO, dim(t, LERP_N), attr(t, LERP_WEIGHT));
    case PLAN_OP_AT_LEAST:
        return kernel_cuda_number(k, p[AT_LEAST_Y], p[AT_LEAST_X], dim(t, AT_LEAST_N),
                                  KERNEL_CUDA_AT_LEAST, attr(t, AT_LEAST_LIMIT),
                                  type_at(t, AT_LEAST_X));
    case PLAN_OP_DIVIDE_BY: /* one row */
        return kernel_cuda_divide_column(k, p[DIVIDE_BY_X], p[DIVIDE_BY_X], p[DIVIDE_BY_BY], 1,
                                         dim(t, DIVIDE_BY_N), type_at(t, DIVIDE_BY_X));
    case PLAN_OP_PRODUCT:
        return product(t, k);
    case PLAN_OP_MUON_UPDATE:
        return update(t, k);
    case PLAN_OP_EXCHANGE_SIDES:
        return exchange_sides(t, k, 1, 0, dim(t, EXCHANGE_SIDES_ROWS), dim(t, EXCHANGE_SIDES_COLS));
    }
    g_assert_not_reached();
}
