/* kernels/host/half.h - numbers stored in 16 bits: bf16 and fp16.
 *
 * Arithmetic is done in float; these kernels lie at its borders. Widening is exact. Narrowing
 * rounds to nearest, ties to even, so it errs by at most 2^-8 (bf16) or 2^-11 (fp16) of a number in
 * the normal range, and what is too large becomes infinite. NaN stays NaN. Sums and products of
 * stored numbers are formed in float and rounded once.
 * Bound: memory, 6 bytes an element to convert, 6 to add, 4 to scale.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

void kernel_widen_bf16(float *out, const uint16_t *x, size_t n);
void kernel_widen_f16(float *out, const uint16_t *x, size_t n);
void kernel_narrow_bf16(uint16_t *out, const float *x, size_t n);
void kernel_narrow_f16(uint16_t *out, const float *x, size_t n);

void kernel_add_inplace_bf16(uint16_t *x, const uint16_t *y, size_t n); /* x += y */
void kernel_add_inplace_f16(uint16_t *x, const uint16_t *y, size_t n);

void kernel_scale_inplace_bf16(uint16_t *x, float factor, size_t n); /* x *= factor */
void kernel_scale_inplace_f16(uint16_t *x, float factor, size_t n);
