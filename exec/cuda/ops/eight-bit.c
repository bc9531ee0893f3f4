/* exec/cuda/ops/eight-bit.c - AdamW with states in 8 bits, as exec/host/eight-bit.c has it. */
#include "kernels/cuda/lists/eight-bit.h"
#include "exec/cuda/ops/operands.h"
#include "exec/eight-bit.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products/four-bit.h"
#include "kernels/host/products/four-bit.h"

static KernelCudaFault state_map(const ExecTask *t, KernelCuda *k) {
    float map[KERNEL_BYTE_MAP];
    kernel_state_map(map, (unsigned)dim(t, STATE_MAP_PARTS));
    return kernel_cuda_put_byte_map(k, f32(t, STATE_MAP_MAP), map);
}

static KernelCudaFault adam_8bit(const ExecTask *t, KernelCuda *k) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    return kernel_cuda_adam_8bit(k, t->pointers[ADAM_8BIT_PARAMETER],
                                 t->pointers[ADAM_8BIT_GRADIENT], &of.exp_avg, &of.exp_avg_sq,
                                 dim(t, ADAM_8BIT_N), (float)attr(t, ADAM_8BIT_LEAST), &one,
                                 type_at(t, ADAM_8BIT_GRADIENT));
}

static KernelCudaFault scaled(const ExecTask *t, KernelCuda *k) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    return kernel_cuda_adam_8bit_scaled(
        k, t->pointers[ADAM_8BIT_SCALED_PARAMETER], t->pointers[ADAM_8BIT_SCALED_GRADIENT],
        &of.exp_avg, &of.exp_avg_sq, dim(t, ADAM_8BIT_SCALED_N),
        (float)attr(t, ADAM_8BIT_SCALED_LEAST), &one, type_at(t, ADAM_8BIT_SCALED_GRADIENT));
}

static KernelCudaFault update(const ExecTask *t, KernelCuda *k) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    return kernel_cuda_adam_8bit_update(k, t->pointers[ADAM_8BIT_UPDATE_PARAMETER],
                                        t->pointers[ADAM_8BIT_UPDATE_GRADIENT], &of.exp_avg,
                                        &of.exp_avg_sq, dim(t, ADAM_8BIT_UPDATE_N), &one,
                                        type_at(t, ADAM_8BIT_UPDATE_GRADIENT));
}

static KernelCudaFault adam_one(const ExecTask *t, KernelCuda *k) {
    KernelAdamOne one = exec_adam_one(t);
    gpointer *p = t->pointers;
    return kernel_cuda_adam_one(k, p[ADAM_ONE_PARAMETER], p[ADAM_ONE_EXP_AVG],
                                p[ADAM_ONE_EXP_AVG_SQ], p[ADAM_ONE_GRADIENT], dim(t, ADAM_ONE_N),
                                &one, type_at(t, ADAM_ONE_PARAMETER));
}

KernelCudaFault exec_cuda_eight_bit(const ExecTask *t, KernelCuda *k) {
    switch ((ExecEightBitOp)t->op->kind) {
    case PLAN_OP_STATE_MAP:
        return state_map(t, k);
    case PLAN_OP_ZERO_CODES:
        return kernel_cuda_fill(k, t->pointers[ZERO_CODES_CODES],
                                dim(t, ZERO_CODES_N) / sizeof(float), 0, KERNEL_CUDA_F32);
    case PLAN_OP_ADAM_8BIT:
        return adam_8bit(t, k);
    case PLAN_OP_ADAM_8BIT_SCALED:
        return scaled(t, k);
    case PLAN_OP_ADAM_8BIT_UPDATE:
        return update(t, k);
    case PLAN_OP_PUT_CODES:
        return kernel_cuda_put_codes(k, bytes(t, PUT_CODES_CODES), f32(t, PUT_CODES_X),
                                     f32(t, PUT_CODES_MAP), dim(t, PUT_CODES_N));
    case PLAN_OP_ADAM_ONE:
        return adam_one(t, k);
    }
    g_assert_not_reached();
}
