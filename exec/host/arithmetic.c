/* exec/host/arithmetic.c - arithmetic, element by element. */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/convert.h"
#include "exec/task.h"
#include "kernels/host/elementwise.h"

/* Ops on the few numbers of a norm: one by one, in double. NaN stays NaN, as in torch.clamp(), so
 * that a norm that is none does not pass for one below the limit. */
static void add_number(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, ADD_NUMBER_N); i++) {
        double x = (double)f32(t, ADD_NUMBER_X)[i];
        f32(t, ADD_NUMBER_Y)[i] = (float)(x + attr(t, ADD_NUMBER_NUMBER));
    }
}

static void at_most(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, AT_MOST_N); i++) {
        double x = (double)f32(t, AT_MOST_X)[i], limit = attr(t, AT_MOST_LIMIT);
        f32(t, AT_MOST_Y)[i] = (float)(x > limit ? limit : x);
    }
}

/* As PyTorch's _amp_update_scale_, which keeps a scale that would grow beyond what is finite. */
static void update_scale(const ExecTask *t) {
    float *scale = f32(t, UPDATE_SCALE_SCALE), *tracker = f32(t, UPDATE_SCALE_TRACKER);
    bool grows = *tracker + 1 == (float)attr(t, UPDATE_SCALE_INTERVAL);
    if (*f32(t, UPDATE_SCALE_FOUND) != 0) {
        *scale *= (float)attr(t, UPDATE_SCALE_BACKOFF);
        *tracker = 0;
    } else if (grows) {
        float grown = *scale * (float)attr(t, UPDATE_SCALE_GROWTH);
        *scale = isfinite(grown) ? grown : *scale;
        *tracker = 0;
    } else {
        *tracker += 1;
    }
}

void exec_host_arithmetic(const ExecTask *t) {
    switch ((ExecArithmeticOp)t->op->kind) {
    case PLAN_OP_ADD:
        kernel_add_rows_f32(f32(t, ADD_Y), f32(t, ADD_A), f32(t, ADD_B),
                            dim(t, ADD_N) / dim(t, ADD_NB), dim(t, ADD_NB));
        return;
    case PLAN_OP_MUL:
        kernel_mul_f32(f32(t, MUL_Y), f32(t, MUL_A), f32(t, MUL_B), dim(t, MUL_N));
        return;
    case PLAN_OP_SUB:
        kernel_add_scaled_f32(f32(t, SUB_Y), f32(t, SUB_A), f32(t, SUB_B), -1,
                              dim(t, SUB_ROWS) * dim(t, SUB_COLS));
        return;
    case PLAN_OP_FILL:
        kernel_fill_f32(f32(t, FILL_Y), (float)attr(t, FILL_VALUE), dim(t, FILL_N));
        return;
    case PLAN_OP_SCALE:
        kernel_scale_f32(f32(t, SCALE_X), f32(t, SCALE_X), (float)attr(t, SCALE_FACTOR),
                         dim(t, SCALE_N));
        return;
    case PLAN_OP_BUCKET_COPY_IN:
        kernel_scale_f32(f32(t, BUCKET_COPY_IN_BUCKET), f32(t, BUCKET_COPY_IN_GRADIENT),
                         (float)attr(t, BUCKET_COPY_IN_SCALE), dim(t, BUCKET_COPY_IN_N));
        return;
    case PLAN_OP_ACCUMULATE:
        kernel_add_inplace_f32(f32(t, ACCUMULATE_SUM), f32(t, ACCUMULATE_X), dim(t, ACCUMULATE_N));
        return;
    case PLAN_OP_POWER:
        kernel_power_f32(f32(t, POWER_Y), f32(t, POWER_X), attr(t, POWER_EXPONENT),
                         dim(t, POWER_N));
        return;
    case PLAN_OP_ADD_NUMBER:
        add_number(t);
        return;
    case PLAN_OP_AT_MOST:
        at_most(t);
        return;
    case PLAN_OP_TIMES_NUMBER:
        kernel_scale_f32(f32(t, TIMES_NUMBER_Y), f32(t, TIMES_NUMBER_X),
                         (float)attr(t, TIMES_NUMBER_NUMBER), dim(t, TIMES_NUMBER_N));
        return;
    case PLAN_OP_ADD_SCALED:
        kernel_add_scaled_f32(f32(t, ADD_SCALED_Y), f32(t, ADD_SCALED_A), f32(t, ADD_SCALED_X),
                              (float)attr(t, ADD_SCALED_NUMBER), dim(t, ADD_SCALED_N));
        return;
    case PLAN_OP_ADD_SCALED_BACKWARD:
        kernel_scale_f32(f32(t, ADD_SCALED_BACKWARD_DX), f32(t, ADD_SCALED_BACKWARD_DY),
                         (float)attr(t, ADD_SCALED_BACKWARD_NUMBER), dim(t, ADD_SCALED_BACKWARD_N));
        return;
    case PLAN_OP_UPDATE_SCALE:
        update_scale(t);
        return;
    case PLAN_OP_CAST: /* of numbers as they are stored */
        exec_convert(t->pointers[CAST_Y], operand_dtype(t, CAST_Y), t->pointers[CAST_X],
                     operand_dtype(t, CAST_X), dim(t, CAST_N));
        return;
    }
    g_assert_not_reached();
}
