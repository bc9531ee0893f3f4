#include "exec/host/window.h"

#include "exec/task.h"

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

void exec_window_compute(const ExecTask *t) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_BACK:
        back(t);
        return;
    case PLAN_OP_BOTH_MASK:
        both(t);
        return;
    case PLAN_OP_MASK_TO_BIAS:
        mask_to_bias(t);
        return;
    default:
        compare(t);
        return;
    }
}
