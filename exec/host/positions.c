/* exec/host/positions.c - what a pass makes of nothing but positions and labels: rotary tables, op
 * by op, and targets that are one behind their tokens. Layouts are those of plan/op/ops.def.
 */
#include "exec/host/ops.h"

#include <math.h>
#include <string.h>

#include "exec/task.h"
#include "kernels/host/elementwise.h"

enum {
    NO_TARGET = -100 /* PyTorch's ignore_index */
};

static void rope_frequencies(const ExecTask *t) {
    size_t n = dim(t, ROPE_FREQUENCIES_DIM);
    for (size_t i = 0; i < n / 2; i++) {
        f32(t, ROPE_FREQUENCIES_Y)[i] =
            (float)pow(attr(t, ROPE_FREQUENCIES_BASE), -2.0 * (double)i / (double)n);
    }
}

static void shift(const ExecTask *t) {
    int64_t *to = t->pointers[SHIFT_INDEX];
    for (size_t i = 0; i < dim(t, SHIFT_N); i++) {
        to[i] = i64(t, SHIFT_POSITION)[i] + dims(t)[SHIFT_FROM];
    }
}

static void as_number(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, AS_NUMBER_N); i++) {
        f32(t, AS_NUMBER_Y)[i] = (float)i64(t, AS_NUMBER_POSITION)[i];
    }
}

static void outer(const ExecTask *t) {
    size_t rows = dim(t, OUTER_ROWS), cols = dim(t, OUTER_COLS);
    for (size_t i = 0; i < rows * cols; i++) {
        f32(t, OUTER_Y)[i] = f32(t, OUTER_COLUMN)[i / cols] * f32(t, OUTER_ROW)[i % cols];
    }
}

static void element_by_element(const ExecTask *t, float (*of)(float)) {
    for (size_t i = 0; i < dim(t, COS_N); i++) {
        f32(t, COS_Y)[i] = of(f32(t, COS_X)[i]);
    }
}

static void pad_targets(const ExecTask *t) {
    size_t seq = dim(t, PAD_TARGETS_SEQ);
    for (size_t row = 0; row < dim(t, PAD_TARGETS_BATCH); row++) {
        int64_t *to = (int64_t *)t->pointers[PAD_TARGETS_INDEX] + row * (seq + 1);
        memcpy(to + 1, i64(t, PAD_TARGETS_TARGET) + row * seq, (seq - 1) * sizeof *to);
        to[0] = to[seq] = NO_TARGET;
    }
}

/* Each row but its first, or its last. */
static void drop_one(const ExecTask *t, bool first) {
    size_t kept = dim(t, DROP_FIRST_SEQ);
    for (size_t row = 0; row < dim(t, DROP_FIRST_BATCH); row++) {
        memcpy((int64_t *)t->pointers[DROP_FIRST_TARGET] + row * kept,
               i64(t, DROP_FIRST_INDEX) + row * (kept + 1) + first, kept * sizeof(int64_t));
    }
}

void exec_host_positions(const ExecTask *t) {
    switch ((ExecPositionOp)t->op->kind) {
    case PLAN_OP_ARANGE:
        kernel_arange_i64(t->pointers[ARANGE_Y], 0, 1, dim(t, ARANGE_N));
        return;
    case PLAN_OP_ROPE_FREQUENCIES:
        rope_frequencies(t);
        return;
    case PLAN_OP_SHIFT:
        shift(t);
        return;
    case PLAN_OP_AS_NUMBER:
        as_number(t);
        return;
    case PLAN_OP_OUTER:
        outer(t);
        return;
    case PLAN_OP_COS:
        element_by_element(t, cosf);
        return;
    case PLAN_OP_SIN:
        element_by_element(t, sinf);
        return;
    case PLAN_OP_PAD_TARGETS:
        pad_targets(t);
        return;
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_DROP_LAST:
        drop_one(t, t->op->kind == PLAN_OP_DROP_FIRST);
        return;
    }
    g_assert_not_reached();
}
