/* exec/host/shared.c - what ranks do that share layers: lookups in a part of a table, and parts of
 * sequences.
 */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/elementwise.h"

/* ---- indices of which another rank may have the row ----------------------------------------- */

static void outside_mask(const ExecTask *t) {
    int64_t first = first_of_rank(t), end = first + dims(t)[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = i64(t, 0)[i] < first;
        bytes(t, 2)[i] = i64(t, 0)[i] >= end;
        bytes(t, 3)[i] = bytes(t, 1)[i] | bytes(t, 2)[i];
    }
}

static void local_index(const ExecTask *t) {
    int64_t first = first_of_rank(t), *copy = t->pointers[2], *local = t->pointers[3];
    for (size_t i = 0; i < dim(t, 0); i++) {
        copy[i] = i64(t, 0)[i];
        local[i] = bytes(t, 1)[i] ? 0 : copy[i] - first;
    }
}

static void zero_masked(const ExecTask *t) {
    size_t width = dim(t, 1);
    for (size_t i = 0; i < dim(t, 0); i++) {
        for (size_t j = 0; j < width && bytes(t, 0)[i]; j++) {
            f32(t, 1)[i * width + j] = 0;
        }
    }
}

/* ---- parts of sequences --------------------------------------------------------------------- */

static void parts_copy(const ExecTask *t) {
    size_t batch = dim(t, 0), parts = dim(t, 1), part = dim(t, 2) * dim(t, 3);
    bool back = dims(t)[4] != 0;
    for (size_t b = 0; b < batch; b++) {
        for (size_t p = 0; p < parts; p++) {
            size_t inside = (b * parts + p) * part, outside = (p * batch + b) * part;
            kernel_copy_f32(f32(t, 1) + (back ? inside : outside),
                            f32(t, 0) + (back ? outside : inside), part);
        }
    }
}

static void own_parts(const ExecTask *t) {
    size_t n = dim(t, 1), ranks = dim(t, 2);
    for (size_t b = 0; b < dim(t, 0); b++) {
        kernel_copy_f32(f32(t, 1) + b * n, f32(t, 0) + (b * ranks + axis_rank(t)) * n, n);
    }
}

/* ---- the switch ----------------------------------------------------------------------------- */

/* False: an index outside its table. */
static bool run(const ExecTask *t) {
    switch ((ExecShareOp)t->op->kind) {
    case PLAN_OP_OUTSIDE_MASK:
        outside_mask(t);
        return true;
    case PLAN_OP_LOCAL_INDEX:
        local_index(t);
        return true;
    case PLAN_OP_ZERO_MASKED:
        zero_masked(t);
        return true;
    case PLAN_OP_PARTS_COPY:
        parts_copy(t);
        return true;
    case PLAN_OP_OWN_PARTS:
        own_parts(t);
        return true;
        EXEC_SHARED_LOSS_OPS(EXEC_CASE)
        return exec_host_shared_loss(t);
        EXEC_SHARED_COMPILED_LOSS_OPS(EXEC_CASE)
        return exec_host_shared_compiled_loss(t);
    }
    g_assert_not_reached();
}

bool exec_host_share(const ExecTask *t, GError **error) {
    return exec_host_in_table(run(t), "a shared table's index", error);
}
