/* kernels/float8-bits.h - e4m3 and e5m2 as bits, a scale of a magnitude, and the powers of two of
 * MXFP8, for the host and for CUDA. Whoever includes it defines before: FLOAT8_INLINE how a
 * function is declared, and float_bits(x), float_from_bits(bits).
 *
 * Narrowing rounds to nearest, ties to even, and gives the largest number for what is larger.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shifted into place, an e4m3 is a float whose exponent is 120 too small, denormals included. */
FLOAT8_INLINE float from_e4m3(uint8_t x) {
    uint32_t magnitude = x & 0x7fu;
    uint32_t bits = float_bits(float_from_bits(magnitude << 20) * 0x1p120f);

    bits = magnitude == 0x7fu ? 0x7fc00000u : bits;
    return float_from_bits(bits | (uint32_t)(x & 0x80u) << 24);
}

/* Likewise 112 too small; the largest exponent means infinity or NaN in both. */
FLOAT8_INLINE float from_e5m2(uint8_t x) {
    uint32_t magnitude = x & 0x7fu;
    uint32_t bits = float_bits(float_from_bits(magnitude << 21) * 0x1p112f);

    bits |= magnitude >= 0x7cu ? 0x7f800000u : 0u;
    return float_from_bits(bits | (uint32_t)(x & 0x80u) << 24);
}

/* Adding just under half of the last kept bit, and that bit itself, carries exactly when rounding
 * to even goes up. Below the least normal number (2^-6) results are multiples of 2^-9, the last bit
 * of floats in [2^14, 2^15): adding 2^14 lets the processor round. */
FLOAT8_INLINE uint8_t to_e4m3(float x) {
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t bounded = magnitude > 0x43e00000u ? 0x43e00000u : magnitude; /* 448 */
    uint32_t normal = (bounded - (120u << 23) + 0x7ffffu + (bounded >> 20 & 1u)) >> 20;
    uint32_t small = float_bits(float_from_bits(bounded) + 0x1p14f) - float_bits(0x1p14f);
    uint32_t rounded = bounded < 0x3c800000u ? small : normal;

    rounded = magnitude > 0x7f800000u ? 0x7fu : rounded;
    return (uint8_t)(rounded | (bits >> 24 & 0x80u));
}

/* The same; below 2^-14 multiples of 2^-16, the last bit of floats in [2^7, 2^8). */
FLOAT8_INLINE uint8_t to_e5m2(float x) {
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t bounded = magnitude > 0x47600000u ? 0x47600000u : magnitude; /* 57344 */
    uint32_t normal = (bounded - (112u << 23) + 0xfffffu + (bounded >> 21 & 1u)) >> 21;
    uint32_t small = float_bits(float_from_bits(bounded) + 0x1p7f) - float_bits(0x1p7f);
    uint32_t rounded = bounded < 0x38800000u ? small : normal;

    rounded = magnitude > 0x7f800000u ? 0x7fu : rounded;
    return (uint8_t)(rounded | (bits >> 24 & 0x80u));
}

/* What numbers of which `magnitude` is the largest are multiplied by, so that it becomes `largest`;
 * of a number that is finite and normal the exponent's bits are a power of two; NaN stays NaN. */
FLOAT8_INLINE float float8_scale_of(double magnitude, double largest, bool to_power) {
    float scale = (float)(largest / (magnitude < 1e-12 ? 1e-12 : magnitude));

    return to_power && scale == scale ? float_from_bits(float_bits(scale) & 0x7f800000u) : scale;
}

/* A tensor's largest magnitudes in so many passes, the newest first and the oldest behind it, each
 * `stride` numbers from the next: its scale, which products multiply by, becomes that of the
 * largest of all, if it is above 0 and a number, and the newest goes last, to make room for the
 * next. */
FLOAT8_INLINE void float8_delay(float *history, float *scale, size_t passes, size_t stride,
                                double largest) {
    uint32_t most = float_bits(*history);
    const float newest = *history;
    for (size_t i = 1; i < passes; i++) {
        float next = history[i * stride];
        most = float_bits(next) > most ? float_bits(next) : most;
        history[(i - 1) * stride] = next;
    }
    history[(passes - 1) * stride] = newest;
    *history = 0;
    if (most > 0 && most < 0x7f800000u) {
        *scale = 1 / float8_scale_of((double)float_from_bits(most), largest, true);
    }
}

/* ---- MXFP8 ---------------------------------------------------------------------------------- */

enum {
    MXFP8_BLOCK = 32, /* numbers that share an exponent */
    MXFP8_TILE_ROWS = 128,
    MXFP8_TILE_COLS = 4
};

/* Of a block whose largest magnitude is that: the exponent of the least power of two that is no
 * smaller than 1/448 of it. 448 is e4m3's largest number. */
FLOAT8_INLINE uint8_t mxfp8_exponent_of(float magnitude) {
    uint32_t bits = float_bits(magnitude / 448.0F), exponent = bits >> 23, rest = bits & 0x7fffffu;
    if (exponent == 0xffu) {
        return rest ? 0xffu : 0xfeu;
    }
    uint32_t up = exponent ? rest > 0 : rest > 0x400000u; /* 2^-127 is 0x400000 */
    return (uint8_t)(exponent + up > 0xfeu ? 0xfeu : exponent + up);
}

FLOAT8_INLINE float mxfp8_power_of(uint8_t exponent) {
    uint32_t bits = exponent == 0xffu ? 0x7fc00000u : (uint32_t)exponent << 23;
    return float_from_bits(exponent ? bits : 0x400000u);
}

/* torchao (_to_mx_rceil): nothing of a block whose exponent is 0 is left in e4m3 anyhow. */
FLOAT8_INLINE float mxfp8_inverse_of(uint8_t exponent) {
    return exponent ? 1 / mxfp8_power_of(exponent) : 1;
}

/* Where products look for a row's exponent, of `cols` a row. */
FLOAT8_INLINE size_t mxfp8_place_of(size_t row, size_t col, size_t cols) {
    size_t tile = row / MXFP8_TILE_ROWS * (cols / MXFP8_TILE_COLS) + col / MXFP8_TILE_COLS;
    size_t within = row % MXFP8_TILE_ROWS;
    size_t place = (within % 32 * 4 + within / 32) * MXFP8_TILE_COLS + col % MXFP8_TILE_COLS;
    return tile * MXFP8_TILE_ROWS * MXFP8_TILE_COLS + place;
}
