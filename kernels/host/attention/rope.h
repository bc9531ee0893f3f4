/* kernels/host/attention/rope.h - rotary position embedding in the "rotate half" form, and of
 * neighbours as complex numbers.
 *
 * With h = head_dim / 2 and tables cos, sin [seq, head_dim] (row s for position s; pass a later row
 * to start at a later position):
 *     y[j]     = x[j]     cos[j]     - x[j + h] sin[j]
 *     y[j + h] = x[j + h] cos[j + h] + x[j]     sin[j + h]        j < h
 * head_dim is even. The output may alias the input if their strides are equal. Bound: memory.
 */
#pragma once
#include "kernels/host/attention/view.h"
#include <stddef.h>

/* cos and sin of position * base^(-2 j / head_dim), each half of a row alike, for positions
 * first_position .. first_position + seq - 1; computed in double. base is usually 10000. */
void kernel_rope_tables_f32(float *cos_table, float *sin_table, size_t seq, size_t head_dim,
                            double base, size_t first_position);

void kernel_rope_forward_f32(KernelView y, KernelConstView x, const float *cos_table,
                             const float *sin_table, size_t batch, size_t heads, size_t seq,
                             size_t head_dim);

/* dx from dy: the transpose of forward. */
void kernel_rope_backward_f32(KernelView dx, KernelConstView dy, const float *cos_table,
                              const float *sin_table, size_t batch, size_t heads, size_t seq,
                              size_t head_dim);

/* exp(i position * base^(-2 j / head_dim)), j < head_dim / 2: turns [seq, head_dim], real and
 * imaginary parts side by side. */
void kernel_turn_table_f32(float *turns, size_t seq, size_t head_dim, double base);

/* (y[2 j], y[2 j + 1]) = (x[2 j], x[2 j + 1]) turns[s][j], as complex numbers. */
void kernel_turn_f32(KernelView y, KernelConstView x, const float *turns, size_t batch,
                     size_t heads, size_t seq, size_t head_dim);

/* Of n numbers each second one with its other sign; n is even. */
void kernel_conjugate_f32(float *y, const float *x, size_t n);
