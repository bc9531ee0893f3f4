/* exec/host/eight-bit.c - AdamW with states in 8 bits, a parameter (plan/optimizer/eight-bit.c). */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/task.h"
#include "kernels/host/eight-bit.h"
#include "kernels/host/four-bit.h"

/* Of all steps, whose attributes begin alike. */
static KernelAdam adam_of(const ExecTask *t) {
    return (KernelAdam){.lr = attr(t, ADAM_ONE_LR),
                        .beta1 = attr(t, ADAM_ONE_BETA1),
                        .beta2 = attr(t, ADAM_ONE_BETA2),
                        .eps = attr(t, ADAM_ONE_EPS),
                        .weight_decay = attr(t, ADAM_ONE_WEIGHT_DECAY),
                        .decay = KERNEL_ADAM_DECOUPLED,
                        .step = t->step + 1};
}

static void adam_8bit(const ExecTask *t) {
    KernelAdam adam = adam_of(t);
    KernelState8bit exp_avg = {.codes = bytes(t, ADAM_8BIT_CODES),
                               .absmax = f32(t, ADAM_8BIT_ABSMAX),
                               .map = f32(t, ADAM_8BIT_MAP)};
    KernelState8bit exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_CODES_SQ),
                                  .absmax = f32(t, ADAM_8BIT_ABSMAX_SQ),
                                  .map = f32(t, ADAM_8BIT_MAP_SQ)};
    kernel_adam_8bit(f32(t, ADAM_8BIT_PARAMETER), f32(t, ADAM_8BIT_GRADIENT), &exp_avg, &exp_avg_sq,
                     dim(t, ADAM_8BIT_N), (float)attr(t, ADAM_8BIT_LEAST), &adam);
}

static void scaled(const ExecTask *t) {
    KernelAdam adam = adam_of(t);
    KernelState8bit exp_avg = {.codes = bytes(t, ADAM_8BIT_SCALED_CODES),
                               .absmax = f32(t, ADAM_8BIT_SCALED_ABSMAX),
                               .map = f32(t, ADAM_8BIT_SCALED_MAP),
                               .most = f32(t, ADAM_8BIT_SCALED_MOST),
                               .scaled = f32(t, ADAM_8BIT_SCALED_SCALED)};
    KernelState8bit exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_SCALED_CODES_SQ),
                                  .absmax = f32(t, ADAM_8BIT_SCALED_ABSMAX_SQ),
                                  .map = f32(t, ADAM_8BIT_SCALED_MAP_SQ),
                                  .most = f32(t, ADAM_8BIT_SCALED_MOST_SQ),
                                  .scaled = f32(t, ADAM_8BIT_SCALED_SCALED_SQ)};
    kernel_adam_8bit_scaled(f32(t, ADAM_8BIT_SCALED_PARAMETER), f32(t, ADAM_8BIT_SCALED_GRADIENT),
                            &exp_avg, &exp_avg_sq, dim(t, ADAM_8BIT_SCALED_N),
                            (float)attr(t, ADAM_8BIT_SCALED_LEAST), &adam);
}

static void update(const ExecTask *t) {
    KernelAdam adam = adam_of(t);
    KernelState8bit exp_avg = {.codes = bytes(t, ADAM_8BIT_UPDATE_CODES),
                               .absmax = f32(t, ADAM_8BIT_UPDATE_ABSMAX),
                               .map = f32(t, ADAM_8BIT_UPDATE_MAP),
                               .scaled = f32(t, ADAM_8BIT_UPDATE_SCALED)};
    KernelState8bit exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_UPDATE_CODES_SQ),
                                  .absmax = f32(t, ADAM_8BIT_UPDATE_ABSMAX_SQ),
                                  .map = f32(t, ADAM_8BIT_UPDATE_MAP_SQ),
                                  .scaled = f32(t, ADAM_8BIT_UPDATE_SCALED_SQ)};
    kernel_adam_8bit_update(f32(t, ADAM_8BIT_UPDATE_PARAMETER), f32(t, ADAM_8BIT_UPDATE_GRADIENT),
                            &exp_avg, &exp_avg_sq, dim(t, ADAM_8BIT_UPDATE_N), &adam);
}

static void adam_one(const ExecTask *t) {
    KernelAdam adam = adam_of(t);
    kernel_adam_one(f32(t, ADAM_ONE_PARAMETER), f32(t, ADAM_ONE_EXP_AVG),
                    f32(t, ADAM_ONE_EXP_AVG_SQ), f32(t, ADAM_ONE_GRADIENT), dim(t, ADAM_ONE_N),
                    &adam);
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
