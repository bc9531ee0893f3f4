#include "exec/host/shard.h"

#include "exec/convert.h"
#include "exec/task.h"
#include "kernels/host/copy.h"

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

void exec_shard_copy(const ExecTask *t) {
    put(t, 1, 0, 0, 0, dim(t, 0));
}

void exec_shard_part(const ExecTask *t) {
    put(t, 1, 0, 0, axis_rank(t) * dim(t, 0), dim(t, 0));
}

static void flatten_to(const ExecTask *t, size_t at) {
    for (unsigned i = 0; i < list_length(t); i++) {
        put(t, list_length(t), at, i, 0, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

void exec_shard_flatten(const ExecTask *t) {
    flatten_to(t, 0);
}

void exec_shard_gather_copy_in(const ExecTask *t) {
    flatten_to(t, axis_rank(t) * dim(t, 0));
}

void exec_shard_gather_copy_out(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        size_t chunk = operand(t, i).elements / ranks;
        for (size_t rank = 0; rank < ranks; rank++) {
            put(t, i, rank * chunk, 0, rank * slice + start, chunk);
        }
        start += chunk;
    }
}

void exec_shard_reduce_copy_in(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
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

void exec_shard_bucket_copy_out(const ExecTask *t) {
    size_t at = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        put(t, i, 0, 0, at, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}
