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
#include "kernels/host/float8.h"
#include "kernels/host/matmul.h"
#include "plan/op/float8.h"

static double *f64(const ExecTask *t, unsigned i) {
    return t->pointers[i];
}

/* ---- scales --------------------------------------------------------------------------------- */

static double magnitude_at(const ExecTask *t, unsigned i, size_t at) {
    return operand_dtype(t, i) == PLAN_FP64 ? f64(t, i)[at] : (double)f32(t, i)[at];
}

/* What casts multiply by. */
static float scale_at(const ExecTask *t, unsigned i, size_t at, PlanDtype to, bool to_power) {
    return operand_dtype(t, i) == PLAN_FP32
               ? 1 / f32(t, i)[at]
               : kernel_float8_scale(magnitude_at(t, i, at), plan_float8_largest(to), to_power);
}

/* What products multiply by; those of rows and columns are powers of two. Transfer full. */
static float *inverses_of(const ExecTask *t, unsigned i, size_t n) {
    float *inverses = g_new(float, n);
    for (size_t at = 0; at < n; at++) {
        inverses[at] = operand_dtype(t, i) == PLAN_FP32 ? f32(t, i)[at]
                                                        : 1 / scale_at(t, i, at, PLAN_E4M3, true);
    }
    return inverses;
}

/* Stores what was found of largest magnitudes. */
static void put_scales(const ExecTask *t, unsigned i, const float *magnitudes, size_t n,
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
    size_t rows = dim(t, 0), cols = dim(t, 1);
    float *x = g_new(float, rows *cols);
    switch ((PlanFloat8Made)dim(t, 4)) {
    case PLAN_FLOAT8_AS_THEY_ARE:
        kernel_copy_f32(x, f32(t, 0), rows * cols);
        break;
    case PLAN_FLOAT8_BY_NORM:
        kernel_copy_f32(x, f32(t, 0), rows * cols);
        kernel_scale_rows_columns_f32(x, f32(t, 3), rows, f32(t, 2), cols, rows, cols);
        break;
    case PLAN_FLOAT8_BY_SWIGLU:
        kernel_silu_forward_f32(x, f32(t, 0), rows * cols);
        kernel_mul_f32(x, x, f32(t, 1), rows * cols);
        break;
    case PLAN_N_FLOAT8_MADE:
        g_assert_not_reached();
    }
    return x;
}

static void scale(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1), scales = dim(t, 2);
    PlanFloat8Along along = (PlanFloat8Along)dim(t, 3);
    g_autofree float *x = numbers_of(t), *magnitudes = g_new(float, scales);
    if (along == PLAN_FLOAT8_EACH_ROW) {
        kernel_magnitude_rows_f32(magnitudes, x, rows, cols);
    } else if (along == PLAN_FLOAT8_EACH_COLUMN) {
        kernel_magnitude_columns_f32(magnitudes, x, rows, cols);
    } else {
        *magnitudes = kernel_magnitude_f32(x, rows * cols);
    }
    put_scales(t, 4, magnitudes, scales, attr(t, 0), along != PLAN_FLOAT8_WHOLE);
}

static void narrow(uint8_t *to, PlanDtype dtype, const float *x, size_t n) {
    (dtype == PLAN_E4M3 ? kernel_narrow_e4m3 : kernel_narrow_e5m2)(to, x, n);
}

static void cast(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1), scales = dim(t, 2);
    PlanFloat8Along along = (PlanFloat8Along)dim(t, 3);
    bool wants_turned = t->pointers[6];
    PlanDtype to = operand_dtype(t, wants_turned ? 6 : 5);
    g_autofree float *x = numbers_of(t), *factors = g_new(float, scales);
    g_autofree uint8_t *unwanted = t->pointers[5] ? NULL : g_new(uint8_t, rows * cols);
    uint8_t *as_is = unwanted ? unwanted : bytes(t, 5);
    const float one = 1;
    for (size_t i = 0; i < scales; i++) {
        factors[i] = along == PLAN_FLOAT8_SCALED_ALREADY
                         ? 1
                         : scale_at(t, 4, i, to, along != PLAN_FLOAT8_WHOLE);
    }
    if (along == PLAN_FLOAT8_EACH_COLUMN) {
        kernel_scale_rows_columns_f32(x, &one, 1, factors, scales, rows, cols);
    } else {
        kernel_scale_rows_columns_f32(x, factors, scales, &one, 1, rows, cols);
    }
    narrow(as_is, to, x, rows * cols);
    if (wants_turned) {
        kernel_exchange_bytes(bytes(t, 6), as_is, rows, cols, 1);
    }
}

