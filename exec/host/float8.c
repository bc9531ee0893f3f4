/* exec/host/float8.c - ops of linear layers in float8.
 *
 * A scale in fp32 is what a product multiplies by, so casts multiply by its inverse: that is
 * within an ulp of what PyTorch multiplies by, and equal where scales are powers of two. A scale in
 * another dtype is the largest magnitude of which either is found. What a norm or SwiGLU makes is
 * not rounded to 16 bits before it is cast, as in a compiler's kernels.
 */
#include "exec/host/ops.h"

#include <math.h>

#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/products/float8.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/products/mxfp8.h"
#include "kernels/host/reduce.h"
#include "plan/op/float8.h"

static double *f64(const ExecTask *t, PlanSlotNumber i) {
    return t->pointers[i];
}

/* ---- scales --------------------------------------------------------------------------------- */

static double magnitude_at(const ExecTask *t, PlanSlotNumber i, size_t at) {
    return operand_dtype(t, i) == PLAN_FP64 ? f64(t, i)[at] : (double)f32(t, i)[at];
}

/* What casts multiply by. */
static float scale_at(const ExecTask *t, PlanSlotNumber i, size_t at, PlanDtype to, bool to_power) {
    return operand_dtype(t, i) == PLAN_FP32
               ? 1 / f32(t, i)[at]
               : kernel_float8_scale(magnitude_at(t, i, at), plan_float8_largest(to), to_power);
}

/* What products multiply by; those of rows and columns are powers of two. Transfer full. */
static float *inverses_of(const ExecTask *t, PlanSlotNumber i, size_t n) {
    float *inverses = g_new(float, n);
    for (size_t at = 0; at < n; at++) {
        inverses[at] = operand_dtype(t, i) == PLAN_FP32 ? f32(t, i)[at]
                                                        : 1 / scale_at(t, i, at, PLAN_E4M3, true);
    }
    return inverses;
}

/* Stores what was found of largest magnitudes. */
static void put_scales(const ExecTask *t, PlanSlotNumber i, const float *magnitudes, size_t n,
                       double largest, bool to_power) {
    for (size_t at = 0; at < n; at++) {
        double magnitude = (double)magnitudes[at];
        if (operand_dtype(t, i) == PLAN_FP64) {
            f64(t, i)[at] = magnitude;
        } else {
            f32(t, i)[at] = operand_dtype(t, i) == PLAN_FP32
                                ? 1 / kernel_float8_scale(magnitude, largest, to_power)
                                : magnitudes[at];
        }
    }
}

/* ---- what is cast --------------------------------------------------------------------------- */

/* Those of a scale or a cast, made of its first operands where they are made. Transfer full. */
static float *numbers_of(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_SCALE_ROWS), cols = dim(t, FLOAT8_SCALE_COLS);
    float *x = g_new(float, rows *cols);
    switch ((PlanFloat8Made)dim(t, FLOAT8_SCALE_MADE)) {
    case PLAN_FLOAT8_AS_THEY_ARE:
        kernel_copy_f32(x, f32(t, FLOAT8_SCALE_X), rows * cols);
        break;
    case PLAN_FLOAT8_BY_NORM:
        kernel_copy_f32(x, f32(t, FLOAT8_SCALE_X), rows * cols);
        kernel_scale_rows_columns_f32(x, f32(t, FLOAT8_SCALE_RSTD), rows,
                                      f32(t, FLOAT8_SCALE_WEIGHT), cols, rows, cols);
        break;
    case PLAN_FLOAT8_BY_SWIGLU:
        kernel_silu_forward_f32(x, f32(t, FLOAT8_SCALE_X), rows * cols);
        kernel_mul_f32(x, x, f32(t, FLOAT8_SCALE_MORE), rows * cols);
        break;
    case PLAN_N_FLOAT8_MADE:
        g_assert_not_reached();
    }
    return x;
}

