/* kernels/cuda/products/four-bit.h - numbers in 4 bits, and their magnitudes in 8.
 *
 * The same bytes and numbers as kernels/host/products/four-bit.h, bit by bit.
 * Bound: memory, what is read once, and what is written.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/four-bit-codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* packed [(n + 1) / 2], absmax [(n + 63) / 64], of w [n]; and back. */
KernelCudaFault kernel_cuda_quantize_4bit(KernelCuda *lane, uint8_t *packed, float *absmax,
                                          const void *w, size_t n, KernelFourBitCode code,
                                          KernelCudaType type);
KernelCudaFault kernel_cuda_dequantize_4bit(KernelCuda *lane, void *w, const uint8_t *packed,
                                            const float *absmax, size_t n, KernelFourBitCode code,
                                            KernelCudaType type);
/* The host's map of 256 values (kernel_byte_map()), to the device. */
KernelCudaFault kernel_cuda_put_byte_map(KernelCuda *lane, float *map, const float *of_host);
/* bytes [n], absmax [(n + 255) / 256], of x [n]; and back. */
KernelCudaFault kernel_cuda_quantize_bytes(KernelCuda *lane, uint8_t *bytes, float *absmax,
                                           const float *x, const float *map, size_t n);
KernelCudaFault kernel_cuda_dequantize_bytes(KernelCuda *lane, float *x, const uint8_t *bytes,
                                             const float *absmax, const float *map, size_t n);

#ifdef __cplusplus
}
#endif
