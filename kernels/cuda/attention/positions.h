/* kernels/cuda/attention/positions.h - what a pass makes of nothing but positions and labels:
 * rotary tables, op by op, in fp32, and targets that are one behind their tokens. Bound: memory;
 * small.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* base^(-2 i / dim) for i from 0 to dim / 2; computed in double. */
KernelCudaFault kernel_cuda_rope_frequencies(KernelCuda *lane, float *out, size_t dim, double base);
/* out = position + by; and the same number, rounded to the type. */
KernelCudaFault kernel_cuda_shift_i64(KernelCuda *lane, int64_t *out, const int64_t *position,
                                      size_t n, int64_t by);
KernelCudaFault kernel_cuda_as_number(KernelCuda *lane, void *out, const int64_t *position,
                                      size_t n, KernelCudaType type);
/* out[r, c] = column[r] row[c] */
KernelCudaFault kernel_cuda_outer(KernelCuda *lane, float *out, const float *column,
                                  const float *row, size_t rows, size_t cols);
KernelCudaFault kernel_cuda_cos(KernelCuda *lane, float *out, const float *x, size_t n);
KernelCudaFault kernel_cuda_sin(KernelCuda *lane, float *out, const float *x, size_t n);

/* out[rows, seq + 1]: each row's targets but the last, between two that count for nothing; and
 * out[rows, kept]: rows of one more, without their first or their last. */
KernelCudaFault kernel_cuda_pad_targets(KernelCuda *lane, int64_t *out, const int64_t *target,
                                        size_t rows, size_t seq);
KernelCudaFault kernel_cuda_drop_one(KernelCuda *lane, int64_t *out, const int64_t *x, size_t rows,
                                     size_t kept, bool first);

#ifdef __cplusplus
}
#endif
