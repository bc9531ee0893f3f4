/* exec/cuda/ops/float8.c - ops of linear layers in float8, as exec/host/float8.c has them.
 *
 * Of scales by rows and columns cuBLASLt's product knows nothing here, and a kernel behind it
 * applies them, as torchao.float8 has it in backward: they are powers of two, so that rounding
 * before or behind is the same.
 */
#include "plan/op/float8.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/products/mxfp8.h"
#include "kernels/cuda/products/turned.h"
#include "kernels/cuda/reduce.h"

static KernelCudaScaleType scale_type_at(const ExecTask *t, PlanSlotNumber i) {
    return operand_dtype(t, i) == PLAN_FP64 ? KERNEL_CUDA_SCALE_F64
                                            : (KernelCudaScaleType)operand_dtype(t, i);
}

static KernelCudaFloat8Scale scale_at(const ExecTask *t, PlanSlotNumber i) {
    return (KernelCudaFloat8Scale){t->pointers[i], scale_type_at(t, i)};
}

static KernelCudaFloat8 float8_at(const ExecTask *t, PlanSlotNumber i) {
    return operand_dtype(t, i) == PLAN_E4M3 ? KERNEL_CUDA_E4M3 : KERNEL_CUDA_E5M2;
}

/* The source of a scale op or a cast op: their operands and dims begin alike. */
static KernelCudaFloat8Source source_of(const ExecTask *t) {
    gpointer *p = t->pointers;
    return (KernelCudaFloat8Source){.x = p[FLOAT8_SCALE_X],
                                    .up = p[FLOAT8_SCALE_MORE],
                                    .weight = p[FLOAT8_SCALE_WEIGHT],
                                    .rstd = p[FLOAT8_SCALE_RSTD],
                                    .rows = dim(t, FLOAT8_SCALE_ROWS),
                                    .cols = dim(t, FLOAT8_SCALE_COLS),
                                    .type = type_at(t, FLOAT8_SCALE_X)};
}

static KernelCudaAlong along_of(const ExecTask *t) {
    switch ((PlanFloat8Along)dim(t, FLOAT8_SCALE_ALONG)) {
    case PLAN_FLOAT8_EACH_ROW:
        return KERNEL_CUDA_EACH_ROW;
    case PLAN_FLOAT8_EACH_COLUMN:
        return KERNEL_CUDA_EACH_COLUMN;
    case PLAN_FLOAT8_SCALED_ALREADY:
        return KERNEL_CUDA_SCALED_ALREADY;
    case PLAN_FLOAT8_WHOLE:
        return KERNEL_CUDA_WHOLE;
    case PLAN_N_FLOAT8_ALONG:
        break;
    }
    g_assert_not_reached();
}

static KernelCudaFault cast(const ExecTask *t, KernelCuda *k) {
    KernelCudaFloat8Source source = source_of(t);
    gpointer *p = t->pointers;
    return kernel_cuda_float8_cast(
        k, p[FLOAT8_CAST_Y8], p[FLOAT8_CAST_TURNED8], &source, scale_at(t, FLOAT8_CAST_SCALE),
        along_of(t), float8_at(t, p[FLOAT8_CAST_TURNED8] ? FLOAT8_CAST_TURNED8 : FLOAT8_CAST_Y8));
}

static KernelCudaFault cast_rows(const ExecTask *t, KernelCuda *k) {
    KernelCudaFloat8Source source = {.x = t->pointers[FLOAT8_CAST_ROWS_X],
                                     .rows = dim(t, FLOAT8_CAST_ROWS_ROWS),
                                     .cols = dim(t, FLOAT8_CAST_ROWS_COLS),
                                     .type = type_at(t, FLOAT8_CAST_ROWS_X)};
    KernelCudaFloat8 to = float8_at(t, FLOAT8_CAST_ROWS_Y8);
    KernelCudaFault fault = kernel_cuda_float8_scale(
        k, scale_at(t, FLOAT8_CAST_ROWS_SCALE), &source, KERNEL_CUDA_EACH_ROW,
        plan_float8_largest(operand_dtype(t, FLOAT8_CAST_ROWS_Y8)));
    return fault ? fault
                 : kernel_cuda_float8_cast(k, bytes(t, FLOAT8_CAST_ROWS_Y8), NULL, &source,
                                           scale_at(t, FLOAT8_CAST_ROWS_SCALE),
                                           KERNEL_CUDA_EACH_ROW, to);
}