static void scale(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_SCALE_ROWS), cols = dim(t, FLOAT8_SCALE_COLS),
           scales = dim(t, FLOAT8_SCALE_SCALES);
    PlanFloat8Along along = (PlanFloat8Along)dim(t, FLOAT8_SCALE_ALONG);
    g_autofree float *x = numbers_of(t), *magnitudes = g_new(float, scales);
    if (along == PLAN_FLOAT8_EACH_ROW) {
        kernel_magnitude_rows_f32(magnitudes, x, rows, cols);
    } else if (along == PLAN_FLOAT8_EACH_COLUMN) {
        kernel_magnitude_columns_f32(magnitudes, x, rows, cols);
    } else {
        *magnitudes = kernel_magnitude_f32(x, rows * cols);
    }
    put_scales(t, FLOAT8_SCALE_SCALE, magnitudes, scales, attr(t, FLOAT8_SCALE_LARGEST),
               along != PLAN_FLOAT8_WHOLE);
}

static void narrow(uint8_t *to, PlanDtype dtype, const float *x, size_t n) {
    (dtype == PLAN_E4M3 ? kernel_narrow_e4m3 : kernel_narrow_e5m2)(to, x, n);
}

static void cast(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_CAST_ROWS), cols = dim(t, FLOAT8_CAST_COLS),
           scales = dim(t, FLOAT8_CAST_SCALES);
    PlanFloat8Along along = (PlanFloat8Along)dim(t, FLOAT8_CAST_ALONG);
    bool wants_turned = t->pointers[FLOAT8_CAST_TURNED8];
    PlanDtype to = operand_dtype(t, wants_turned ? FLOAT8_CAST_TURNED8 : FLOAT8_CAST_Y8);
    g_autofree float *x = numbers_of(t), *factors = g_new(float, scales);
    g_autofree uint8_t *unwanted = t->pointers[FLOAT8_CAST_Y8] ? NULL : g_new(uint8_t, rows * cols);
    uint8_t *as_is = unwanted ? unwanted : bytes(t, FLOAT8_CAST_Y8);
    const float one = 1;
    for (size_t i = 0; i < scales; i++) {
        factors[i] = along == PLAN_FLOAT8_SCALED_ALREADY
                         ? 1
                         : scale_at(t, FLOAT8_CAST_SCALE, i, to, along != PLAN_FLOAT8_WHOLE);
    }
    if (along == PLAN_FLOAT8_EACH_COLUMN) {
        kernel_scale_rows_columns_f32(x, &one, 1, factors, scales, rows, cols);
    } else {
        kernel_scale_rows_columns_f32(x, factors, scales, &one, 1, rows, cols);
    }
    narrow(as_is, to, x, rows * cols);
    if (wants_turned) {
        kernel_exchange_bytes(bytes(t, FLOAT8_CAST_TURNED8), as_is, rows, cols, 1);
    }
}

static void cast_rows(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_CAST_ROWS_ROWS), cols = dim(t, FLOAT8_CAST_ROWS_COLS);
    g_autofree float *magnitudes = g_new(float, rows), *x = g_new(float, rows *cols);
    const float one = 1;
    kernel_magnitude_rows_f32(magnitudes, f32(t, FLOAT8_CAST_ROWS_X), rows, cols);
    put_scales(t, FLOAT8_CAST_ROWS_SCALE, magnitudes, rows,
               plan_float8_largest(operand_dtype(t, FLOAT8_CAST_ROWS_Y8)), true);
    kernel_copy_f32(x, f32(t, FLOAT8_CAST_ROWS_X), rows * cols);
    for (size_t i = 0; i < rows; i++) {
        magnitudes[i] = 1 / f32(t, FLOAT8_CAST_ROWS_SCALE)[i];
    }
    kernel_scale_rows_columns_f32(x, magnitudes, rows, &one, 1, rows, cols);
    narrow(bytes(t, FLOAT8_CAST_ROWS_Y8), operand_dtype(t, FLOAT8_CAST_ROWS_Y8), x, rows * cols);
}

/* ---- delayed scales ------------------------------------------------------------------------- */

