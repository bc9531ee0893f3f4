/* exec/host/masks.c - masks of attention, and what is added to its scores by distance, op by op.
 * Layouts are those of plan/op/ops.def.
 */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/rows/embedding.h"

/* ---- what comes later ----------------------------------------------------------------------- */

static void upper_mask(const ExecTask *t) {
    size_t rows = dim(t, UPPER_MASK_ROWS), cols = dim(t, UPPER_MASK_COLS);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            size_t at = i * cols + j;
            bytes(t, UPPER_MASK_MASK)[at] = j > i ? bytes(t, UPPER_MASK_ALL_MASK)[at] : 0;
        }
    }
}

static void masked_fill(const ExecTask *t) {
    size_t n = dim(t, MASKED_FILL_N), inner = dim(t, MASKED_FILL_INNER),
           all = dim(t, MASKED_FILL_OUTER) * n * inner;
    for (size_t i = 0; i < all; i++) {
        f32(t, MASKED_FILL_Y)[i] = bytes(t, MASKED_FILL_MASK)[i / inner % n]
                                       ? (float)attr(t, MASKED_FILL_VALUE)
                                       : f32(t, MASKED_FILL_X)[i];
    }
}

/* ---- a window: from the places of tokens to what is added to scores ------------------------- */

static void back(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, BACK_N); i++) {
        ((int64_t *)t->pointers[BACK_INDEX])[i] = i64(t, BACK_POSITION)[i] - dims(t)[BACK_BY];
    }
}

/* A row for each query, whose place is the index. */
static void compare(const ExecTask *t) {
    bool later = t->op->kind == PLAN_OP_LATER_MASK;
    size_t rows = dim(t, LATER_MASK_ROWS), cols = dim(t, LATER_MASK_COLS);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            bytes(t, LATER_MASK_MASK)[i * cols + j] =
                (i64(t, LATER_MASK_POSITION)[j] > i64(t, LATER_MASK_INDEX)[i]) == later;
        }
    }
}

static void both(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, BOTH_MASK_N); i++) {
        bytes(t, BOTH_MASK_MASK)[i] = bytes(t, BOTH_MASK_ONE_MASK)[i % dim(t, BOTH_MASK_N_ONE)] &
                                      bytes(t, BOTH_MASK_OTHER_MASK)[i];
    }
}

static void mask_to_bias(const ExecTask *t) {
    size_t n = dim(t, MASK_TO_BIAS_N), all = n * dim(t, MASK_TO_BIAS_BATCH);
    for (size_t i = 0; i < all; i++) {
        f32(t, MASK_TO_BIAS_Y)[i] = *f32(t, bytes(t, MASK_TO_BIAS_MASK)[i % n] ? 1 : 2);
    }
}

/* ---- relative bias -------------------------------------------------------------------------- */

static void distances(const ExecTask *t) {
    size_t n = dim(t, DISTANCES_N);
    int64_t *to = t->pointers[DISTANCES_DISTANCE];
    for (size_t i = 0; i < n * n; i++) {
        to[i] = i64(t, DISTANCES_POSITION)[i % n] - i64(t, DISTANCES_POSITION)[i / n];
    }
}

static void absolute(const ExecTask *t) {
    int64_t *to = t->pointers[ABSOLUTE_POSITION];
    for (size_t i = 0; i < dim(t, ABSOLUTE_N); i++) {
        to[i] = ABS(i64(t, ABSOLUTE_DISTANCE)[i]);
    }
}

static void clamp(const ExecTask *t) {
    int64_t *to = t->pointers[CLAMP_INDEX];
    for (size_t i = 0; i < dim(t, CLAMP_N); i++) {
        to[i] = MIN(i64(t, CLAMP_POSITION)[i], dims(t)[CLAMP_LIMIT]);
    }
}

static void positive_mask(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, POSITIVE_MASK_N); i++) {
        bytes(t, POSITIVE_MASK_MASK)[i] = i64(t, POSITIVE_MASK_DISTANCE)[i] > 0;
    }
}

static void bias_add(const ExecTask *t) {
    size_t batch = dim(t, BIAS_ADD_BATCH), heads = dim(t, BIAS_ADD_HEADS),
           n = dim(t, BIAS_ADD_ROWS) * dim(t, BIAS_ADD_COLS);
    for (size_t b = 0; b < batch * heads; b++) {
        for (size_t i = 0; i < n; i++) {
            f32(t, BIAS_ADD_Y)[b * n + i] =
                f32(t, BIAS_ADD_X)[b * n + i] + f32(t, BIAS_ADD_BIAS)[i * heads + b % heads];
        }
    }
}

static bool bias_backward(const ExecTask *t) {
    size_t n = dim(t, BIAS_BACKWARD_N), heads = dim(t, BIAS_BACKWARD_HEADS),
           limit = dim(t, BIAS_BACKWARD_LIMIT);
    kernel_zero_f32(f32(t, BIAS_BACKWARD_DW), limit * heads);
    for (size_t i = 0; i < n * heads; i++) {
        int64_t row = i64(t, BIAS_BACKWARD_INDEX)[i % n];
        if (row < 0 || (size_t)row >= limit) {
            return false;
        }
        f32(t, BIAS_BACKWARD_DW)[(size_t)row * heads + i / n] += f32(t, BIAS_BACKWARD_DY)[i];
    }
    return true;
}

/* ---- the switch ----------------------------------------------------------------------------- */

bool exec_host_masks(const ExecTask *t, GError **error) {
    switch ((ExecMaskOp)t->op->kind) {
    case PLAN_OP_ONES_MASK:
        memset(t->pointers[ONES_MASK_MASK], 1, dim(t, ONES_MASK_N));
        return true;
    case PLAN_OP_UPPER_MASK:
        upper_mask(t);
        return true;
    case PLAN_OP_MASKED_FILL:
        masked_fill(t);
        return true;
    case PLAN_OP_DISTANCES:
        distances(t);
        return true;
    case PLAN_OP_ABSOLUTE:
        absolute(t);
        return true;
    case PLAN_OP_CLAMP:
        clamp(t);
        return true;
    case PLAN_OP_POSITIVE_MASK:
        positive_mask(t);
        return true;
    case PLAN_OP_BIAS:
        return exec_host_in_table(
            kernel_embedding_forward_f32(f32(t, BIAS_Y), f32(t, BIAS_W), i64(t, BIAS_INDEX),
                                         dim(t, BIAS_N), dim(t, BIAS_LIMIT), dim(t, BIAS_HEADS)),
            "a bias's index", error);
    case PLAN_OP_BIAS_ADD:
        bias_add(t);
        return true;
    case PLAN_OP_BIAS_BACKWARD:
        return exec_host_in_table(bias_backward(t), "a bias's index", error);
    case PLAN_OP_BACK:
        back(t);
        return true;
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
        compare(t);
        return true;
    case PLAN_OP_BOTH_MASK:
        both(t);
        return true;
    case PLAN_OP_MASK_TO_BIAS:
        mask_to_bias(t);
        return true;
    }
    g_assert_not_reached();
}
