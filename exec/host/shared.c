/* exec/host/shared.c - what ranks do that share layers: lookups in a part of a table, and parts of
 * sequences.
 */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/elementwise.h"

/* ---- indices of which another rank may have the row ----------------------------------------- */

static void outside_mask(const ExecTask *t) {
    int64_t first = first_of_rank(t, OUTSIDE_MASK_PART), end = first + dims(t)[OUTSIDE_MASK_PART];
    for (size_t i = 0; i < dim(t, OUTSIDE_MASK_N); i++) {
        bytes(t, OUTSIDE_MASK_BELOW_MASK)[i] = i64(t, OUTSIDE_MASK_INDEX)[i] < first;
        bytes(t, OUTSIDE_MASK_ABOVE_MASK)[i] = i64(t, OUTSIDE_MASK_INDEX)[i] >= end;
        bytes(t, OUTSIDE_MASK_MASK)[i] =
            bytes(t, OUTSIDE_MASK_BELOW_MASK)[i] | bytes(t, OUTSIDE_MASK_ABOVE_MASK)[i];
    }
}

static void local_index(const ExecTask *t) {
    int64_t first = first_of_rank(t, LOCAL_INDEX_PART), *copy = t->pointers[LOCAL_INDEX_POSITION],
            *local = t->pointers[LOCAL_INDEX_LOCAL_INDEX];
    for (size_t i = 0; i < dim(t, LOCAL_INDEX_N); i++) {
        copy[i] = i64(t, LOCAL_INDEX_INDEX)[i];
        local[i] = bytes(t, LOCAL_INDEX_MASK)[i] ? 0 : copy[i] - first;
    }
}

static void zero_masked(const ExecTask *t) {
    size_t width = dim(t, ZERO_MASKED_WIDTH);
    for (size_t i = 0; i < dim(t, ZERO_MASKED_ROWS); i++) {
        for (size_t j = 0; j < width && bytes(t, ZERO_MASKED_MASK)[i]; j++) {
            f32(t, ZERO_MASKED_X)[i * width + j] = 0;
        }
    }
}

/* ---- parts of sequences --------------------------------------------------------------------- */

static void parts_copy(const ExecTask *t) {
    size_t batch = dim(t, PARTS_COPY_BATCH), parts = dim(t, PARTS_COPY_PARTS),
           part = dim(t, PARTS_COPY_ROWS) * dim(t, PARTS_COPY_WIDTH);
    bool back = dims(t)[PARTS_COPY_BACK] != 0;
    for (size_t b = 0; b < batch; b++) {
        for (size_t p = 0; p < parts; p++) {
            size_t inside = (b * parts + p) * part, outside = (p * batch + b) * part;
            kernel_copy_f32(f32(t, PARTS_COPY_Y) + (back ? inside : outside),
                            f32(t, PARTS_COPY_X) + (back ? outside : inside), part);
        }
    }
}

static void own_parts(const ExecTask *t) {
    size_t n = dim(t, OWN_PARTS_N), ranks = dim(t, OWN_PARTS_RANKS);
    for (size_t b = 0; b < dim(t, OWN_PARTS_BATCH); b++) {
        kernel_copy_f32(f32(t, OWN_PARTS_PART) + b * n,
                        f32(t, OWN_PARTS_WHOLE) + (b * ranks + axis_rank(t)) * n, n);
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
