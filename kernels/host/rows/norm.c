/* kernels/host/rows/norm.c - see norm.h.
 *
 * With h = (x - mean) rstd and g = dy weight, averages over a row written < >:
 *     layer norm: dx = rstd (g - <g> - h <g h>)        dweight = sum over rows of dy h, dbias of dy
 *     RMS norm:   dx = rstd (g - h <g h>), mean 0      dweight likewise
 * The parameter gradients are a sweep of their own, a block of columns at a time, so that their
 * sums can be kept in double on the stack.
 */
#include "kernels/host/rows/norm.h"
#include "kernels/host/vector.h"
#include <math.h>

#define COLUMN_BLOCK 1024

KERNEL(void, kernel_layernorm_forward_f32)
(float *y, float *mean, float *rstd, const float *x, const float *weight, const float *bias,
 size_t rows, size_t width, float eps) {
    for (size_t r = 0; r < rows; r++) {
        const float *x_row = x + r * width;
        float *y_row = y + r * width;
        double total = 0.0;
        double squares = 0.0;

        KERNEL_SUM(total)
        for (size_t i = 0; i < width; i++) {
            total += (double)x_row[i];
        }

        double center = total / (double)width;

        KERNEL_SUM(squares)
        for (size_t i = 0; i < width; i++) {
            double off = (double)x_row[i] - center;

            squares += off * off;
        }

        float m = (float)center;
        float s = (float)(1.0 / sqrt(squares / (double)width + (double)eps));

        mean[r] = m;
        rstd[r] = s;
        if (weight != NULL && bias != NULL) {
            KERNEL_LOOP
            for (size_t i = 0; i < width; i++) {
                y_row[i] = (x_row[i] - m) * s * weight[i] + bias[i];
            }
        } else {
            KERNEL_LOOP
            for (size_t i = 0; i < width; i++) {
                float w = weight != NULL ? weight[i] : 1.0f;
                float b = bias != NULL ? bias[i] : 0.0f;

                y_row[i] = (x_row[i] - m) * s * w + b;
            }
        }
    }
}

KERNEL(void, kernel_rmsnorm_forward_f32)
(float *y, float *rstd, const float *x, const float *weight, size_t rows, size_t width, float eps) {
    for (size_t r = 0; r < rows; r++) {
        const float *x_row = x + r * width;
        float *y_row = y + r * width;
        double squares = 0.0;

        KERNEL_SUM(squares)
        for (size_t i = 0; i < width; i++) {
            squares += (double)x_row[i] * (double)x_row[i];
        }

        float s = (float)(1.0 / sqrt(squares / (double)width + (double)eps));

        rstd[r] = s;
        if (weight != NULL) {
            KERNEL_LOOP
            for (size_t i = 0; i < width; i++) {
                y_row[i] = x_row[i] * s * weight[i];
            }
        } else {
            KERNEL_LOOP
            for (size_t i = 0; i < width; i++) {
                y_row[i] = x_row[i] * s;
            }
        }
    }
}

/* One row of dx; keep_mean is 1 for layer norm and 0 for RMS norm, where <g> does not appear. */
KERNEL_INLINE void backward_row(float *dx, const float *dy, const float *x, const float *weight,
                                float m, float s, float keep_mean, size_t width) {
    double g_total = 0.0;
    double gh_total = 0.0;

    if (weight != NULL) {
        KERNEL_SUM(g_total, gh_total)
        for (size_t i = 0; i < width; i++) {
            float g = dy[i] * weight[i];
            float h = (x[i] - m) * s;

            g_total += (double)g;
            gh_total += (double)g * (double)h;
        }
    } else {
        KERNEL_SUM(g_total, gh_total)
        for (size_t i = 0; i < width; i++) {
            float h = (x[i] - m) * s;

            g_total += (double)dy[i];
            gh_total += (double)dy[i] * (double)h;
        }
    }

    float g_mean = keep_mean * (float)(g_total / (double)width);
    float gh_mean = (float)(gh_total / (double)width);

    if (weight != NULL) {
        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            dx[i] = s * (dy[i] * weight[i] - g_mean - (x[i] - m) * s * gh_mean);
        }
    } else {
        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            dx[i] = s * (dy[i] - g_mean - (x[i] - m) * s * gh_mean);
        }
    }
}

/* dweight and dbias (either may be NULL); mean may be NULL for all zero. */
KERNEL_INLINE void backward_parameters(float *dweight, float *dbias, const float *dy,
                                       const float *x, const float *mean, const float *rstd,
                                       size_t rows, size_t width) {
    for (size_t first = 0; first < width; first += COLUMN_BLOCK) {
        size_t count = width - first < COLUMN_BLOCK ? width - first : COLUMN_BLOCK;
        double weight_total[COLUMN_BLOCK] = {0.0};
        double bias_total[COLUMN_BLOCK] = {0.0};

        for (size_t r = 0; r < rows; r++) {
            const float *dy_row = dy + r * width + first;
            const float *x_row = x + r * width + first;
            float m = mean != NULL ? mean[r] : 0.0f;
            float s = rstd[r];

            KERNEL_LOOP
            for (size_t j = 0; j < count; j++) {
                weight_total[j] += (double)(dy_row[j] * ((x_row[j] - m) * s));
                bias_total[j] += (double)dy_row[j];
            }
        }
        for (size_t j = 0; j < count; j++) {
            if (dweight != NULL) {
                dweight[first + j] = (float)weight_total[j];
            }
            if (dbias != NULL) {
                dbias[first + j] = (float)bias_total[j];
            }
        }
    }
}

KERNEL(void, kernel_layernorm_backward_f32)
(float *dx, float *dweight, float *dbias, const float *dy, const float *x, const float *mean,
 const float *rstd, const float *weight, size_t rows, size_t width) {
    if (dweight != NULL || dbias != NULL) {
        backward_parameters(dweight, dbias, dy, x, mean, rstd, rows, width);
    }
    for (size_t r = 0; dx != NULL && r < rows; r++) {
        backward_row(dx + r * width, dy + r * width, x + r * width, weight, mean[r], rstd[r], 1.0f,
                     width);
    }
}

KERNEL(void, kernel_rmsnorm_backward_f32)
(float *dx, float *dweight, const float *dy, const float *x, const float *rstd, const float *weight,
 size_t rows, size_t width) {
    if (dweight != NULL) {
        backward_parameters(dweight, NULL, dy, x, NULL, rstd, rows, width);
    }
    for (size_t r = 0; dx != NULL && r < rows; r++) {
        backward_row(dx + r * width, dy + r * width, x + r * width, weight, 0.0f, rstd[r], 0.0f,
                     width);
    }
}
