/* exec/host/masks.c - masks of attention, and what is added to its scores by distance, op by op.
 * Layouts are those of plan/op/ops.def.
 */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/embedding.h"

/* ---- what comes later ----------------------------------------------------------------------- */

static void upper_mask(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            size_t at = i * cols + j;
            bytes(t, 1)[at] = j > i ? bytes(t, 0)[at] : 0;
        }
    }
}

static void masked_fill(const ExecTask *t) {
    size_t n = dim(t, 1), inner = dim(t, 2), all = dim(t, 0) * n * inner;
    for (size_t i = 0; i < all; i++) {
        f32(t, 2)[i] = bytes(t, 1)[i / inner % n] ? (float)attr(t, 0) : f32(t, 0)[i];
    }
}

/* ---- a window: from the places of tokens to what is added to scores ------------------------- */

static void back(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        ((int64_t *)t->pointers[1])[i] = i64(t, 0)[i] - dims(t)[1];
    }
}

/* A row for each query, whose place is the index. */
static void compare(const ExecTask *t) {
    bool later = t->op->kind == PLAN_OP_LATER_MASK;
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            bytes(t, 2)[i * cols + j] = (i64(t, 0)[j] > i64(t, 1)[i]) == later;
        }
    }
}

static void both(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 2)[i] = bytes(t, 0)[i % dim(t, 1)] & bytes(t, 1)[i];
    }
}

static void mask_to_bias(const ExecTask *t) {
    size_t n = dim(t, 0), all = n * dim(t, 1);
    for (size_t i = 0; i < all; i++) {
        f32(t, 3)[i] = *f32(t, bytes(t, 0)[i % n] ? 1 : 2);
    }
}

/* ---- relative bias -------------------------------------------------------------------------- */

static void distances(const ExecTask *t) {
    size_t n = dim(t, 0);
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < n * n; i++) {
        to[i] = i64(t, 0)[i % n] - i64(t, 0)[i / n];
    }
}

static void int64_numbers(const ExecTask *t) {
    bool clamps = t->op->kind == PLAN_OP_CLAMP;
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        int64_t x = i64(t, 0)[i];
        to[i] = clamps ? MIN(x, dims(t)[1]) : ABS(x);
    }
}

static void positive_mask(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = i64(t, 0)[i] > 0;
    }
}

static void bias_add(const ExecTask *t) {
    size_t batch = dim(t, 0), heads = dim(t, 1), n = dim(t, 2) * dim(t, 3);
    for (size_t b = 0; b < batch * heads; b++) {
        for (size_t i = 0; i < n; i++) {
            f32(t, 2)[b * n + i] = f32(t, 0)[b * n + i] + f32(t, 1)[i * heads + b % heads];
        }
    }
}

static bool bias_backward(const ExecTask *t) {
    size_t n = dim(t, 0), heads = dim(t, 1), limit = dim(t, 2);
    kernel_zero_f32(f32(t, 2), limit * heads);
    for (size_t i = 0; i < n * heads; i++) {
        int64_t row = i64(t, 1)[i % n];
        if (row < 0 || (size_t)row >= limit) {
            return false;
        }
        f32(t, 2)[(size_t)row * heads + i / n] += f32(t, 0)[i];
    }
    return true;
}

/* ---- the switch ----------------------------------------------------------------------------- */

bool exec_host_masks(const ExecTask *t, GError **error) {
    switch ((ExecMaskOp)t->op->kind) {
    case PLAN_OP_ONES_MASK:
        memset(t->pointers[0], 1, dim(t, 0));
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
    case PLAN_OP_CLAMP:
        int64_numbers(t);
        return true;
    case PLAN_OP_POSITIVE_MASK:
        positive_mask(t);
        return true;
    case PLAN_OP_BIAS:
        return exec_host_in_table(kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1),
                                                               dim(t, 0), dim(t, 2), dim(t, 1)),
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
