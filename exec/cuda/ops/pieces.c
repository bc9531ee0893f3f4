/* exec/cuda/ops/pieces.c - copies between whole parameters and what ranks hold of them.
 *
 * Layouts are those of plan/flavours/fsdp2-gather.c and fsdp2-reduce.c, as on the host
 * (exec/host/pieces.c); each op is one list of pieces.
 */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/copy.h"

/* Element `at` of operand i. */
static gpointer element(const ExecTask *t, unsigned i, size_t at) {
    return (char *)t->pointers[i] + at * plan_dtype_bytes(operand_dtype(t, i));
}

/* rows of width elements, so far apart on either side. */
static KernelCudaPiece piece(const ExecTask *t, unsigned to, size_t to_at, size_t to_stride,
                             unsigned from, size_t from_at, size_t from_stride, size_t rows,
                             size_t width) {
    return (KernelCudaPiece){.to = element(t, to, to_at),
                             .from = element(t, from, from_at),
                             .rows = rows,
                             .width = width,
                             .to_stride = to_stride,
                             .from_stride = from_stride,
                             .to_type = type_at(t, to),
                             .from_type = type_at(t, from)};
}

static void add_row(GArray *pieces, const ExecTask *t, unsigned to, size_t to_at, unsigned from,
                    size_t from_at, size_t n) {
    KernelCudaPiece row = piece(t, to, to_at, n, from, from_at, n, 1, n);
    if (n) {
        g_array_append_val(pieces, row);
    }
}

static void add_zeros(GArray *pieces, const ExecTask *t, unsigned to, size_t to_at, size_t n) {
    KernelCudaPiece zeros = piece(t, to, to_at, n, to, to_at, n, 1, n);
    zeros.from = NULL;
    if (n) {
        g_array_append_val(pieces, zeros);
    }
}

