/* kernels/host/elementwise.h - one output element from the input elements beside it.
 *
 * All of them: n elements; out may alias any input. Bound: memory, 4 bytes for each array and
 * element, except where exponentials are taken.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

void kernel_fill_f32(float *out, float value, size_t n);
void kernel_zero_f32(float *out, size_t n);
void kernel_copy_f32(float *out, const float *x, size_t n); /* out = x; may alias */
void kernel_arange_i64(int64_t *out, int64_t first, int64_t step, size_t n); /* first + i step */

void kernel_add_f32(float *out, const float *a, const float *b, size_t n); /* a + b */
void kernel_mul_f32(float *out, const float *a, const float *b, size_t n); /* a b */
void kernel_scale_f32(float *out, const float *x, float factor, size_t n); /* factor x */
void kernel_add_scaled_f32(float *out, const float *a, const float *b, float factor,
                           size_t n);                            /* a + factor b */
void kernel_add_inplace_f32(float *x, const float *y, size_t n); /* x += y */

/* out[r, i] = x[r, i] + row[i] for r < rows, i < width: a broadcast add, as of position embeddings
 * over the batch. out may alias x. Its backward for row is kernel_column_sum_f32 (reduce.h). */
void kernel_add_rows_f32(float *out, const float *x, const float *row, size_t rows, size_t width);

/* out[r, i] = x[r, i] row[i], and x[r, i] column[r]: broadcast products. out may alias x. */
void kernel_mul_rows_f32(float *out, const float *x, const float *row, size_t rows, size_t width);
void kernel_mul_columns_f32(float *out, const float *x, const float *column, size_t rows,
                            size_t width);
/* out[r, i] = factor column[r]. */
void kernel_spread_f32(float *out, const float *column, float factor, size_t rows, size_t width);

/* x to the power of exponent: products and roots for 1, 2, 3, 1/2 and -1/2, else pow(). Bound:
 * memory where there is no root. */
void kernel_power_f32(float *out, const float *x, double exponent, size_t n);
