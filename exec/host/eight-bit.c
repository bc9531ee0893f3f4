/* exec/host/eight-bit.c - AdamW with states in 8 bits, a parameter (plan/optimizer/eight-bit.c). */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/eight-bit.h"
#include "kernels/host/lists/eight-bit.h"
#include "kernels/host/products/four-bit.h"

static void adam_8bit(const ExecTask *t) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    kernel_adam_8bit(f32(t, ADAM_8BIT_PARAMETER), f32(t, ADAM_8BIT_GRADIENT), &of.exp_avg,
                     &of.exp_avg_sq, dim(t, ADAM_8BIT_N), (float)attr(t, ADAM_8BIT_LEAST), &one);
}

static void scaled(const ExecTask *t) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    kernel_adam_8bit_scaled(f32(t, ADAM_8BIT_SCALED_PARAMETER), f32(t, ADAM_8BIT_SCALED_GRADIENT),
                            &of.exp_avg, &of.exp_avg_sq, dim(t, ADAM_8BIT_SCALED_N),
                            (float)attr(t, ADAM_8BIT_SCALED_LEAST), &one);
}

static void update(const ExecTask *t) {
    KernelAdamOne one = exec_adam_one(t);
    ExecStates8bit of = exec_states_8bit(t);
    kernel_adam_8bit_update(f32(t, ADAM_8BIT_UPDATE_PARAMETER), f32(t, ADAM_8BIT_UPDATE_GRADIENT),
                            &of.exp_avg, &of.exp_avg_sq, dim(t, ADAM_8BIT_UPDATE_N), &one);
}

static void adam_one(const ExecTask *t) {
    KernelAdamOne one = exec_adam_one(t);
    kernel_adam_one(f32(t, ADAM_ONE_PARAMETER), f32(t, ADAM_ONE_EXP_AVG),
                    f32(t, ADAM_ONE_EXP_AVG_SQ), f32(t, ADAM_ONE_GRADIENT), dim(t, ADAM_ONE_N),
                    &one);
}

void exec_host_eight_bit(const ExecTask *t) {
    switch ((ExecEightBitOp)t->op->kind) {
    case PLAN_OP_STATE_MAP:
        kernel_state_map(f32(t, STATE_MAP_MAP), (unsigned)dim(t, STATE_MAP_PARTS));
        return;
    case PLAN_OP_ZERO_CODES:
        memset(bytes(t, ZERO_CODES_CODES), 0, dim(t, ZERO_CODES_N));
        return;
    case PLAN_OP_ADAM_8BIT:
        adam_8bit(t);
        return;
    case PLAN_OP_ADAM_8BIT_SCALED:
        scaled(t);
        return;
    case PLAN_OP_ADAM_8BIT_UPDATE:
        update(t);
        return;
    case PLAN_OP_PUT_CODES:
        kernel_put_codes(bytes(t, PUT_CODES_CODES), f32(t, PUT_CODES_X), f32(t, PUT_CODES_MAP),
                         dim(t, PUT_CODES_N));
        return;
    case PLAN_OP_ADAM_ONE:
        adam_one(t);
        return;
    }
    g_assert_not_reached();
}
