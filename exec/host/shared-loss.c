/* exec/host/shared-loss.c - the loss of layers that ranks share: of logits of which each rank has
 * some columns.
 */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/task.h"
#include "kernels/host/rows/loss.h"

static void max_columns(const ExecTask *t) {
    size_t cols = dim(t, MAX_COLUMNS_COLS);
    for (size_t i = 0; i < dim(t, MAX_COLUMNS_ROWS); i++) {
        float most = -INFINITY;
        for (size_t j = 0; j < cols; j++) {
            most = fmaxf(most, f32(t, MAX_COLUMNS_X)[i * cols + j]);
        }
        f32(t, MAX_COLUMNS_Y)[i] = most;
    }
}

static void sub_column(const ExecTask *t) {
    size_t cols = dim(t, SUB_COLUMN_COLS);
    for (size_t i = 0; i < dim(t, SUB_COLUMN_ROWS) * cols; i++) {
        f32(t, SUB_COLUMN_Y)[i] = f32(t, SUB_COLUMN_X)[i] - f32(t, SUB_COLUMN_COLUMN)[i / cols];
    }
}

static void element_by_element(const ExecTask *t, float (*of)(float)) {
    for (size_t i = 0; i < dim(t, EXP_N); i++) {
        f32(t, EXP_Y)[i] = of(f32(t, EXP_X)[i]);
    }
}

static bool counts(int64_t target) {
    return target >= 0;
}

static void safe_target(const ExecTask *t) {
    int64_t *safe = t->pointers[SAFE_TARGET_INDEX];
    for (size_t i = 0; i < dim(t, SAFE_TARGET_N); i++) {
        bytes(t, SAFE_TARGET_MASK)[i] = counts(i64(t, SAFE_TARGET_TARGET)[i]);
        safe[i] = bytes(t, SAFE_TARGET_MASK)[i] ? i64(t, SAFE_TARGET_TARGET)[i] : 0;
    }
}

static bool pick_column(const ExecTask *t) {
    size_t cols = dim(t, PICK_COLUMN_COLS);
    for (size_t i = 0; i < dim(t, PICK_COLUMN_ROWS); i++) {
        if (i64(t, PICK_COLUMN_INDEX)[i] < 0 || (size_t)i64(t, PICK_COLUMN_INDEX)[i] >= cols) {
            return false;
        }
        f32(t, PICK_COLUMN_Y)[i] =
            f32(t, PICK_COLUMN_X)[i * cols + (size_t)i64(t, PICK_COLUMN_INDEX)[i]];
    }
    return true;
}

static void keep_counted(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, KEEP_COUNTED_N); i++) {
        bytes(t, KEEP_COUNTED_MASK)[i] = counts(i64(t, KEEP_COUNTED_TARGET)[i]);
        f32(t, KEEP_COUNTED_Y)[i] = bytes(t, KEEP_COUNTED_MASK)[i] ? f32(t, KEEP_COUNTED_X)[i] : 0;
    }
}

static void count_targets(const ExecTask *t) {
    int64_t *n = t->pointers[COUNT_TARGETS_POSITION];
    *n = 0;
    for (size_t i = 0; i < dim(t, COUNT_TARGETS_N); i++) {
        bytes(t, COUNT_TARGETS_MASK)[i] = counts(i64(t, COUNT_TARGETS_TARGET)[i]);
        *n += bytes(t, COUNT_TARGETS_MASK)[i];
    }
}

static void divide(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, DIVIDE_N); i++) {
        f32(t, DIVIDE_Y)[i] = f32(t, DIVIDE_A)[i] / f32(t, DIVIDE_B)[i];
    }
}

static void picked_gradient(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, PICKED_GRADIENT_N); i++) {
        f32(t, PICKED_GRADIENT_WIDE)[i] = bytes(t, PICKED_GRADIENT_MASK)[i];
        f32(t, PICKED_GRADIENT_Y)[i] = f32(t, PICKED_GRADIENT_WIDE)[i] - 1;
    }
}

