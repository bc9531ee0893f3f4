/* kernels/host/rope.c - see rope.h. */
#include "kernels/host/rope.h"
#include "kernels/host/vector.h"
#include <math.h>

KERNEL(void, kernel_rope_tables_f32)
(float *cos_table, float *sin_table, size_t seq, size_t head_dim, double base,
 size_t first_position) {
    size_t half = head_dim / 2;

    for (size_t j = 0; j < half; j++) {
        double frequency = pow(base, -2.0 * (double)j / (double)head_dim);

        for (size_t s = 0; s < seq; s++) {
            double angle = (double)(first_position + s) * frequency;
            float c = (float)cos(angle);
            float d = (float)sin(angle);

            cos_table[s * head_dim + j] = c;
            cos_table[s * head_dim + j + half] = c;
            sin_table[s * head_dim + j] = d;
            sin_table[s * head_dim + j + half] = d;
        }
    }
}

/* Both elements of a pair are read before either is written, so y may be x. */
KERNEL(void, kernel_rope_forward_f32)
(KernelView y, KernelConstView x, const float *cos_table, const float *sin_table, size_t batch,
 size_t heads, size_t seq, size_t head_dim) {
    size_t half = head_dim / 2;

    for (size_t b = 0; b < batch; b++) {
        for (size_t s = 0; s < seq; s++) {
            const float *c = cos_table + s * head_dim;
            const float *d = sin_table + s * head_dim;

            for (size_t h = 0; h < heads; h++) {
                const float *in =
                    x.data + b * x.batch_stride + s * x.seq_stride + h * x.head_stride;
                float *out = y.data + b * y.batch_stride + s * y.seq_stride + h * y.head_stride;

                KERNEL_LOOP
                for (size_t j = 0; j < half; j++) {
                    float first = in[j];
                    float second = in[j + half];

                    out[j] = first * c[j] - second * d[j];
                    out[j + half] = second * c[j + half] + first * d[j + half];
                }
            }
        }
    }
}

KERNEL(void, kernel_rope_backward_f32)
(KernelView dx, KernelConstView dy, const float *cos_table, const float *sin_table, size_t batch,
 size_t heads, size_t seq, size_t head_dim) {
    size_t half = head_dim / 2;

    for (size_t b = 0; b < batch; b++) {
        for (size_t s = 0; s < seq; s++) {
            const float *c = cos_table + s * head_dim;
            const float *d = sin_table + s * head_dim;

            for (size_t h = 0; h < heads; h++) {
                const float *in =
                    dy.data + b * dy.batch_stride + s * dy.seq_stride + h * dy.head_stride;
                float *out = dx.data + b * dx.batch_stride + s * dx.seq_stride + h * dx.head_stride;

                KERNEL_LOOP
                for (size_t j = 0; j < half; j++) {
                    float first = in[j];
                    float second = in[j + half];

                    out[j] = first * c[j] + second * d[j + half];
                    out[j + half] = second * c[j + half] - first * d[j];
                }
            }
        }
    }
}

/* ---- neighbours as complex numbers ---------------------------------------------------------- */

KERNEL(void, kernel_turn_table_f32)(float *turns, size_t seq, size_t head_dim, double base) {
    for (size_t j = 0; j < head_dim; j += 2) {
        double frequency = pow(base, -(double)j / (double)head_dim);

        for (size_t s = 0; s < seq; s++) {
            turns[s * head_dim + j] = (float)cos((double)s * frequency);
            turns[s * head_dim + j + 1] = (float)sin((double)s * frequency);
        }
    }
}

KERNEL(void, kernel_turn_f32)
(KernelView y, KernelConstView x, const float *turns, size_t batch, size_t heads, size_t seq,
 size_t head_dim) {
    for (size_t b = 0; b < batch; b++) {
        for (size_t s = 0; s < seq; s++) {
            const float *by = turns + s * head_dim;

            for (size_t h = 0; h < heads; h++) {
                const float *in =
                    x.data + b * x.batch_stride + s * x.seq_stride + h * x.head_stride;
                float *out = y.data + b * y.batch_stride + s * y.seq_stride + h * y.head_stride;

                KERNEL_LOOP
                for (size_t j = 0; j < head_dim; j += 2) {
                    float real = in[j];
                    float imaginary = in[j + 1];

                    out[j] = real * by[j] - imaginary * by[j + 1];
                    out[j + 1] = real * by[j + 1] + imaginary * by[j];
                }
            }
        }
    }
}

KERNEL(void, kernel_conjugate_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i += 2) {
        y[i] = x[i];
        y[i + 1] = -x[i + 1];
    }
}
