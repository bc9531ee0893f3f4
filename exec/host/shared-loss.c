/* exec/host/shared-loss.c - the loss of layers that ranks share: of logits of which each rank has
 * some columns.
 */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/task.h"
#include "kernels/host/loss.h"

static void max_columns(const ExecTask *t) {
    size_t cols = dim(t, 1);
    for (size_t i = 0; i < dim(t, 0); i++) {
        float most = -INFINITY;
        for (size_t j = 0; j < cols; j++) {
            most = fmaxf(most, f32(t, 0)[i * cols + j]);
        }
        f32(t, 1)[i] = most;
    }
}

static void sub_column(const ExecTask *t) {
    size_t cols = dim(t, 1);
    for (size_t i = 0; i < dim(t, 0) * cols; i++) {
        f32(t, 2)[i] = f32(t, 0)[i] - f32(t, 1)[i / cols];
    }
}

static void element_by_element(const ExecTask *t, float (*of)(float)) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = of(f32(t, 0)[i]);
    }
}

static bool counts(int64_t target) {
    return target >= 0;
}

static void safe_target(const ExecTask *t) {
    int64_t *safe = t->pointers[2];
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = counts(i64(t, 0)[i]);
        safe[i] = bytes(t, 1)[i] ? i64(t, 0)[i] : 0;
    }
}

static bool pick_column(const ExecTask *t) {
    size_t cols = dim(t, 1);
    for (size_t i = 0; i < dim(t, 0); i++) {
        if (i64(t, 1)[i] < 0 || (size_t)i64(t, 1)[i] >= cols) {
            return false;
        }
        f32(t, 2)[i] = f32(t, 0)[i * cols + (size_t)i64(t, 1)[i]];
    }
    return true;
}

static void keep_counted(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 2)[i] = counts(i64(t, 1)[i]);
        f32(t, 3)[i] = bytes(t, 2)[i] ? f32(t, 0)[i] : 0;
    }
}

static void count_targets(const ExecTask *t) {
    int64_t *n = t->pointers[2];
    *n = 0;
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = counts(i64(t, 0)[i]);
        *n += bytes(t, 1)[i];
    }
}

static void divide(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 2)[i] = f32(t, 0)[i] / f32(t, 1)[i];
    }
}

static void picked_gradient(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = bytes(t, 0)[i];
        f32(t, 2)[i] = f32(t, 1)[i] - 1;
    }
}

static bool put_column(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows; i++) {
        uint64_t row = (uint64_t)i64(t, 2)[i], col = (uint64_t)i64(t, 1)[i];
        if (row >= rows || col >= cols) {
            return false;
        }
        f32(t, 3)[row * cols + col] = f32(t, 0)[i];
    }
    return true;
}

static void spread_counted(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 2)[i] = counts(i64(t, 1)[i]);
        f32(t, 3)[i] = bytes(t, 2)[i] ? f32(t, 0)[0] : 0;
    }
}

/* Of all ranks' columns, of which this rank has as many as each other. */
static bool pick_targets(const ExecTask *t) {
    return kernel_pick_targets_f32(f32(t, 5), bytes(t, 6), f32(t, 4), i64(t, 0), f32(t, 1),
                                   f32(t, 2), f32(t, 3), dim(t, 0), dim(t, 1), first_of_rank(t),
                                   all_of_ranks(t));
}

bool exec_host_shared_loss(const ExecTask *t) {
    switch ((ExecSharedLossOp)t->op->kind) {
    case PLAN_OP_MAX_COLUMNS:
        max_columns(t);
        return true;
    case PLAN_OP_SUB_COLUMN:
        sub_column(t);
        return true;
    case PLAN_OP_EXP:
        element_by_element(t, expf);
        return true;
    case PLAN_OP_LOG:
        element_by_element(t, logf);
        return true;
    case PLAN_OP_SAFE_TARGET:
        safe_target(t);
        return true;
    case PLAN_OP_PICK_COLUMN:
        return pick_column(t);
    case PLAN_OP_KEEP_COUNTED:
        keep_counted(t);
        return true;
    case PLAN_OP_COUNT_TARGETS:
        count_targets(t);
        return true;
    case PLAN_OP_DIVIDE:
        divide(t);
        return true;
    case PLAN_OP_PICKED_GRADIENT:
        picked_gradient(t);
        return true;
    case PLAN_OP_PUT_COLUMN:
        return put_column(t);
    case PLAN_OP_SPREAD_COUNTED:
        spread_counted(t);
        return true;
    }
    g_assert_not_reached();
}

bool exec_host_shared_compiled_loss(const ExecTask *t) {
    switch ((ExecSharedCompiledLossOp)t->op->kind) {
    case PLAN_OP_LARGEST:
        kernel_largest_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SUM_OF_EXPS:
        kernel_sum_of_exps_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_PICK_TARGETS:
        return pick_targets(t);
    case PLAN_OP_MEAN_PICKED:
        kernel_mean_picked_f32(f32(t, 2), f32(t, 3), i64(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_ADD_SOFTMAX:
        kernel_add_softmax_f32(f32(t, 4), f32(t, 0), f32(t, 1), f32(t, 2), f32(t, 3), dim(t, 0),
                               dim(t, 1));
        return true;
    case PLAN_OP_SCALE_COUNTED:
        kernel_scale_counted_f32(f32(t, 4), f32(t, 0), bytes(t, 1), f32(t, 2), f32(t, 3), dim(t, 0),
                                 dim(t, 1));
        return true;
    }
    g_assert_not_reached();
}
