/* kernels/host/reduce.c - see reduce.h. */
#include "kernels/host/reduce.h"
#include "kernels/host/vector.h"
#include <math.h>

#define COLUMN_BLOCK 1024 /* columns whose sums stay on the stack: 8 KiB of double */

KERNEL_INLINE double sum(const float *x, size_t n) {
    double total = 0.0;

    KERNEL_SUM(total)
    for (size_t i = 0; i < n; i++) {
        total += (double)x[i];
    }
    return total;
}

KERNEL(void, kernel_mean_forward_f32)(float *out, const float *x, size_t n) {
    out[0] = (float)(sum(x, n) / (double)n);
}

KERNEL(void, kernel_mean_backward_f32)(float *dx, const float *dout, size_t n) {
    float share = dout[0] / (float)n;

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        dx[i] = share;
    }
}

KERNEL(void, kernel_column_sum_f32)(float *out, const float *x, size_t rows, size_t cols) {
    for (size_t first = 0; first < cols; first += COLUMN_BLOCK) {
        size_t count = cols - first < COLUMN_BLOCK ? cols - first : COLUMN_BLOCK;
        double total[COLUMN_BLOCK] = {0.0};

        for (size_t r = 0; r < rows; r++) {
            const float *row = x + r * cols + first;

            KERNEL_LOOP
            for (size_t j = 0; j < count; j++) {
                total[j] += (double)row[j];
            }
        }
        for (size_t j = 0; j < count; j++) {
            out[first + j] = (float)total[j];
        }
    }
}

KERNEL(void, kernel_row_sum_f32)
(float *out, const float *x, float factor, size_t rows, size_t cols) {
    for (size_t r = 0; r < rows; r++) {
        out[r] = (float)((double)factor * sum(x + r * cols, cols));
    }
}

KERNEL_INLINE double sum_of_squares(const float *x, size_t n) {
    double total = 0.0;

    KERNEL_SUM(total)
    for (size_t i = 0; i < n; i++) {
        total += (double)x[i] * (double)x[i];
    }
    return total;
}

KERNEL(void, kernel_norm_f32)(float *out, const float *x, size_t n) {
    out[0] = (float)sqrt(sum_of_squares(x, n));
}