static void delayed_cast(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_DELAYED_CAST_ROWS), cols = dim(t, FLOAT8_DELAYED_CAST_COLS);
    const float *x = f32(t, FLOAT8_DELAYED_CAST_X);
    g_autofree float *scaled = g_new(float, rows *cols);
    const float factor = 1 / *f32(t, FLOAT8_DELAYED_CAST_SCALE), one = 1;
    *f32(t, FLOAT8_DELAYED_CAST_LARGEST) = kernel_magnitude_f32(x, rows * cols);
    kernel_copy_f32(scaled, x, rows * cols);
    kernel_scale_rows_columns_f32(scaled, &factor, 1, &one, 1, rows, cols);
    uint8_t *as_is = bytes(t, FLOAT8_DELAYED_CAST_Y8);
    narrow(as_is, operand_dtype(t, FLOAT8_DELAYED_CAST_Y8), scaled, rows * cols);
    kernel_exchange_bytes(bytes(t, FLOAT8_DELAYED_CAST_TURNED8), as_is, rows, cols, 1);
    if (t->pointers[FLOAT8_DELAYED_CAST_DB]) {
        kernel_column_sum_f32(f32(t, FLOAT8_DELAYED_CAST_DB), x, rows, cols);
    }
}

static void delay(const ExecTask *t) {
    kernel_float8_delay(f32(t, FLOAT8_DELAY_HISTORY), f32(t, FLOAT8_DELAY_SCALE),
                        dim(t, FLOAT8_DELAY_PASSES), dim(t, FLOAT8_DELAY_TENSORS),
                        attr(t, FLOAT8_DELAY_LARGEST));
}

/* ---- PyTorch's kernels, one step each ------------------------------------------------------- */

static double passed(const ExecTask *t, double x) {
    double largest = attr(t, FLOAT8_PASS_LARGEST);
    switch ((PlanFloat8Step)dim(t, FLOAT8_PASS_STEP)) {
    case PLAN_FLOAT8_MAGNITUDE:
        return fabs(x);
    case PLAN_FLOAT8_CONVERT:
        return x;
    case PLAN_FLOAT8_AT_LEAST:
        return x < PLAN_FLOAT8_LEAST ? PLAN_FLOAT8_LEAST : x;
    case PLAN_FLOAT8_INVERT:
        return 1 / x;
    case PLAN_FLOAT8_TIMES_LARGEST:
        return x * largest;
    case PLAN_FLOAT8_TIMES_SCALE:
        return x * (double)*f32(t, FLOAT8_PASS_SCALE);
    case PLAN_FLOAT8_BOUND:
        return x > largest ? largest : x < -largest ? -largest : x;
    case PLAN_FLOAT8_INVERSE_SCALE:
        return (double)(1 / kernel_float8_scale(x, largest, false));
    case PLAN_FLOAT8_INVERSE_OF_POWER:
        return (double)(1 / kernel_float8_scale(x, largest, true));
    case PLAN_N_FLOAT8_STEPS:
        break;
    }
    g_assert_not_reached();
}

/* In double and rounded once, which of one step in fp32 is the same. */
static void pass(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, FLOAT8_PASS_N); i++) {
        double y = passed(t, magnitude_at(t, FLOAT8_PASS_X, i));
        if (operand_dtype(t, FLOAT8_PASS_Y) == PLAN_FP64) {
            f64(t, FLOAT8_PASS_Y)[i] = y;
        } else {
            f32(t, FLOAT8_PASS_Y)[i] = (float)y;
        }
    }
}

static void largest(const ExecTask *t) {
    unsigned n = list_length(t);
    for (unsigned i = 0; i < n; i++) {
        *f32(t, n + i) = kernel_magnitude_f32(f32(t, i), operand(t, i).elements);
    }
}

/* ---- copies --------------------------------------------------------------------------------- */

static size_t bytes_of(const ExecTask *t, PlanSlotNumber i) {
    return operand(t, i).elements * plan_dtype_bytes(operand_dtype(t, i));
}

static void copy_in(const ExecTask *t) {
    unsigned n = list_length(t);
    uint8_t *to = bytes(t, n) + axis_rank(t) * dim(t, FLOAT8_COPY_IN_SLICE);
    for (unsigned i = 0; i < n; to += bytes_of(t, i), i++) {
        kernel_copy_bytes(to, bytes(t, i), bytes_of(t, i));
    }
}