/* ---- delayed scales ------------------------------------------------------------------------- */

/* What Transformer Engine does in one kernel here is several, each of which reads x. */
static KernelCudaFault delayed_cast(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    size_t rows = dim(t, FLOAT8_DELAYED_CAST_ROWS), cols = dim(t, FLOAT8_DELAYED_CAST_COLS);
    KernelCudaFloat8Source source = {.x = p[FLOAT8_DELAYED_CAST_X],
                                     .rows = rows,
                                     .cols = cols,
                                     .type = type_at(t, FLOAT8_DELAYED_CAST_X)};
    KernelCudaFloat8 to = float8_at(t, FLOAT8_DELAYED_CAST_Y8);
    gpointer found;
    KernelCudaFault fault = kernel_cuda_callers_scratch(k, sizeof(double), &found);
    KernelCudaFloat8Scale largest = {found, KERNEL_CUDA_SCALE_F64};
    fault = fault ? fault : kernel_cuda_float8_scale(k, largest, &source, KERNEL_CUDA_WHOLE, 1);
    fault = fault ? fault
                  : kernel_cuda_float8_step(k, p[FLOAT8_DELAYED_CAST_LARGEST],
                                            KERNEL_CUDA_SCALE_F32, found, KERNEL_CUDA_SCALE_F64, 1,
                                            KERNEL_CUDA_FLOAT8_CONVERT, 1, NULL);
    fault = fault ? fault
                  : kernel_cuda_float8_cast(
                        k, p[FLOAT8_DELAYED_CAST_Y8], p[FLOAT8_DELAYED_CAST_TURNED8], &source,
                        scale_at(t, FLOAT8_DELAYED_CAST_SCALE), KERNEL_CUDA_WHOLE, to);
    return fault || !p[FLOAT8_DELAYED_CAST_DB]
               ? fault
               : kernel_cuda_column_sum(k, p[FLOAT8_DELAYED_CAST_DB], source.x, rows, cols,
                                        source.type);
}

/* ---- PyTorch's kernels, one step each ------------------------------------------------------- */

