/* exec/host/four-bit.c - ops of weights in 4 bits. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/four-bit.h"
#include "plan/op/four-bit.h"

static KernelFourBitCode code_of(const ExecTask *t) {
    return dim(t, 1) == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4 : KERNEL_FOUR_BIT_FP4;
}

void exec_host_four_bit(const ExecTask *t) {
    switch ((ExecFourBitOp)t->op->kind) {
    case PLAN_OP_QUANTIZE_4BIT:
        kernel_quantize_4bit(bytes(t, 1), f32(t, 2), f32(t, 0), dim(t, 0), code_of(t));
        return;
    case PLAN_OP_DEQUANTIZE_4BIT:
        kernel_dequantize_4bit(f32(t, 2), bytes(t, 0), f32(t, 1), dim(t, 0), code_of(t));
        return;
    case PLAN_OP_BYTE_MAP:
        kernel_byte_map(f32(t, 0));
        return;
    case PLAN_OP_QUANTIZE_BYTES:
        kernel_quantize_bytes(bytes(t, 2), f32(t, 3), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_DEQUANTIZE_BYTES:
        kernel_dequantize_bytes(f32(t, 3), bytes(t, 0), f32(t, 1), f32(t, 2), dim(t, 0));
        return;
    }
    g_assert_not_reached();
}