/* The list one after the other, from element `at` of the operand behind it on. */
static void flatten(GArray *pieces, const ExecTask *t, size_t at) {
    for (unsigned i = 0; i < list_length(t); i++) {
        add_row(pieces, t, list_length(t), at, i, 0, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

static void gather_copy_out(GArray *pieces, const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        size_t chunk = operand(t, i).elements / ranks;
        KernelCudaPiece rows = piece(t, i, 0, chunk, 0, start, slice, ranks, chunk);
        if (chunk) {
            g_array_append_val(pieces, rows);
        }
        start += chunk;
    }
}

static void reduce_copy_in(GArray *pieces, const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    unsigned packed = list_length(t);
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t rows = operand(t, i).rows, elements = operand(t, i).elements;
        size_t chunk = (rows + ranks - 1) / ranks * (elements / rows);
        size_t whole = chunk ? elements / chunk : 0, rest = elements - whole * chunk;
        KernelCudaPiece full = piece(t, packed, start, slice, i, 0, chunk, whole, chunk);
        if (whole) {
            g_array_append_val(pieces, full);
        }
        for (size_t rank = whole; rank < ranks; rank++, rest = 0) { /* the last is short */
            size_t to = rank * slice + start;
            add_row(pieces, t, packed, to, i, whole * chunk, rest);
            add_zeros(pieces, t, packed, to + rest, chunk - rest);
        }
        start += chunk;
    }
}

static void bucket_copy_out(GArray *pieces, const ExecTask *t) {
    size_t at = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        add_row(pieces, t, i, 0, 0, at, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

/* Between x [batch, parts, part] and the same with the parts outermost; back: from that. */
static void parts_copy(GArray *pieces, const ExecTask *t) {
    size_t batch = dim(t, 0), parts = dim(t, 1), part = dim(t, 2) * dim(t, 3);
    bool back = dims(t)[4] != 0;
    for (size_t p = 0; p < parts; p++) {
        size_t inside = p * part, outside = p * batch * part;
        KernelCudaPiece one =
            back ? piece(t, 1, inside, parts * part, 0, outside, part, batch, part)
                 : piece(t, 1, outside, part, 0, inside, parts * part, batch, part);
        g_array_append_val(pieces, one);
    }
}

/* Of whole [batch, ranks, n], this rank's. */
static void own_parts(GArray *pieces, const ExecTask *t) {
    size_t n = dim(t, 1), ranks = dim(t, 2);
    KernelCudaPiece own = piece(t, 1, 0, n, 0, axis_rank(t) * n, ranks * n, dim(t, 0), n);
    g_array_append_val(pieces, own);
}

/* Of x [outer, rows, inner] the last rows. */
static void last_rows(GArray *pieces, const ExecTask *t) {
    size_t all = dim(t, 2) * dim(t, 1), n = dim(t, 3) * dim(t, 1);
    KernelCudaPiece last = piece(t, 1, 0, n, 0, all - n, all, dim(t, 0), n);
    g_array_append_val(pieces, last);
}

/* a's rows [outer, rows, inner] but for the last, and b's behind them. */
static void put_rows(GArray *pieces, const ExecTask *t) {
    size_t all = dim(t, 2) * dim(t, 1), n = dim(t, 3) * dim(t, 1);
    KernelCudaPiece first = piece(t, 2, 0, all, 0, 0, all, dim(t, 0), all - n);
    KernelCudaPiece last = piece(t, 2, all - n, all, 1, 0, n, dim(t, 0), n);
    g_array_append_val(pieces, first);
    g_array_append_val(pieces, last);
}

static void concat_columns(GArray *pieces, const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1), n = list_length(t), to = 0;
    for (unsigned i = 0; i < n; i++) {
        size_t part = operand(t, i).elements / rows;
        KernelCudaPiece columns = piece(t, (unsigned)n, to, cols, i, 0, part, rows, part);
        g_array_append_val(pieces, columns);
        to += part;
    }
}

/* With those of other groups that are such copies, too. */
typedef enum {
    EXEC_PIECES_OPS(EXEC_PART_VALUE)
    EXEC_PART_VALUE(PARTS_COPY) EXEC_PART_VALUE(OWN_PARTS) EXEC_PART_VALUE(LAST_ROWS)
        EXEC_PART_VALUE(PUT_ROWS) EXEC_PART_VALUE(JOIN)
} PiecesOp;

KernelCudaFault exec_cuda_pieces(const ExecTask *t, KernelCuda *kernels) {
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(KernelCudaPiece));
    switch ((PiecesOp)t->op->kind) {
    case PLAN_OP_COPY:
        add_row(pieces, t, 1, 0, 0, 0, dim(t, 0));
        break;
    case PLAN_OP_JOIN_REST: /* x rest > y */
        add_row(pieces, t, 2, 0, 0, 0, dim(t, 0));
        break;
    case PLAN_OP_PART:
        add_row(pieces, t, 1, 0, 0, axis_rank(t) * dim(t, 0), dim(t, 0));
        break;
    case PLAN_OP_FLATTEN:
        flatten(pieces, t, 0);
        break;
    case PLAN_OP_GATHER_COPY_IN:
        flatten(pieces, t, axis_rank(t) * dim(t, 0));
        break;
    case PLAN_OP_GATHER_COPY_OUT:
        gather_copy_out(pieces, t);
        break;
    case PLAN_OP_REDUCE_COPY_IN:
        reduce_copy_in(pieces, t);
        break;
    case PLAN_OP_BUCKET_COPY_OUT:
        bucket_copy_out(pieces, t);
        break;
    case PLAN_OP_PARTS_COPY:
        parts_copy(pieces, t);
        break;
    case PLAN_OP_OWN_PARTS:
        own_parts(pieces, t);
        break;
    case PLAN_OP_LAST_ROWS:
        last_rows(pieces, t);
        break;
    case PLAN_OP_PUT_ROWS:
        put_rows(pieces, t);
        break;
    case PLAN_OP_JOIN: /* a b > y */
        add_row(pieces, t, 2, 0, 0, 0, dim(t, 0));
        add_row(pieces, t, 2, dim(t, 0), 1, 0, dim(t, 0));
        break;
    case PLAN_OP_CONCAT_COLUMNS:
        concat_columns(pieces, t);
        break;
    }
    return kernel_cuda_copy_pieces(kernels, (const KernelCudaPiece *)(gpointer)pieces->data,
                                   pieces->len);
}
