/* kernels/host/products/mxfp8.c - see mxfp8.h. */
#include "kernels/host/products/mxfp8.h"
#include "kernels/host/vector.h"

#define FLOAT8_INLINE KERNEL_INLINE
#include "kernels/float8-bits.h"

enum {
    BLOCK = 32,
    TILE_ROWS = 128,
    TILE_COLS = 4
};

#define LARGEST 448.0F /* of e4m3 */

/* The exponent of a power of two that is no smaller than x. */
KERNEL_INLINE uint8_t exponent_above(float x) {
    uint32_t bits = float_bits(x), exponent = bits >> 23, rest = bits & 0x7fffffu;
    if (exponent == 0xffu) {
        return rest ? 0xffu : 0xfeu;
    }
    uint32_t up = exponent ? rest > 0 : rest > 0x400000u; /* 2^-127 is 0x400000 */
    return (uint8_t)(exponent + up > 0xfeu ? 0xfeu : exponent + up);
}

KERNEL_INLINE float power_of(uint8_t exponent) {
    uint32_t bits = exponent == 0xffu ? 0x7fc00000u : (uint32_t)exponent << 23;
    return float_from_bits(exponent ? bits : 0x400000u);
}

/* torchao (_to_mx_rceil): nothing of a block whose exponent is 0 is left in e4m3 anyhow. */
KERNEL_INLINE float inverse_of(uint8_t exponent) {
    return exponent ? 1 / power_of(exponent) : 1;
}

KERNEL(void, kernel_mxfp8_cast)
(uint8_t *numbers, uint8_t *exponents, const float *x, size_t rows, size_t cols) {
    for (size_t block = 0; block < rows * cols / BLOCK; block++) {
        const float *from = x + block * BLOCK;
        uint32_t most = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            uint32_t magnitude = float_bits(from[i]) & 0x7fffffffu;
            most = magnitude > most ? magnitude : most;
        }
        exponents[block] = exponent_above(float_from_bits(most) / LARGEST);
        const float factor = inverse_of(exponents[block]);

        KERNEL_LOOP
        for (size_t i = 0; i < BLOCK; i++) {
            numbers[block * BLOCK + i] = to_e4m3(from[i] * factor);
        }
    }
}

KERNEL_INLINE size_t place_of(size_t row, size_t col, size_t cols) {
    size_t tile = row / TILE_ROWS * (cols / TILE_COLS) + col / TILE_COLS, within = row % TILE_ROWS;
    size_t place = (within % 32 * 4 + within / 32) * TILE_COLS + col % TILE_COLS;
    return tile * TILE_ROWS * TILE_COLS + place;
}

KERNEL(void, kernel_mxfp8_order)
(uint8_t *ordered, const uint8_t *exponents, size_t rows, size_t cols) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col++) {
            ordered[place_of(row, col, cols)] = exponents[row * cols + col];
        }
    }
}

KERNEL(void, kernel_mxfp8_widen)
(float *x, const uint8_t *numbers, const uint8_t *ordered, size_t rows, size_t cols) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols / BLOCK; col++) {
            const float factor = power_of(ordered[place_of(row, col, cols / BLOCK)]);
            size_t first = row * cols + col * BLOCK;

            KERNEL_LOOP
            for (size_t i = first; i < first + BLOCK; i++) {
                x[i] = from_e4m3(numbers[i]) * factor;
            }
        }
    }
}
