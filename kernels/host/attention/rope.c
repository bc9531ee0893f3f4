/* kernels/host/attention/rope.c - see rope.h. */
#include "kernels/host/attention/rope.h"
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

/* Of a row of a head, by its row of each table. Both elements of a pair are read before either is
 * written, so that out may be in. */
typedef void Turn(float *out, const float *in, const float *c, const float *d, size_t head_dim);

KERNEL_INLINE void each_row(KernelView y, KernelConstView x, const float *c, const float *d,
                            size_t batch, size_t heads, size_t seq, size_t head_dim, Turn *turn) {
    for (size_t b = 0; b < batch; b++) {
        for (size_t s = 0; s < seq; s++) {
            size_t at = s * head_dim;
            for (size_t h = 0; h < heads; h++) {
                turn(y.data + b * y.batch_stride + s * y.seq_stride + h * y.head_stride,
                     x.data + b * x.batch_stride + s * x.seq_stride + h * x.head_stride, c + at,
                     d + at, head_dim);
            }
        }
    }
}

KERNEL_INLINE void turn_halves(float *out, const float *in, const float *c, const float *d,
                               size_t head_dim) {
    size_t half = head_dim / 2;
    KERNEL_LOOP
    for (size_t j = 0; j < half; j++) {
        float first = in[j], second = in[j + half];
        out[j] = first * c[j] - second * d[j];
        out[j + half] = second * c[j + half] + first * d[j + half];
    }
}

KERNEL_INLINE void turn_halves_back(float *out, const float *in, const float *c, const float *d,
                                    size_t head_dim) {
    size_t half = head_dim / 2;
    KERNEL_LOOP
    for (size_t j = 0; j < half; j++) {
        float first = in[j], second = in[j + half];
        out[j] = first * c[j] + second * d[j + half];
        out[j + half] = second * c[j + half] - first * d[j];
    }
}

KERNEL(void, kernel_rope_forward_f32)
(KernelView y, KernelConstView x, const float *cos_table, const float *sin_table, size_t batch,
 size_t heads, size_t seq, size_t head_dim) {
    each_row(y, x, cos_table, sin_table, batch, heads, seq, head_dim, turn_halves);
}

KERNEL(void, kernel_rope_backward_f32)
(KernelView dx, KernelConstView dy, const float *cos_table, const float *sin_table, size_t batch,
 size_t heads, size_t seq, size_t head_dim) {
    each_row(dx, dy, cos_table, sin_table, batch, heads, seq, head_dim, turn_halves_back);
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

/* One table has both. */
KERNEL_INLINE void turn_pairs(float *out, const float *in, const float *by, const float *unused,
                              size_t head_dim) {
    (void)unused;
    KERNEL_LOOP
    for (size_t j = 0; j < head_dim; j += 2) {
        float real = in[j], imaginary = in[j + 1];
        out[j] = real * by[j] - imaginary * by[j + 1];
        out[j + 1] = real * by[j + 1] + imaginary * by[j];
    }
}

KERNEL(void, kernel_turn_f32)
(KernelView y, KernelConstView x, const float *turns, size_t batch, size_t heads, size_t seq,
 size_t head_dim) {
    each_row(y, x, turns, turns, batch, heads, seq, head_dim, turn_pairs);
}

KERNEL(void, kernel_conjugate_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i += 2) {
        y[i] = x[i];
        y[i + 1] = -x[i + 1];
    }
}
