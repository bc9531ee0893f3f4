/* exec/host/pieces.c - copies between whole parameters and what ranks hold of them, and of parts
 * side by side.
 *
 * Layouts are those of plan/flavours/fsdp2-gather.c and fsdp2-reduce.c. Numbers are moved as they
 * are stored, and converted where the two sides are stored differently; what is joined or put side
 * by side was widened before.
 */
#include "exec/host/ops.h"

#include "exec/convert.h"
#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"

/* Element `at` of operand i, as it is stored. */
static gpointer element(const ExecTask *t, unsigned i, size_t at) {
    return (char *)t->pointers[i] + at * plan_dtype_bytes(operand_dtype(t, i));
}

static void put(const ExecTask *t, unsigned to, size_t to_at, unsigned from, size_t from_at,
                size_t n) {
    exec_convert(element(t, to, to_at), operand_dtype(t, to), element(t, from, from_at),
                 operand_dtype(t, from), n);
}

static void put_zeros(const ExecTask *t, unsigned to, size_t to_at, size_t n) {
    kernel_zero_bytes(element(t, to, to_at), n * plan_dtype_bytes(operand_dtype(t, to)));
}

static void part(const ExecTask *t) {
    put(t, PART_PART, 0, PART_WHOLE, axis_rank(t) * dim(t, PART_N), dim(t, PART_N));
}

static void flatten_to(const ExecTask *t, size_t at) {
    for (unsigned i = 0; i < list_length(t); i++) {
        put(t, list_length(t), at, i, 0, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

static void gather_copy_out(const ExecTask *t) {
    size_t slice = dim(t, GATHER_COPY_OUT_SLICE), ranks = dim(t, GATHER_COPY_OUT_RANKS), start = 0;
    for (unsigned i = GATHER_COPY_OUT_PARAMETER; i < GATHER_COPY_OUT_PARAMETER + list_length(t);
         i++) {
        size_t chunk = operand(t, i).elements / ranks;
        for (size_t rank = 0; rank < ranks; rank++) {
            put(t, i, rank * chunk, GATHER_COPY_OUT_GATHERED, rank * slice + start, chunk);
        }
        start += chunk;
    }
}

static void reduce_copy_in(const ExecTask *t) {
    size_t slice = dim(t, REDUCE_COPY_IN_SLICE), ranks = dim(t, REDUCE_COPY_IN_RANKS), start = 0;
    unsigned packed = list_length(t);
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t rows = operand(t, i).rows, elements = operand(t, i).elements;
        size_t chunk = (rows + ranks - 1) / ranks * (elements / rows);
        for (size_t rank = 0; rank < ranks; rank++) {
            size_t before = MIN(elements, rank * chunk), real = MIN(chunk, elements - before);
            size_t to = rank * slice + start;
            put(t, packed, to, i, before, real);
            put_zeros(t, packed, to + real, chunk - real);
        }
        start += chunk;
    }
}

static void bucket_copy_out(const ExecTask *t) {
    size_t at = 0;
    for (unsigned i = BUCKET_COPY_OUT_GRADIENT; i < BUCKET_COPY_OUT_GRADIENT + list_length(t);
         i++) {
        put(t, i, 0, BUCKET_COPY_OUT_BUCKET, at, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

static void concat_columns(const ExecTask *t) {
    size_t rows = dim(t, CONCAT_COLUMNS_ROWS), row = dim(t, CONCAT_COLUMNS_COLS) * sizeof(float);
    unsigned n = list_length(t);
    char *to = t->pointers[n];
    for (unsigned i = 0; i < n; i++) {
        size_t part = operand(t, i).elements / rows * sizeof(float);
        kernel_copy_2d_bytes(to, row, t->pointers[i], part, rows, part);
        to += part;
    }
}

/* ---- the switch ----------------------------------------------------------------------------- */

void exec_host_pieces(const ExecTask *t) {
    switch ((ExecPiecesOp)t->op->kind) {
    case PLAN_OP_COPY:
        put(t, COPY_Y, 0, COPY_X, 0, dim(t, COPY_N));
        return;
    case PLAN_OP_JOIN_REST:
        kernel_copy_f32(f32(t, JOIN_REST_Y), f32(t, JOIN_REST_X), dim(t, JOIN_REST_N));
        return;
    case PLAN_OP_PART:
        part(t);
        return;
    case PLAN_OP_FLATTEN:
        flatten_to(t, 0);
        return;
    case PLAN_OP_GATHER_COPY_IN:
        flatten_to(t, axis_rank(t) * dim(t, GATHER_COPY_IN_SLICE));
        return;
    case PLAN_OP_GATHER_COPY_OUT:
        gather_copy_out(t);
        return;
    case PLAN_OP_REDUCE_COPY_IN:
        reduce_copy_in(t);
        return;
    case PLAN_OP_BUCKET_COPY_OUT:
        bucket_copy_out(t);
        return;
    case PLAN_OP_CONCAT_COLUMNS:
        concat_columns(t);
        return;
    }
    g_assert_not_reached();
}