static bool put_column(const ExecTask *t) {
    size_t rows = dim(t, PUT_COLUMN_ROWS), cols = dim(t, PUT_COLUMN_COLS);
    for (size_t i = 0; i < rows; i++) {
        uint64_t row = (uint64_t)i64(t, PUT_COLUMN_POSITION)[i],
                 col = (uint64_t)i64(t, PUT_COLUMN_INDEX)[i];
        if (row >= rows || col >= cols) {
            return false;
        }
        f32(t, PUT_COLUMN_X)[row * cols + col] = f32(t, PUT_COLUMN_Y)[i];
    }
    return true;
}

static void spread_counted(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, SPREAD_COUNTED_N); i++) {
        bytes(t, SPREAD_COUNTED_MASK)[i] = counts(i64(t, SPREAD_COUNTED_TARGET)[i]);
        f32(t, SPREAD_COUNTED_Y)[i] =
            bytes(t, SPREAD_COUNTED_MASK)[i] ? f32(t, SPREAD_COUNTED_DY)[0] : 0;
    }
}

/* Picks the target's number out of the columns of all ranks, each of which has as many. */
static bool pick_targets(const ExecTask *t) {
    return kernel_pick_targets_f32(
        f32(t, PICK_TARGETS_PICKED), bytes(t, PICK_TARGETS_MASK), f32(t, PICK_TARGETS_X),
        i64(t, PICK_TARGETS_TARGET), f32(t, PICK_TARGETS_LOGITS), f32(t, PICK_TARGETS_MOST),
        f32(t, PICK_TARGETS_SUM), dim(t, PICK_TARGETS_ROWS), dim(t, PICK_TARGETS_COLS),
        first_of_rank(t, PICK_TARGETS_COLS), all_of_ranks(t, PICK_TARGETS_COLS));
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
        kernel_largest_f32(f32(t, LARGEST_MOST), f32(t, LARGEST_LOGITS), dim(t, LARGEST_ROWS),
                           dim(t, LARGEST_COLS));
        return true;
    case PLAN_OP_SUM_OF_EXPS:
        kernel_sum_of_exps_f32(f32(t, SUM_OF_EXPS_SUM), f32(t, SUM_OF_EXPS_LOGITS),
                               f32(t, SUM_OF_EXPS_MOST), dim(t, SUM_OF_EXPS_ROWS),
                               dim(t, SUM_OF_EXPS_COLS));
        return true;
    case PLAN_OP_PICK_TARGETS:
        return pick_targets(t);
    case PLAN_OP_MEAN_PICKED:
        kernel_mean_picked_f32(f32(t, MEAN_PICKED_Y), f32(t, MEAN_PICKED_TOTAL),
                               i64(t, MEAN_PICKED_TARGET), f32(t, MEAN_PICKED_PICKED),
                               dim(t, MEAN_PICKED_N));
        return true;
    case PLAN_OP_ADD_SOFTMAX:
        kernel_add_softmax_f32(f32(t, ADD_SOFTMAX_Y), f32(t, ADD_SOFTMAX_X),
                               f32(t, ADD_SOFTMAX_LOGITS), f32(t, ADD_SOFTMAX_MOST),
                               f32(t, ADD_SOFTMAX_SUM), dim(t, ADD_SOFTMAX_ROWS),
                               dim(t, ADD_SOFTMAX_COLS));
        return true;
    case PLAN_OP_SCALE_COUNTED:
        kernel_scale_counted_f32(f32(t, SCALE_COUNTED_DLOGITS), f32(t, SCALE_COUNTED_X),
                                 bytes(t, SCALE_COUNTED_MASK), f32(t, SCALE_COUNTED_DY),
                                 f32(t, SCALE_COUNTED_TOTAL), dim(t, SCALE_COUNTED_ROWS),
                                 dim(t, SCALE_COUNTED_COLS));
        return true;
    }
    g_assert_not_reached();
}
