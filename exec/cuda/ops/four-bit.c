/* exec/cuda/ops/four-bit.c - ops of weights in 4 bits, as exec/host/four-bit.c has them. */
#include "kernels/cuda/products/four-bit.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/host/products/four-bit.h"
#include "plan/op/four-bit.h"

static KernelFourBitCode code_of(const ExecTask *t) {
    return dim(t, QUANTIZE_4BIT_CODE) == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4
                                                           : KERNEL_FOUR_BIT_FP4;
}

static KernelCudaFault byte_map(const ExecTask *t, KernelCuda *k) {
    float map[KERNEL_BYTE_MAP];
    kernel_byte_map(map);
    return kernel_cuda_put_byte_map(k, f32(t, BYTE_MAP_MAP), map);
}

KernelCudaFault exec_cuda_four_bit(const ExecTask *t, KernelCuda *k) {
    switch ((ExecFourBitOp)t->op->kind) {
    case PLAN_OP_QUANTIZE_4BIT:
        return kernel_cuda_quantize_4bit(k, bytes(t, QUANTIZE_4BIT_NIBBLES),
                                         f32(t, QUANTIZE_4BIT_ABSMAX), t->pointers[QUANTIZE_4BIT_W],
                                         dim(t, QUANTIZE_4BIT_N), code_of(t),
                                         type_at(t, QUANTIZE_4BIT_W));
    case PLAN_OP_DEQUANTIZE_4BIT:
        return kernel_cuda_dequantize_4bit(
            k, t->pointers[DEQUANTIZE_4BIT_W], bytes(t, DEQUANTIZE_4BIT_NIBBLES),
            f32(t, DEQUANTIZE_4BIT_ABSMAX), dim(t, DEQUANTIZE_4BIT_N), code_of(t),
            type_at(t, DEQUANTIZE_4BIT_W));
    case PLAN_OP_BYTE_MAP:
        return byte_map(t, k);
    case PLAN_OP_QUANTIZE_BYTES:
        return kernel_cuda_quantize_bytes(k, bytes(t, QUANTIZE_BYTES_BYTES),
                                          f32(t, QUANTIZE_BYTES_ABSMAX), f32(t, QUANTIZE_BYTES_X),
                                          f32(t, QUANTIZE_BYTES_MAP), dim(t, QUANTIZE_BYTES_N));
    case PLAN_OP_DEQUANTIZE_BYTES:
        return kernel_cuda_dequantize_bytes(
            k, f32(t, DEQUANTIZE_BYTES_X), bytes(t, DEQUANTIZE_BYTES_BYTES),
            f32(t, DEQUANTIZE_BYTES_ABSMAX), f32(t, DEQUANTIZE_BYTES_MAP),
            dim(t, DEQUANTIZE_BYTES_N));
    }
    g_assert_not_reached();
}