static void copy_out(const ExecTask *t) {
    size_t slice = dim(t, FLOAT8_COPY_OUT_SLICE), ranks = dim(t, FLOAT8_COPY_OUT_RANKS), start = 0;
    for (unsigned i = FLOAT8_COPY_OUT_PARAMETER; i < FLOAT8_COPY_OUT_PARAMETER + list_length(t);
         i++) {
        size_t chunk = bytes_of(t, i) / ranks;
        kernel_copy_2d_bytes(bytes(t, i), chunk, bytes(t, FLOAT8_COPY_OUT_GATHERED) + start, slice,
                             ranks, chunk);
        start += chunk;
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Transfer full. */
static float *widened(const ExecTask *t, PlanSlotNumber i, size_t n) {
    float *x = g_new(float, n);
    (operand_dtype(t, i) == PLAN_E4M3 ? kernel_widen_e4m3 : kernel_widen_e5m2)(x, bytes(t, i), n);
    return x;
}

typedef struct {
    size_t m, n, k; /* of y [m, n], a sum of k */
    size_t a_scales, b_scales;
    bool b_by_sum; /* b is [k, n], else [n, k] */
    bool is_scaled;
} Product;

static Product product_of(const ExecTask *t) {
    size_t m = dim(t, FLOAT8_LINEAR_M), n = dim(t, FLOAT8_LINEAR_N), k = dim(t, FLOAT8_LINEAR_K);
    switch (t->op->kind) {
    case PLAN_OP_FLOAT8_LINEAR:
        return (Product){
            m, n, k, dim(t, FLOAT8_LINEAR_X_SCALES), dim(t, FLOAT8_LINEAR_W_SCALES), false, true};
    case PLAN_OP_FLOAT8_LINEAR_BIAS:
        return (Product){m, n, k, 1, 1, false, true};
    case PLAN_OP_FLOAT8_LINEAR_DX:
        return (Product){m,
                         k,
                         n,
                         dim(t, FLOAT8_LINEAR_DX_DY_SCALES),
                         dim(t, FLOAT8_LINEAR_DX_W_SCALES),
                         !dim(t, FLOAT8_LINEAR_DX_TURNED),
                         true};
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return (Product){n,
                         k,
                         m,
                         dim(t, FLOAT8_LINEAR_DW_DY_SCALES),
                         dim(t, FLOAT8_LINEAR_DW_X_SCALES),
                         false,
                         !dim(t, FLOAT8_LINEAR_DW_BEHIND)};
    }
    g_assert_not_reached();
}

/* All products have a factor and its scale, another and its scale, and what they make. */
static void multiply_into(const ExecTask *t, float *y) {
    Product p = product_of(t);
    g_autofree float *a = widened(t, FLOAT8_LINEAR_X8, p.m * p.k),
                     *b = widened(t, FLOAT8_LINEAR_W8, p.n * p.k);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, p.b_by_sum ? KERNEL_NO_TRANSPOSE : KERNEL_TRANSPOSE, p.m,
                    p.n, p.k, 1, a, p.k, b, p.b_by_sum ? p.n : p.k, 0, y, p.n);
    if (p.is_scaled) {
        g_autofree float *by_row = inverses_of(t, FLOAT8_LINEAR_X_SCALE, p.a_scales);
        g_autofree float *by_column = inverses_of(t, FLOAT8_LINEAR_W_SCALE, p.b_scales);
        kernel_scale_rows_columns_f32(y, by_row, p.a_scales, by_column, p.b_scales, p.m, p.n);
    }
}

static void multiply_and_add(const ExecTask *t) {
    size_t m = dim(t, FLOAT8_LINEAR_BIAS_M), n = dim(t, FLOAT8_LINEAR_BIAS_N);
    float *y = f32(t, FLOAT8_LINEAR_BIAS_Y);
    multiply_into(t, y);
    kernel_add_rows_f32(y, y, f32(t, FLOAT8_LINEAR_BIAS_BIAS), m, n);
}

static void unscale(const ExecTask *t) {
    size_t rows = dim(t, FLOAT8_UNSCALE_ROWS), cols = dim(t, FLOAT8_UNSCALE_COLS);
    g_autofree float *row = inverses_of(t, FLOAT8_UNSCALE_ROW, rows),
                     *column = inverses_of(t, FLOAT8_UNSCALE_COLUMN, cols);
    kernel_scale_rows_columns_f32(f32(t, FLOAT8_UNSCALE_X), row, rows, column, cols, rows, cols);
}

/* ---- MXFP8 ---------------------------------------------------------------------------------- */

static void cast_blocks(const ExecTask *t) {
    size_t rows = dim(t, MXFP8_CAST_ROWS), cols = dim(t, MXFP8_CAST_COLS);
    bool by_rows = (PlanFloat8Along)dim(t, MXFP8_CAST_ALONG) == PLAN_FLOAT8_EACH_ROW;
    size_t n = rows * cols;
    const float *x = f32(t, MXFP8_CAST_X);
    g_autofree float *turned = by_rows ? NULL : g_new(float, n);
    if (turned) {
        kernel_exchange_bytes((uint8_t *)turned, (const uint8_t *)x, rows, cols, sizeof *x);
    }
    kernel_mxfp8_cast(bytes(t, MXFP8_CAST_Y8), bytes(t, MXFP8_CAST_EXPONENTS), turned ? turned : x,
                      turned ? cols : rows, turned ? rows : cols);
}

static void multiply_blocks(const ExecTask *t) {
    size_t m = dim(t, MXFP8_PRODUCT_M), n = dim(t, MXFP8_PRODUCT_N), k = dim(t, MXFP8_PRODUCT_K);
    size_t n_a = m * k, n_b = n * k;
    g_autofree float *a = g_new(float, n_a), *b = g_new(float, n_b);
    kernel_mxfp8_widen(a, bytes(t, MXFP8_PRODUCT_X8), bytes(t, MXFP8_PRODUCT_X_EXPONENTS), m, k);
    kernel_mxfp8_widen(b, bytes(t, MXFP8_PRODUCT_W8), bytes(t, MXFP8_PRODUCT_W_EXPONENTS), n, k);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, m, n, k, 1, a, k, b, k, 0,
                    f32(t, MXFP8_PRODUCT_Y), n);
}

