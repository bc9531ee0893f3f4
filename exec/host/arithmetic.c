/* exec/host/arithmetic.c - arithmetic, element by element. */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/convert.h"
#include "exec/task.h"
#include "kernels/host/elementwise.h"

/* Ops on the few numbers of a norm: one by one, in double. NaN stays NaN, as in torch.clamp(), so
 * that a norm that is none does not pass for one below the limit. */
static void numbers(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        double x = (double)f32(t, 0)[i], by = attr(t, 0), least = x > by ? by : x;
        f32(t, 1)[i] = (float)(t->op->kind == PLAN_OP_ADD_NUMBER ? x + by : least);
    }
}

/* As PyTorch's _amp_update_scale_, which keeps a scale that would grow beyond what is finite. */
static void update_scale(const ExecTask *t) {
    float *scale = f32(t, 1), *tracker = f32(t, 2);
    bool grows = *tracker + 1 == (float)attr(t, 2);
    if (*f32(t, 0) != 0) {
        *scale *= (float)attr(t, 1);
        *tracker = 0;
    } else if (grows) {
        float grown = *scale * (float)attr(t, 0);
        *scale = isfinite(grown) ? grown : *scale;
        *tracker = 0;
    } else {
        *tracker += 1;
    }
}

void exec_host_arithmetic(const ExecTask *t) {
    switch ((ExecArithmeticOp)t->op->kind) {
    case PLAN_OP_ADD:
        kernel_add_rows_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0) / dim(t, 1), dim(t, 1));
        return;
    case PLAN_OP_MUL:
        kernel_mul_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_FILL:
        kernel_fill_f32(f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return;
    case PLAN_OP_SCALE:
        kernel_scale_f32(f32(t, 0), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return;
    case PLAN_OP_BUCKET_COPY_IN:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return;
    case PLAN_OP_ACCUMULATE:
        kernel_add_inplace_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_POWER:
        kernel_power_f32(f32(t, 1), f32(t, 0), attr(t, 0), dim(t, 0));
        return;
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_AT_MOST:
        numbers(t);
        return;
    case PLAN_OP_TIMES_NUMBER:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return;
    case PLAN_OP_UPDATE_SCALE:
        update_scale(t);
        return;
    case PLAN_OP_CAST: /* of numbers as they are stored */
        exec_convert(t->pointers[1], operand_dtype(t, 1), t->pointers[0], operand_dtype(t, 0),
                     dim(t, 0));
        return;
    }
    g_assert_not_reached();
}
