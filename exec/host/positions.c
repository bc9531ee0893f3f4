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
    size_t n = dim(t, 0);
    for (size_t i = 0; i < n / 2; i++) {
        f32(t, 0)[i] = (float)pow(attr(t, 0), -2.0 * (double)i / (double)n);
    }
}

static void shift(const ExecTask *t) {
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        to[i] = i64(t, 0)[i] + dims(t)[1];
    }
}

static void as_number(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = (float)i64(t, 0)[i];
    }
}

static void outer(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows * cols; i++) {
        f32(t, 2)[i] = f32(t, 0)[i / cols] * f32(t, 1)[i % cols];
    }
}

static void element_by_element(const ExecTask *t, float (*of)(float)) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = of(f32(t, 0)[i]);
    }
}

static void pad_targets(const ExecTask *t) {
    size_t seq = dim(t, 1);
    for (size_t row = 0; row < dim(t, 0); row++) {
        int64_t *to = (int64_t *)t->pointers[1] + row * (seq + 1);
        memcpy(to + 1, i64(t, 0) + row * seq, (seq - 1) * sizeof *to);
        to[0] = to[seq] = NO_TARGET;
    }
}

/* Each row but its first, or its last. */
static void drop_one(const ExecTask *t, bool first) {
    size_t kept = dim(t, 1);
    for (size_t row = 0; row < dim(t, 0); row++) {
        memcpy((int64_t *)t->pointers[1] + row * kept, i64(t, 0) + row * (kept + 1) + first,
               kept * sizeof(int64_t));
    }
}

void exec_host_positions(const ExecTask *t) {
    switch ((ExecPositionOp)t->op->kind) {
    case PLAN_OP_ARANGE:
        kernel_arange_i64(t->pointers[0], 0, 1, dim(t, 0));
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
