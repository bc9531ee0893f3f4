/* kernels/host/products/mxfp8.h - matrices in MXFP8: numbers in e4m3, and for each 32 of a row the
 * power of two by which they are multiplied, as its exponent + 127 (E8M0; 255 is NaN).
 *
 * That power is the least by which the largest of the 32 divided is no larger than e4m3's largest
 * number (torchao's RCEIL; cuBLAS's conversion factors).
 * Bound: memory.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* x [rows, cols] to numbers [rows, cols] and exponents [rows, cols/32]; 32 divides cols. */
void kernel_mxfp8_cast(uint8_t *numbers, uint8_t *exponents, const float *x, size_t rows,
                       size_t cols);
/* Exponents [rows, cols] as products want them: tiles of 128 rows and 4 columns one behind the
 * other, in each rows 0, 32, 64 and 96 side by side, then rows 1, 33 and so on. 128 divides rows,
 * 4 cols. */
void kernel_mxfp8_order(uint8_t *ordered, const uint8_t *exponents, size_t rows, size_t cols);
/* What they stand for: x [rows, cols] of numbers and the exponents in that order. */
void kernel_mxfp8_widen(float *x, const uint8_t *numbers, const uint8_t *ordered, size_t rows,
                        size_t cols);
