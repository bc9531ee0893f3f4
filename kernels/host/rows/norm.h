/* kernels/host/rows/norm.h - layer norm and RMS norm over the last dimension.
 *
 * Rows are reduced in double. Bound: memory; forward reads a row twice (the second time from cache)
 * and writes it once, backward reads x and dy and writes dx.
 */
#pragma once
#include <stddef.h>

/* y = (x - mean) rstd weight + bias for each row of x[rows, width]; also writes mean[rows] and
 * rstd[rows] = 1 / sqrt(variance + eps). weight, bias: [width], each may be NULL (1 and 0). */
void kernel_layernorm_forward_f32(float *y, float *mean, float *rstd, const float *x,
                                  const float *weight, const float *bias, size_t rows, size_t width,
                                  float eps);

/* Writes dx[rows, width], dweight[width] and dbias[width]; each may be NULL to leave it out. */
void kernel_layernorm_backward_f32(float *dx, float *dweight, float *dbias, const float *dy,
                                   const float *x, const float *mean, const float *rstd,
                                   const float *weight, size_t rows, size_t width);

/* y = x rstd weight, with rstd[rows] = 1 / sqrt(mean of x^2 + eps). weight may be NULL (1). */
void kernel_rmsnorm_forward_f32(float *y, float *rstd, const float *x, const float *weight,
                                size_t rows, size_t width, float eps);

/* Writes dx[rows, width] and dweight[width]; each may be NULL to leave it out. */
void kernel_rmsnorm_backward_f32(float *dx, float *dweight, const float *dy, const float *x,
                                 const float *rstd, const float *weight, size_t rows, size_t width);
