/* exec/host/four-bit.c - ops of weights in 4 bits. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/products/four-bit.h"
#include "plan/op/four-bit.h"

static KernelFourBitCode code_of(const ExecTask *t) {
    return dim(t, QUANTIZE_4BIT_CODE) == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4
                                                           : KERNEL_FOUR_BIT_FP4;
}

void exec_host_four_bit(const ExecTask *t) {
    switch ((ExecFourBitOp)t->op->kind) {
    case PLAN_OP_QUANTIZE_4BIT:
        kernel_quantize_4bit(bytes(t, QUANTIZE_4BIT_NIBBLES), f32(t, QUANTIZE_4BIT_ABSMAX),
                             f32(t, QUANTIZE_4BIT_W), dim(t, QUANTIZE_4BIT_N), code_of(t));
        return;
    case PLAN_OP_DEQUANTIZE_4BIT:
        kernel_dequantize_4bit(f32(t, DEQUANTIZE_4BIT_W), bytes(t, DEQUANTIZE_4BIT_NIBBLES),
                               f32(t, DEQUANTIZE_4BIT_ABSMAX), dim(t, DEQUANTIZE_4BIT_N),
                               code_of(t));
        return;
    case PLAN_OP_BYTE_MAP:
        kernel_byte_map(f32(t, BYTE_MAP_MAP));
        return;
    case PLAN_OP_QUANTIZE_BYTES:
        kernel_quantize_bytes(bytes(t, QUANTIZE_BYTES_BYTES), f32(t, QUANTIZE_BYTES_ABSMAX),
                              f32(t, QUANTIZE_BYTES_X), f32(t, QUANTIZE_BYTES_MAP),
                              dim(t, QUANTIZE_BYTES_N));
        return;
    case PLAN_OP_DEQUANTIZE_BYTES:
        kernel_dequantize_bytes(f32(t, DEQUANTIZE_BYTES_X), bytes(t, DEQUANTIZE_BYTES_BYTES),
                                f32(t, DEQUANTIZE_BYTES_ABSMAX), f32(t, DEQUANTIZE_BYTES_MAP),
                                dim(t, DEQUANTIZE_BYTES_N));
        return;
    }
    g_assert_not_reached();
}