/* ---- the switch ----------------------------------------------------------------------------- */

void exec_host_float8(const ExecTask *t) {
    switch ((ExecFloat8Op)t->op->kind) {
    case PLAN_OP_FLOAT8_SCALE:
        scale(t);
        return;
    case PLAN_OP_FLOAT8_CAST:
        cast(t);
        return;
    case PLAN_OP_FLOAT8_CAST_ROWS:
        cast_rows(t);
        return;
    case PLAN_OP_FLOAT8_DELAYED_CAST:
        delayed_cast(t);
        return;
    case PLAN_OP_FLOAT8_DELAY:
        delay(t);
        return;
    case PLAN_OP_FLOAT8_UNSCALE:
        unscale(t);
        return;
    case PLAN_OP_FLOAT8_TURN:
        kernel_exchange_bytes(bytes(t, FLOAT8_TURN_TURNED8), bytes(t, FLOAT8_TURN_X8),
                              dim(t, FLOAT8_TURN_ROWS), dim(t, FLOAT8_TURN_COLS),
                              dim(t, FLOAT8_TURN_INNER));
        return;
    case PLAN_OP_FLOAT8_PASS:
        pass(t);
        return;
    case PLAN_OP_FLOAT8_LARGEST:
        largest(t);
        return;
    case PLAN_OP_FLOAT8_COPY_IN:
        copy_in(t);
        return;
    case PLAN_OP_FLOAT8_COPY_OUT:
        copy_out(t);
        return;
    case PLAN_OP_FLOAT8_LINEAR:
    case PLAN_OP_FLOAT8_LINEAR_DX:
    case PLAN_OP_FLOAT8_LINEAR_DW:
        multiply_into(t, f32(t, FLOAT8_LINEAR_Y));
        return;
    case PLAN_OP_FLOAT8_LINEAR_BIAS:
        multiply_and_add(t);
        return;
    case PLAN_OP_MXFP8_CAST:
        cast_blocks(t);
        return;
    case PLAN_OP_MXFP8_ORDER:
        kernel_mxfp8_order(bytes(t, MXFP8_ORDER_ORDERED), bytes(t, MXFP8_ORDER_EXPONENTS),
                           dim(t, MXFP8_ORDER_ROWS), dim(t, MXFP8_ORDER_COLS));
        return;
    case PLAN_OP_MXFP8_PRODUCT:
        multiply_blocks(t);
        return;
    }
    g_assert_not_reached();
}
