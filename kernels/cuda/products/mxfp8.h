/* kernels/cuda/products/mxfp8.h - matrices in MXFP8: casts, and their exponents as products read
 * them. The same bytes as kernels/host/products/mxfp8.h, whose words these are.
 *
 * Bound: memory, what is read once, and what is written.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x [rows, cols] to numbers and exponents: of 32 numbers of a row [rows, cols] and [rows, cols/32],
 * of 32 of a column, where both are turned, [cols, rows] and [cols, rows/32]. */
KernelCudaFault kernel_cuda_mxfp8_cast(KernelCuda *lane, uint8_t *numbers, uint8_t *exponents,
                                       const void *x, size_t rows, size_t cols, bool turned,
                                       KernelCudaType type);
/* Exponents [rows, cols] as products want them. 128 divides rows, 4 cols. */
KernelCudaFault kernel_cuda_mxfp8_order(KernelCuda *lane, uint8_t *ordered,
                                        const uint8_t *exponents, size_t rows, size_t cols);

#ifdef __cplusplus
}
#endif
