/* kernels/host/products/four-bit.h - numbers in 4 bits, as bitsandbytes has them (0.50).
 *
 * Each is the place of one of 16 values, times the largest magnitude of 64 neighbours; and in 8
 * bits, of one of 256, times that of 256 neighbours.
 *
 * A number is given the place of the value nearest to it; of two that are as near nf4 has the lower
 * one, fp4 that which is nearer to 0.
 * Two places lie in a byte, the first in its upper half; of an odd n the last byte's lower half is
 * the place of 0. A last block may be shorter. A block of zeros is zeros.
 * Bound: memory.
 */
#pragma once
#include "kernels/four-bit-codes.h"
#include <stddef.h>

/* packed [(n + 1) / 2], absmax [(n + 63) / 64], of w [n]; and back. */
void kernel_quantize_4bit(uint8_t *packed, float *absmax, const float *w, size_t n,
                          KernelFourBitCode code);
void kernel_dequantize_4bit(float *w, const uint8_t *packed, const float *absmax, size_t n,
                            KernelFourBitCode code);

/* The 256 values from -1 to 1, in order: of seven decades the means of 1, 2, 4, ... 64 even parts
 * of each, both signs, 0 and 1 (Dettmers et al. 2021, "dynamic tree quantization"). */
void kernel_byte_map(float *map);
/* Likewise; first: 1, or 2 for values from 0 to 1, without signs, of twice as many parts. */
void kernel_state_map(float *map, unsigned first);
/* bytes [n], absmax [(n + 255) / 256], of x [n]; and back. */
void kernel_quantize_bytes(uint8_t *bytes, float *absmax, const float *x, const float *map,
                           size_t n);
void kernel_dequantize_bytes(float *x, const uint8_t *bytes, const float *absmax, const float *map,
                             size_t n);
