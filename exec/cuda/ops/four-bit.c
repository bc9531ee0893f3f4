/* exec/cuda/ops/four-bit.c - ops of weights in 4 bits, as exec/host/four-bit.c has them. */
#include "kernels/cuda/four-bit.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/host/four-bit.h"
#include "plan/op/four-bit.h"

static KernelFourBitCode code_of(const ExecTask *t) {
    return dim(t, 1) == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4 : KERNEL_FOUR_BIT_FP4;
}

static KernelCudaFault byte_map(const ExecTask *t, KernelCuda *k) {
    float map[KERNEL_BYTE_MAP];
    kernel_byte_map(map);
    return kernel_cuda_put_byte_map(k, f32(t, 0), map);
}

KernelCudaFault exec_cuda_four_bit(const ExecTask *t, KernelCuda *k) {
    switch ((ExecFourBitOp)t->op->kind) {
    case PLAN_OP_QUANTIZE_4BIT:
        return kernel_cuda_quantize_4bit(k, bytes(t, 1), f32(t, 2), t->pointers[0], dim(t, 0),
                                         code_of(t), type_at(t, 0));
    case PLAN_OP_DEQUANTIZE_4BIT:
        return kernel_cuda_dequantize_4bit(k, t->pointers[2], bytes(t, 0), f32(t, 1), dim(t, 0),
                                           code_of(t), type_at(t, 2));
    case PLAN_OP_BYTE_MAP:
        return byte_map(t, k);
    case PLAN_OP_QUANTIZE_BYTES:
        return kernel_cuda_quantize_bytes(k, bytes(t, 2), f32(t, 3), f32(t, 0), f32(t, 1),
                                          dim(t, 0));
    case PLAN_OP_DEQUANTIZE_BYTES:
        return kernel_cuda_dequantize_bytes(k, f32(t, 3), bytes(t, 0), f32(t, 1), f32(t, 2),
                                            dim(t, 0));
    }
    g_assert_not_reached();
}
