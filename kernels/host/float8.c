/* kernels/host/float8.c - see float8.h. */
#include "kernels/host/float8.h"
#include "kernels/host/vector.h"

/* ---- conversions ---------------------------------------------------------------------------- */

/* Shifted into place, an e4m3 is a float whose exponent is 120 too small, denormals included. */
KERNEL_INLINE float from_e4m3(uint8_t x) {
    uint32_t magnitude = x & 0x7fu;
    uint32_t bits = float_bits(float_from_bits(magnitude << 20) * 0x1p120f);

    bits = magnitude == 0x7fu ? 0x7fc00000u : bits;
    return float_from_bits(bits | (uint32_t)(x & 0x80u) << 24);
}

/* Likewise 112 too small; the largest exponent means infinity or NaN in both. */
KERNEL_INLINE float from_e5m2(uint8_t x) {
    uint32_t magnitude = x & 0x7fu;
    uint32_t bits = float_bits(float_from_bits(magnitude << 21) * 0x1p112f);

    bits |= magnitude >= 0x7cu ? 0x7f800000u : 0u;
    return float_from_bits(bits | (uint32_t)(x & 0x80u) << 24);
}

/* Adding just under half of the last kept bit, and that bit itself, carries exactly when rounding
 * to even goes up. Below the least normal number (2^-6) results are multiples of 2^-9, the last bit
 * of floats in [2^14, 2^15): adding 2^14 lets the processor round. */
KERNEL_INLINE uint8_t to_e4m3(float x) {
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t bounded = magnitude > 0x43e00000u ? 0x43e00000u : magnitude; /* 448 */
    uint32_t normal = (bounded - (120u << 23) + 0x7ffffu + (bounded >> 20 & 1u)) >> 20;
    uint32_t small = float_bits(float_from_bits(bounded) + 0x1p14f) - float_bits(0x1p14f);
    uint32_t rounded = bounded < 0x3c800000u ? small : normal;

    rounded = magnitude > 0x7f800000u ? 0x7fu : rounded;
    return (uint8_t)(rounded | (bits >> 24 & 0x80u));
}

/* The same; below 2^-14 multiples of 2^-16, the last bit of floats in [2^7, 2^8). */
KERNEL_INLINE uint8_t to_e5m2(float x) {
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t bounded = magnitude > 0x47600000u ? 0x47600000u : magnitude; /* 57344 */
    uint32_t normal = (bounded - (112u << 23) + 0xfffffu + (bounded >> 21 & 1u)) >> 21;
    uint32_t small = float_bits(float_from_bits(bounded) + 0x1p7f) - float_bits(0x1p7f);
    uint32_t rounded = bounded < 0x38800000u ? small : normal;

    rounded = magnitude > 0x7f800000u ? 0x7fu : rounded;
    return (uint8_t)(rounded | (bits >> 24 & 0x80u));
}

#define FLOAT8_KERNELS(type)                                                                       \
    KERNEL(void, kernel_widen_##type)(float *out, const uint8_t *x, size_t n) {                    \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            out[i] = from_##type(x[i]);                                                            \
        }                                                                                          \
    }                                                                                              \
    KERNEL(void, kernel_narrow_##type)(uint8_t * out, const float *x, size_t n) {                  \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            out[i] = to_##type(x[i]);                                                              \
        }                                                                                          \
    }

FLOAT8_KERNELS(e4m3)
FLOAT8_KERNELS(e5m2)

/* ---- largest magnitudes --------------------------------------------------------------------- */

/* As bits magnitudes are in the order of numbers, NaN last. */
KERNEL_INLINE uint32_t magnitude_of(float x) {
    return float_bits(x) & 0x7fffffffu;
}

KERNEL_INLINE uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

KERNEL_INLINE float largest_of(const float *x, size_t n) {
    uint32_t largest = 0;

    KERNEL_PRAGMA(omp simd reduction(max : largest))
    for (size_t i = 0; i < n; i++) {
        largest = larger(largest, magnitude_of(x[i]));
    }
    return float_from_bits(largest);
}

KERNEL(float, kernel_magnitude_f32)(const float *x, size_t n) {
    return largest_of(x, n);
}

KERNEL(void, kernel_magnitude_rows_f32)(float *out, const float *x, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        out[i] = largest_of(x + i * cols, cols);
    }
}

KERNEL(void, kernel_magnitude_columns_f32)(float *out, const float *x, size_t rows, size_t cols) {
    memset(out, 0, cols * sizeof *out);
    for (size_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;

        KERNEL_LOOP
        for (size_t j = 0; j < cols; j++) {
            out[j] = float_from_bits(larger(float_bits(out[j]), magnitude_of(row[j])));
        }
    }
}

/* ---- scales --------------------------------------------------------------------------------- */

/* Of a number that is finite and normal, as these are, the exponent's bits are such a power. */
KERNEL(float, kernel_float8_scale)(double magnitude, double largest, bool to_power) {
    float scale = (float)(largest / (magnitude < 1e-12 ? 1e-12 : magnitude));

    return to_power ? float_from_bits(float_bits(scale) & 0x7f800000u) : scale;
}

KERNEL(void, kernel_scale_rows_columns_f32)
(float *x, const float *row, size_t n_row, const float *column, size_t n_column, size_t rows,
 size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        float of_row = row[n_row > 1 ? i : 0];

        KERNEL_LOOP
        for (size_t j = 0; j < cols; j++) {
            x[i * cols + j] *= of_row * column[n_column > 1 ? j : 0];
        }
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

enum {
    TILE = 64 /* rows and columns that stay in the cache */
};

KERNEL_INLINE size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

KERNEL(void, kernel_exchange_bytes)
(uint8_t *out, const uint8_t *x, size_t rows, size_t cols, size_t inner) {
    for (size_t i0 = 0; i0 < rows; i0 += TILE) {
        for (size_t j = 0; j < cols; j++) {
            for (size_t i = i0; i < least(rows, i0 + TILE); i++) {
                if (inner == 1) {
                    out[j * rows + i] = x[i * cols + j];
                } else {
                    memcpy(out + (j * rows + i) * inner, x + (i * cols + j) * inner, inner);
                }
            }
        }
    }
}
