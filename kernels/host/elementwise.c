/* kernels/host/elementwise.c - see elementwise.h. */
#include "kernels/host/elementwise.h"
#include "kernels/host/vector.h"
#include <math.h>

KERNEL(void, kernel_fill_f32)(float *out, float value, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

KERNEL(void, kernel_zero_f32)(float *out, size_t n) {
    if (n > 0) {
        memset(out, 0, n * sizeof *out);
    }
}

KERNEL(void, kernel_copy_f32)(float *out, const float *x, size_t n) {
    if (n > 0) {
        memmove(out, x, n * sizeof *out);
    }
}

KERNEL(void, kernel_arange_i64)(int64_t *out, int64_t first, int64_t step, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = first + (int64_t)i * step;
    }
}

KERNEL(void, kernel_add_f32)(float *out, const float *a, const float *b, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

KERNEL(void, kernel_mul_f32)(float *out, const float *a, const float *b, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] * b[i];
    }
}

KERNEL(void, kernel_scale_f32)(float *out, const float *x, float factor, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = factor * x[i];
    }
}

KERNEL(void, kernel_add_scaled_f32)
(float *out, const float *a, const float *b, float factor, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] + factor * b[i];
    }
}

KERNEL(void, kernel_add_inplace_f32)(float *x, const float *y, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] += y[i];
    }
}

KERNEL(void, kernel_add_rows_f32)
(float *out, const float *x, const float *row, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        float *out_row = out + r * width;
        const float *x_row = x + r * width;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            out_row[i] = x_row[i] + row[i];
        }
    }
}

KERNEL(void, kernel_mul_rows_f32)
(float *out, const float *x, const float *row, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        float *out_row = out + r * width;
        const float *x_row = x + r * width;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            out_row[i] = x_row[i] * row[i];
        }
    }
}

KERNEL(void, kernel_mul_columns_f32)
(float *out, const float *x, const float *column, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        float *out_row = out + r * width, factor = column[r];
        const float *x_row = x + r * width;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            out_row[i] = x_row[i] * factor;
        }
    }
}

KERNEL(void, kernel_spread_f32)
(float *out, const float *column, float factor, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        float *out_row = out + r * width, value = factor * column[r];

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            out_row[i] = value;
        }
    }
}

KERNEL(void, kernel_power_f32)(float *out, const float *x, double exponent, size_t n) {
    if (exponent == 1) {
        memmove(out, x, n * sizeof *out);
    } else if (exponent == 2) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            out[i] = x[i] * x[i];
        }
    } else if (exponent == 3) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            out[i] = x[i] * x[i] * x[i];
        }
    } else if (exponent == 0.5) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            out[i] = sqrtf(x[i]);
        }
    } else if (exponent == -0.5) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            out[i] = 1.0f / sqrtf(x[i]);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            out[i] = (float)pow((double)x[i], exponent);
        }
    }
}
