/* exec/cuda/ops/muon.c - what Muon does with one matrix, as exec/host/muon.c has it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/turned.h"

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
    size_t m = dim(t, 0), n = dim(t, 1);
    KernelCudaType type = type_at(t, 3);
    gpointer *p = t->pointers, c = p[2], y = p[3];
    KernelCudaFault fault = !c          ? NULL
                            : dim(t, 5) ? exchange_sides(t, k, 3, 2, n, m)
                                        : kernel_cuda_cast(k, y, type, c, type, m * n);
    return fault ? fault
                 : kernel_cuda_product(k, y, p[0], dim(t, 3), p[1], dim(t, 4), m, n, dim(t, 2),
                                       attr(t, 0), c ? attr(t, 1) : 0, type);
}

static KernelCudaFault update(const ExecTask *t, KernelCuda *k) {
    size_t rows = dim(t, 0), columns = dim(t, 1);
    gpointer *p = t->pointers;
    return dim(t, 2) ? kernel_cuda_add_turned(k, p[1], type_at(t, 1), p[0], type_at(t, 0), columns,
                                              rows, -attr(t, 0))
                     : each(t, k, KERNEL_CUDA_EACH_ADD_SCALED, rows * columns, -attr(t, 0));
}

KernelCudaFault exec_cuda_muon(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecMuonOp)t->op->kind) {
    case PLAN_OP_LERP:
        return each(t, k, KERNEL_CUDA_EACH_LERP_TO, dim(t, 0), attr(t, 0));
    case PLAN_OP_AT_LEAST:
        return kernel_cuda_number(k, p[1], p[0], dim(t, 0), KERNEL_CUDA_AT_LEAST, attr(t, 0),
                                  type_at(t, 0));
    case PLAN_OP_DIVIDE_BY: /* one row */
        return kernel_cuda_divide_column(k, p[1], p[1], p[0], 1, dim(t, 0), type_at(t, 1));
    case PLAN_OP_PRODUCT:
        return product(t, k);
    case PLAN_OP_MUON_UPDATE:
        return update(t, k);
    case PLAN_OP_EXCHANGE_SIDES:
        return exchange_sides(t, k, 1, 0, dim(t, 0), dim(t, 1));
    }
    g_assert_not_reached();
}