static void cast_rows(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    g_autofree float *magnitudes = g_new(float, rows), *x = g_new(float, rows *cols);
    const float one = 1;
    kernel_magnitude_rows_f32(magnitudes, f32(t, 0), rows, cols);
    put_scales(t, 2, magnitudes, rows, plan_float8_largest(operand_dtype(t, 1)), true);
    kernel_copy_f32(x, f32(t, 0), rows * cols);
    for (size_t i = 0; i < rows; i++) {
        magnitudes[i] = 1 / f32(t, 2)[i];
    }
    kernel_scale_rows_columns_f32(x, magnitudes, rows, &one, 1, rows, cols);
    narrow(bytes(t, 1), operand_dtype(t, 1), x, rows * cols);
}

/* ---- PyTorch's kernels, one step each ------------------------------------------------------- */

static double passed(const ExecTask *t, double x) {
    double largest = attr(t, 0);
    switch ((PlanFloat8Step)dim(t, 1)) {
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
        return x * (double)*f32(t, 1);
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
    for (size_t i = 0; i < dim(t, 0); i++) {
        double y = passed(t, magnitude_at(t, 0, i));
        if (operand_dtype(t, 2) == PLAN_FP64) {
            f64(t, 2)[i] = y;
        } else {
            f32(t, 2)[i] = (float)y;
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

static size_t bytes_of(const ExecTask *t, unsigned i) {
    return operand(t, i).elements * plan_dtype_bytes(operand_dtype(t, i));
}

static void copy_in(const ExecTask *t) {
    unsigned n = list_length(t);
    uint8_t *to = bytes(t, n) + axis_rank(t) * dim(t, 0);
    for (unsigned i = 0; i < n; to += bytes_of(t, i), i++) {
        kernel_copy_bytes(to, bytes(t, i), bytes_of(t, i));
    }
}

static void copy_out(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        size_t chunk = bytes_of(t, i) / ranks;
        kernel_copy_2d_bytes(bytes(t, i), chunk, bytes(t, 0) + start, slice, ranks, chunk);
        start += chunk;
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Transfer full. */
static float *widened(const ExecTask *t, unsigned i, size_t n) {
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
    size_t m = dim(t, 0), n = dim(t, 1), k = dim(t, 2);
    switch (t->op->kind) {
    case PLAN_OP_FLOAT8_LINEAR:
        return (Product){m, n, k, dim(t, 3), dim(t, 4), false, true};
    case PLAN_OP_FLOAT8_LINEAR_DX:
        return (Product){m, k, n, dim(t, 4), dim(t, 5), !dim(t, 6), true};
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return (Product){n, k, m, dim(t, 3), dim(t, 4), false, !dim(t, 5)};
    }
    g_assert_not_reached();
}

static void multiply(const ExecTask *t) {
    Product p = product_of(t);
    g_autofree float *a = widened(t, 0, p.m * p.k), *b = widened(t, 2, p.n * p.k);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, p.b_by_sum ? KERNEL_NO_TRANSPOSE : KERNEL_TRANSPOSE, p.m,
                    p.n, p.k, 1, a, p.k, b, p.b_by_sum ? p.n : p.k, 0, f32(t, 4), p.n);
    if (p.is_scaled) {
        g_autofree float *by_row = inverses_of(t, 1, p.a_scales);
        g_autofree float *by_column = inverses_of(t, 3, p.b_scales);
        kernel_scale_rows_columns_f32(f32(t, 4), by_row, p.a_scales, by_column, p.b_scales, p.m,
                                      p.n);
    }
}

static void unscale(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    g_autofree float *row = inverses_of(t, 0, rows), *column = inverses_of(t, 1, cols);
    kernel_scale_rows_columns_f32(f32(t, 2), row, rows, column, cols, rows, cols);
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
    case PLAN_OP_FLOAT8_UNSCALE:
        unscale(t);
        return;
    case PLAN_OP_FLOAT8_TURN:
        kernel_exchange_bytes(bytes(t, 1), bytes(t, 0), dim(t, 0), dim(t, 1), dim(t, 2));
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
        multiply(t);
        return;
    }
    g_assert_not_reached();
}
