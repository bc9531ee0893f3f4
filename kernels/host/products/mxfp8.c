/* kernels/host/products/mxfp8.c - see mxfp8.h. */
#include "kernels/host/products/mxfp8.h"
#include "kernels/host/vector.h"

#define FLOAT8_INLINE KERNEL_INLINE
#include "kernels/float8-bits.h"

KERNEL(void, kernel_mxfp8_cast)
(uint8_t *numbers, uint8_t *exponents, const float *x, size_t rows, size_t cols) {
    for (size_t block = 0; block < rows * cols / MXFP8_BLOCK; block++) {
        const float *from = x + block * MXFP8_BLOCK;
        uint32_t most = 0;
        for (size_t i = 0; i < MXFP8_BLOCK; i++) {
            uint32_t magnitude = float_bits(from[i]) & 0x7fffffffu;
            most = magnitude > most ? magnitude : most;
        }
        exponents[block] = mxfp8_exponent_of(float_from_bits(most));
        const float factor = mxfp8_inverse_of(exponents[block]);

        KERNEL_LOOP
        for (size_t i = 0; i < MXFP8_BLOCK; i++) {
            numbers[block * MXFP8_BLOCK + i] = to_e4m3(from[i] * factor);
        }
    }
}

KERNEL(void, kernel_mxfp8_order)
(uint8_t *ordered, const uint8_t *exponents, size_t rows, size_t cols) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col++) {
            ordered[mxfp8_place_of(row, col, cols)] = exponents[row * cols + col];
        }
    }
}

KERNEL(void, kernel_mxfp8_widen)
(float *x, const uint8_t *numbers, const uint8_t *ordered, size_t rows, size_t cols) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols / MXFP8_BLOCK; col++) {
            const float factor =
                mxfp8_power_of(ordered[mxfp8_place_of(row, col, cols / MXFP8_BLOCK)]);
            size_t first = row * cols + col * MXFP8_BLOCK;

            KERNEL_LOOP
            for (size_t i = first; i < first + MXFP8_BLOCK; i++) {
                x[i] = from_e4m3(numbers[i]) * factor;
            }
        }
    }
}
