/* kernels/host/reduce.h - many elements to one, added in double.
 *
 * The order of addition is fixed for one build on one machine, so a result is repeatable. Scalars
 * that are tensors in a training step (a loss, a norm, a coefficient) are arrays of one element
 * here. Bound: memory, 4 bytes an element.
 */
#pragma once
#include <stddef.h>

void kernel_mean_forward_f32(float *out, const float *x, size_t n);    /* out[0] = sum / n */
void kernel_mean_backward_f32(float *dx, const float *dout, size_t n); /* dx[i] = dout[0] / n */
/* out[j] = sum over r of x[r, j] */
void kernel_column_sum_f32(float *out, const float *x, size_t rows, size_t cols);
/* out[r] = factor times the sum over j of x[r, j] */
void kernel_row_sum_f32(float *out, const float *x, float factor, size_t rows, size_t cols);
void kernel_norm_f32(float *out, const float *x, size_t n); /* out[0] = 2-norm of x */
