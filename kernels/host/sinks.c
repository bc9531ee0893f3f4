/* kernels/host/sinks.c - see sinks.h. */
#include "kernels/host/sinks.h"

#include <string.h>

void kernel_join_sinks_f32(float *y, const float *x, const float *sink, size_t batch, size_t heads,
                           size_t rows, size_t cols) {
    for (size_t r = 0; r < batch * heads * rows; r++) {
        float *row = y + r * (cols + 1);
        memcpy(row, x + r * cols, cols * sizeof *row);
        row[cols] = sink[r / rows % heads];
    }
}

void kernel_sum_sinks_f32(float *y, const float *x, size_t batch, size_t heads, size_t rows,
                          size_t cols) {
    for (size_t h = 0; h < heads; h++) {
        double sum = 0;
        for (size_t i = 0; i < batch * rows; i++) {
            size_t row = (i / rows * heads + h) * rows + i % rows;
            sum += (double)x[row * (cols + 1) + cols];
        }
        y[h] = (float)sum;
    }
}

void kernel_clamp_columns_f32(float *y, const float *x, size_t rows, size_t cols, size_t width,
                              size_t from, float least, float most) {
    for (size_t i = 0; i < rows * cols; i++) {
        float number = x[i / cols * width + from + i % cols];
        y[i] = number < least ? least : number > most ? most : number;
    }
}

void kernel_limit_mask_f32(uint8_t *mask, const float *x, size_t rows, size_t cols, size_t width,
                           size_t from, float sign, float limit) {
    for (size_t i = 0; i < rows * cols; i++) {
        mask[i] = sign * x[i / cols * width + from + i % cols] <= limit;
    }
}

void kernel_where_mask_f32(float *y, const uint8_t *mask, const float *x, float zero, size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[i] = mask[i] ? x[i] : zero;
    }
}
