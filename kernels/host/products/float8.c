/* kernels/host/products/float8.c - see float8.h. */
#include "kernels/host/products/float8.h"
#include "kernels/host/vector.h"

#define FLOAT8_INLINE KERNEL_INLINE
#include "kernels/float8-bits.h"

/* ---- conversions ---------------------------------------------------------------------------- */

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

KERNEL(float, kernel_float8_scale)(double magnitude, double largest, bool to_power) {
    return float8_scale_of(magnitude, largest, to_power);
}

KERNEL(void, kernel_float8_delay)
(float *history, float *scale, size_t passes, size_t tensors, double largest) {
    for (size_t i = 0; i < tensors; i++) {
        float8_delay(history + i, scale + i, passes, tensors, largest);
    }
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
