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
    size_t slice = dim(t, GATHER_COPY_OUT_SLICE), ranks = dim(t, GATHER_COPY_OUT_RANKS), start = 0;
    for (unsigned i = GATHER_COPY_OUT_PARAMETER; i < GATHER_COPY_OUT_PARAMETER + list_length(t);
         i++) {
        size_t chunk = operand(t, i).elements / ranks;
        KernelCudaPiece rows =
            piece(t, i, 0, chunk, GATHER_COPY_OUT_GATHERED, start, slice, ranks, chunk);
        if (chunk) {
            g_array_append_val(pieces, rows);
        }
        start += chunk;
    }
}

static void reduce_copy_in(GArray *pieces, const ExecTask *t) {
    size_t slice = dim(t, REDUCE_COPY_IN_SLICE), ranks = dim(t, REDUCE_COPY_IN_RANKS), start = 0;
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
    for (unsigned i = BUCKET_COPY_OUT_GRADIENT; i < BUCKET_COPY_OUT_GRADIENT + list_length(t);
         i++) {
        add_row(pieces, t, i, 0, BUCKET_COPY_OUT_BUCKET, at, operand(t, i).elements);
        at += operand(t, i).elements;
    }
}

/* Between x [batch, parts, part] and the same with the parts outermost; back: from that. */
static void parts_copy(GArray *pieces, const ExecTask *t) {
    size_t batch = dim(t, PARTS_COPY_BATCH), parts = dim(t, PARTS_COPY_PARTS),
           part = dim(t, PARTS_COPY_ROWS) * dim(t, PARTS_COPY_WIDTH);
    bool back = dims(t)[PARTS_COPY_BACK] != 0;
    for (size_t p = 0; p < parts; p++) {
        size_t inside = p * part, outside = p * batch * part;
        KernelCudaPiece one = back ? piece(t, PARTS_COPY_Y, inside, parts * part, PARTS_COPY_X,
                                           outside, part, batch, part)
                                   : piece(t, PARTS_COPY_Y, outside, part, PARTS_COPY_X, inside,
                                           parts * part, batch, part);
        g_array_append_val(pieces, one);
    }
}

/* Copies this rank's part out of whole [batch, ranks, n]. */
static void own_parts(GArray *pieces, const ExecTask *t) {
    size_t n = dim(t, OWN_PARTS_N), ranks = dim(t, OWN_PARTS_RANKS);
    KernelCudaPiece own = piece(t, OWN_PARTS_PART, 0, n, OWN_PARTS_WHOLE, axis_rank(t) * n,
                                ranks * n, dim(t, OWN_PARTS_BATCH), n);
    g_array_append_val(pieces, own);
}

/* Copies the last rows of x [outer, rows, inner]. */
static void last_rows(GArray *pieces, const ExecTask *t) {
    size_t all = dim(t, LAST_ROWS_X_ROWS) * dim(t, LAST_ROWS_INNER),
           n = dim(t, LAST_ROWS_ROWS) * dim(t, LAST_ROWS_INNER);
    KernelCudaPiece last =
        piece(t, LAST_ROWS_Y, 0, n, LAST_ROWS_X, all - n, all, dim(t, LAST_ROWS_OUTER), n);
    g_array_append_val(pieces, last);
}

/* a's rows [outer, rows, inner] but for the last, and b's behind them. */
static void put_rows(GArray *pieces, const ExecTask *t) {
    size_t all = dim(t, PUT_ROWS_A_ROWS) * dim(t, PUT_ROWS_INNER),
           n = dim(t, PUT_ROWS_B_ROWS) * dim(t, PUT_ROWS_INNER);
    KernelCudaPiece first =
        piece(t, PUT_ROWS_Y, 0, all, PUT_ROWS_A, 0, all, dim(t, PUT_ROWS_OUTER), all - n);
    KernelCudaPiece last =
        piece(t, PUT_ROWS_Y, all - n, all, PUT_ROWS_B, 0, n, dim(t, PUT_ROWS_OUTER), n);
    g_array_append_val(pieces, first);
    g_array_append_val(pieces, last);
}

static void concat_columns(GArray *pieces, const ExecTask *t) {
    size_t rows = dim(t, CONCAT_COLUMNS_ROWS), cols = dim(t, CONCAT_COLUMNS_COLS),
           n = list_length(t), to = 0;
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
        add_row(pieces, t, 1, 0, 0, 0, dim(t, COPY_N));
        break;
    case PLAN_OP_JOIN_REST:
        add_row(pieces, t, 2, 0, 0, 0, dim(t, JOIN_REST_N));
        break;
    case PLAN_OP_PART:
        add_row(pieces, t, 1, 0, 0, axis_rank(t) * dim(t, PART_N), dim(t, PART_N));
        break;
    case PLAN_OP_FLATTEN:
        flatten(pieces, t, 0);
        break;
    case PLAN_OP_GATHER_COPY_IN:
        flatten(pieces, t, axis_rank(t) * dim(t, GATHER_COPY_IN_SLICE));
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
    case PLAN_OP_JOIN:
        add_row(pieces, t, 2, 0, 0, 0, dim(t, JOIN_N));
        add_row(pieces, t, 2, dim(t, JOIN_N), 1, 0, dim(t, JOIN_N));
        break;
    case PLAN_OP_CONCAT_COLUMNS:
        concat_columns(pieces, t);
        break;
    }
    return kernel_cuda_copy_pieces(kernels, (const KernelCudaPiece *)(gpointer)pieces->data,
                                   pieces->len);
}
