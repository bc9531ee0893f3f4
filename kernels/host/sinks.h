/* kernels/host/sinks.h - what gpt-oss adds to attention and to its experts' gate: a sink behind
 * each row of scores, and numbers held within limits.
 *
 * Bound: memory.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* y[b, h, r, :cols] = x[b, h, r, :], and behind these, y[b, h, r, cols] = sink[h]. */
void kernel_join_sinks_f32(float *y, const float *x, const float *sink, size_t batch, size_t heads,
                           size_t rows, size_t cols);
/* y[h] = the sum of x[b, h, r, cols] over b and r, x[batch, heads, rows, cols + 1]. */
void kernel_sum_sinks_f32(float *y, const float *x, size_t batch, size_t heads, size_t rows,
                          size_t cols);

/* Of x[rows, width], from number `from` of each row on, `cols` numbers: y is each of them, but
 * least for a lesser one and most for a greater; mask is 1 where sign * x <= limit, else 0. What
 * is not a number stays none, and is within no limit. */
void kernel_clamp_columns_f32(float *y, const float *x, size_t rows, size_t cols, size_t width,
                              size_t from, float least, float most);
void kernel_limit_mask_f32(uint8_t *mask, const float *x, size_t rows, size_t cols, size_t width,
                           size_t from, float sign, float limit);
/* y = x where the mask is set, and zero elsewhere. */
void kernel_where_mask_f32(float *y, const uint8_t *mask, const float *x, float zero, size_t n);
