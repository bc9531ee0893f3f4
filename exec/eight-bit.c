#include "exec/eight-bit.h"

ExecStates8bit exec_states_8bit(const ExecTask *t) {
    switch (t->op->kind) {
    case PLAN_OP_ADAM_8BIT:
        return (ExecStates8bit){.exp_avg = {.codes = bytes(t, ADAM_8BIT_CODES),
                                            .absmax = f32(t, ADAM_8BIT_ABSMAX),
                                            .map = f32(t, ADAM_8BIT_MAP)},
                                .exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_CODES_SQ),
                                               .absmax = f32(t, ADAM_8BIT_ABSMAX_SQ),
                                               .map = f32(t, ADAM_8BIT_MAP_SQ)}};
    case PLAN_OP_ADAM_8BIT_SCALED:
        return (ExecStates8bit){.exp_avg = {.codes = bytes(t, ADAM_8BIT_SCALED_CODES),
                                            .absmax = f32(t, ADAM_8BIT_SCALED_ABSMAX),
                                            .map = f32(t, ADAM_8BIT_SCALED_MAP),
                                            .most = f32(t, ADAM_8BIT_SCALED_MOST),
                                            .scaled = f32(t, ADAM_8BIT_SCALED_SCALED)},
                                .exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_SCALED_CODES_SQ),
                                               .absmax = f32(t, ADAM_8BIT_SCALED_ABSMAX_SQ),
                                               .map = f32(t, ADAM_8BIT_SCALED_MAP_SQ),
                                               .most = f32(t, ADAM_8BIT_SCALED_MOST_SQ),
                                               .scaled = f32(t, ADAM_8BIT_SCALED_SCALED_SQ)}};
    case PLAN_OP_ADAM_8BIT_UPDATE:
        return (ExecStates8bit){.exp_avg = {.codes = bytes(t, ADAM_8BIT_UPDATE_CODES),
                                            .absmax = f32(t, ADAM_8BIT_UPDATE_ABSMAX),
                                            .map = f32(t, ADAM_8BIT_UPDATE_MAP),
                                            .scaled = f32(t, ADAM_8BIT_UPDATE_SCALED)},
                                .exp_avg_sq = {.codes = bytes(t, ADAM_8BIT_UPDATE_CODES_SQ),
                                               .absmax = f32(t, ADAM_8BIT_UPDATE_ABSMAX_SQ),
                                               .map = f32(t, ADAM_8BIT_UPDATE_MAP_SQ),
                                               .scaled = f32(t, ADAM_8BIT_UPDATE_SCALED_SQ)}};
    default:
        g_assert_not_reached();
    }
}

KernelAdamOne exec_adam_one(const ExecTask *t) {
    return kernel_adam_one_of(attr(t, ADAM_ONE_LR), attr(t, ADAM_ONE_BETA1),
                              attr(t, ADAM_ONE_BETA2), attr(t, ADAM_ONE_EPS),
                              attr(t, ADAM_ONE_WEIGHT_DECAY), t->step + 1);
}