static KernelCudaFault pass(const ExecTask *t, KernelCuda *k) {
    static const KernelCudaFloat8Step steps[PLAN_N_FLOAT8_STEPS] = {
        [PLAN_FLOAT8_MAGNITUDE] = KERNEL_CUDA_FLOAT8_MAGNITUDE,
        [PLAN_FLOAT8_CONVERT] = KERNEL_CUDA_FLOAT8_CONVERT,
        [PLAN_FLOAT8_AT_LEAST] = KERNEL_CUDA_FLOAT8_AT_LEAST,
        [PLAN_FLOAT8_INVERT] = KERNEL_CUDA_FLOAT8_INVERT,
        [PLAN_FLOAT8_TIMES_LARGEST] = KERNEL_CUDA_FLOAT8_TIMES_LARGEST,
        [PLAN_FLOAT8_TIMES_SCALE] = KERNEL_CUDA_FLOAT8_TIMES_SCALE,
        [PLAN_FLOAT8_BOUND] = KERNEL_CUDA_FLOAT8_BOUND,
        [PLAN_FLOAT8_INVERSE_SCALE] = KERNEL_CUDA_FLOAT8_INVERSE_SCALE,
        [PLAN_FLOAT8_INVERSE_OF_POWER] = KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER};
    return kernel_cuda_float8_step(k, t->pointers[FLOAT8_PASS_Y], scale_type_at(t, FLOAT8_PASS_Y),
                                   t->pointers[FLOAT8_PASS_X], scale_type_at(t, FLOAT8_PASS_X),
                                   dim(t, FLOAT8_PASS_N), steps[dim(t, FLOAT8_PASS_STEP)],
                                   attr(t, FLOAT8_PASS_LARGEST), t->pointers[FLOAT8_PASS_SCALE]);
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Rows of bytes as numbers of 16 bits, which are copied as they lie (knows.c: all are even). */
static KernelCudaPiece rows_of_bytes(void *to, size_t to_stride, const void *from,
                                     size_t from_stride, size_t rows, size_t width) {
    return (KernelCudaPiece){.to = to,
                             .from = from,
                             .rows = rows,
                             .width = width / 2,
                             .to_stride = to_stride / 2,
                             .from_stride = from_stride / 2,
                             .to_type = KERNEL_CUDA_BF16,
                             .from_type = KERNEL_CUDA_BF16};
}

static size_t bytes_of(const ExecTask *t, PlanSlotNumber i) {
    return operand(t, i).elements * plan_dtype_bytes(operand_dtype(t, i));
}

static KernelCudaFault copy_in(const ExecTask *t, KernelCuda *k) {
    unsigned n = list_length(t);
    g_autofree KernelCudaPiece *pieces = g_new(KernelCudaPiece, n);
    uint8_t *to = bytes(t, n) + axis_rank(t) * dim(t, FLOAT8_COPY_IN_SLICE);
    for (unsigned i = 0; i < n; to += bytes_of(t, i), i++) {
        pieces[i] = rows_of_bytes(to, 0, bytes(t, i), 0, 1, bytes_of(t, i));
    }
    return kernel_cuda_copy_pieces(k, pieces, n);
}

static KernelCudaFault copy_out(const ExecTask *t, KernelCuda *k) {
    unsigned n = list_length(t);
    size_t slice = dim(t, FLOAT8_COPY_OUT_SLICE), ranks = dim(t, FLOAT8_COPY_OUT_RANKS), start = 0;
    g_autofree KernelCudaPiece *pieces = g_new(KernelCudaPiece, n);
    for (unsigned i = 0; i < n; i++) {
        size_t chunk = bytes_of(t, FLOAT8_COPY_OUT_PARAMETER + i) / ranks;
        pieces[i] = rows_of_bytes(bytes(t, FLOAT8_COPY_OUT_PARAMETER + i), chunk,
                                  bytes(t, FLOAT8_COPY_OUT_GATHERED) + start, slice, ranks, chunk);
        start += chunk;
    }
    return kernel_cuda_copy_pieces(k, pieces, n);
}

/* Numbers that are so many bytes change places as wholes. */
static KernelCudaFault exchange_sides(const ExecTask *t, KernelCuda *k) {
    size_t rows = dim(t, FLOAT8_TURN_ROWS), cols = dim(t, FLOAT8_TURN_COLS),
           inner = dim(t, FLOAT8_TURN_INNER);
    if (inner == 1) {
        return kernel_cuda_exchange_sides(k, bytes(t, FLOAT8_TURN_TURNED8),
                                          bytes(t, FLOAT8_TURN_X8), rows, cols, 1);
    }
    g_autofree KernelCudaPiece *pieces = g_new(KernelCudaPiece, cols);
    for (size_t col = 0; col < cols; col++) {
        pieces[col] =
            rows_of_bytes(bytes(t, FLOAT8_TURN_TURNED8) + col * rows * inner, inner,
                          bytes(t, FLOAT8_TURN_X8) + col * inner, cols * inner, rows, inner);
    }
    return kernel_cuda_copy_pieces(k, pieces, cols);
}

/* ---- products ------------------------------------------------------------------------------- */

typedef struct {
    size_t m, n, k; /* of y [m, n], a sum of k */
    bool by_rows, is_scaled, is_quick;
} Product;

static Product product_of(const ExecTask *t) {
    size_t m = dim(t, FLOAT8_LINEAR_M), n = dim(t, FLOAT8_LINEAR_N), k = dim(t, FLOAT8_LINEAR_K);
    switch (t->op->kind) {
    case PLAN_OP_FLOAT8_LINEAR:
        return (Product){m, n, k, dim(t, FLOAT8_LINEAR_X_SCALES) > 1, true, true};
    case PLAN_OP_FLOAT8_LINEAR_BIAS:
        return (Product){m, n, k, false, true, true};
    case PLAN_OP_FLOAT8_LINEAR_DX:
        return (Product){m, k, n, dim(t, FLOAT8_LINEAR_DX_DY_SCALES) > 1, true, false};
    default:
        return (Product){
            n,    k, m, dim(t, FLOAT8_LINEAR_DW_DY_SCALES) > 1, !dim(t, FLOAT8_LINEAR_DW_BEHIND),
            false};
    }
}

/* A weight that a block left as it lay, [k, n]: a product of dx sums over what are its rows. */
static KernelCudaFault transposed(const ExecTask *t, KernelCuda *k, const Product *p,
                                  gpointer *ret_b) {
    KernelCudaFault fault = kernel_cuda_callers_scratch(k, p->n * p->k, ret_b);
    return fault ? fault
                 : kernel_cuda_exchange_sides(k, *ret_b, bytes(t, FLOAT8_LINEAR_DX_W8), p->k, p->n,
                                              1);
}

/* All products have a factor and its scale, another and its scale, and what they make. */
static KernelCudaFault multiply_into(const ExecTask *t, KernelCuda *k, gpointer y,
                                     KernelCudaType type) {
    Product p = product_of(t);
    bool lies_as_it_is =
        t->op->kind == PLAN_OP_FLOAT8_LINEAR_DX && !dim(t, FLOAT8_LINEAR_DX_TURNED);
    gpointer factor = t->pointers[FLOAT8_LINEAR_W8];
    KernelCudaFault fault = lies_as_it_is ? transposed(t, k, &p, &factor) : NULL;
    if (fault) {
        return fault;
    }
    KernelCudaFloat8Factor a = {bytes(t, FLOAT8_LINEAR_X8),
                                p.by_rows ? NULL : f32(t, FLOAT8_LINEAR_X_SCALE),
                                float8_at(t, FLOAT8_LINEAR_X8)};
    KernelCudaFloat8Factor b = {factor, p.by_rows ? NULL : f32(t, FLOAT8_LINEAR_W_SCALE),
                                float8_at(t, FLOAT8_LINEAR_W8)};
    fault = kernel_cuda_float8_product(k, y, a, b, p.m, p.n, p.k, p.is_quick, type);
    return fault || !p.by_rows || !p.is_scaled
               ? fault
               : kernel_cuda_float8_unscale(k, y, scale_at(t, FLOAT8_LINEAR_X_SCALE),
                                            scale_at(t, FLOAT8_LINEAR_W_SCALE), p.m, p.n, type);
}

static KernelCudaFault multiply_and_add(const ExecTask *t, KernelCuda *k) {
    gpointer y = t->pointers[FLOAT8_LINEAR_BIAS_Y];
    KernelCudaType type = type_at(t, FLOAT8_LINEAR_BIAS_Y);
    size_t m = dim(t, FLOAT8_LINEAR_BIAS_M), n = dim(t, FLOAT8_LINEAR_BIAS_N);
    KernelCudaFault fault = multiply_into(t, k, y, type);
    return fault ? fault
                 : kernel_cuda_add(k, y, y, t->pointers[FLOAT8_LINEAR_BIAS_BIAS], m * n, n, type);
}

/* ---- MXFP8 ---------------------------------------------------------------------------------- */

static KernelCudaFault multiply_blocks(const ExecTask *t, KernelCuda *k) {
    KernelCudaMxfp8Factor a = {bytes(t, MXFP8_PRODUCT_X8), bytes(t, MXFP8_PRODUCT_X_EXPONENTS)};
    KernelCudaMxfp8Factor b = {bytes(t, MXFP8_PRODUCT_W8), bytes(t, MXFP8_PRODUCT_W_EXPONENTS)};
    return kernel_cuda_mxfp8_product(k, t->pointers[MXFP8_PRODUCT_Y], a, b, dim(t, MXFP8_PRODUCT_M),
                                     dim(t, MXFP8_PRODUCT_N), dim(t, MXFP8_PRODUCT_K),
                                     type_at(t, MXFP8_PRODUCT_Y));
}

/* ---- the switch ----------------------------------------------------------------------------- */

KernelCudaFault exec_cuda_float8(const ExecTask *t, KernelCuda *k) {
    KernelCudaFloat8Source source;
    switch ((ExecFloat8Op)t->op->kind) {
    case PLAN_OP_FLOAT8_SCALE:
        source = source_of(t);
        return kernel_cuda_float8_scale(k, scale_at(t, FLOAT8_SCALE_SCALE), &source, along_of(t),
                                        attr(t, FLOAT8_SCALE_LARGEST));
    case PLAN_OP_FLOAT8_CAST:
        return cast(t, k);
    case PLAN_OP_FLOAT8_CAST_ROWS:
        return cast_rows(t, k);
    case PLAN_OP_FLOAT8_UNSCALE:
        return kernel_cuda_float8_unscale(
            k, t->pointers[FLOAT8_UNSCALE_X], scale_at(t, FLOAT8_UNSCALE_ROW),
            scale_at(t, FLOAT8_UNSCALE_COLUMN), dim(t, FLOAT8_UNSCALE_ROWS),
            dim(t, FLOAT8_UNSCALE_COLS), type_at(t, FLOAT8_UNSCALE_X));
    case PLAN_OP_FLOAT8_PASS:
        return pass(t, k);
    case PLAN_OP_FLOAT8_LARGEST:
        return exec_cuda_largest_of_each(t, k);
    case PLAN_OP_FLOAT8_COPY_IN:
        return copy_in(t, k);
    case PLAN_OP_FLOAT8_COPY_OUT:
        return copy_out(t, k);
    case PLAN_OP_FLOAT8_TURN:
        return exchange_sides(t, k);
    case PLAN_OP_FLOAT8_LINEAR:
    case PLAN_OP_FLOAT8_LINEAR_DX:
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return multiply_into(t, k, t->pointers[FLOAT8_LINEAR_Y], type_at(t, FLOAT8_LINEAR_Y));
    case PLAN_OP_FLOAT8_LINEAR_BIAS:
        return multiply_and_add(t, k);
    case PLAN_OP_MXFP8_CAST:
        return kernel_cuda_mxfp8_cast(
            k, bytes(t, MXFP8_CAST_Y8), bytes(t, MXFP8_CAST_EXPONENTS), t->pointers[MXFP8_CAST_X],
            dim(t, MXFP8_CAST_ROWS), dim(t, MXFP8_CAST_COLS),
            dims(t)[MXFP8_CAST_ALONG] == PLAN_FLOAT8_EACH_COLUMN, type_at(t, MXFP8_CAST_X));
    case PLAN_OP_MXFP8_ORDER:
        return kernel_cuda_mxfp8_order(k, bytes(t, MXFP8_ORDER_ORDERED),
                                       bytes(t, MXFP8_ORDER_EXPONENTS), dim(t, MXFP8_ORDER_ROWS),
                                       dim(t, MXFP8_ORDER_COLS));
    case PLAN_OP_MXFP8_PRODUCT:
        return multiply_blocks(t, k);
    case PLAN_OP_FLOAT8_DELAYED_CAST:
        return delayed_cast(t, k);
    case PLAN_OP_FLOAT8_DELAY:
        return kernel_cuda_float8_delay(k, t->pointers[FLOAT8_DELAY_HISTORY],
                                        t->pointers[FLOAT8_DELAY_SCALE],
                                        dim(t, FLOAT8_DELAY_PASSES), dim(t, FLOAT8_DELAY_TENSORS),
                                        attr(t, FLOAT8_DELAY_LARGEST));
    }
    g_assert_not_reached();
}
