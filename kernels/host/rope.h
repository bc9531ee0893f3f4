/* kernels/host/rope.h - rotary position embedding in the "rotate half" form.
 *
 * With h = head_dim / 2 and tables cos, sin [seq, head_dim] (row s for position s; pass a later row
 * to start at a later position):
 *     y[j]     = x[j]     cos[j]     - x[j + h] sin[j]
 *     y[j + h] = x[j + h] cos[j + h] + x[j]     sin[j + h]        j < h
 * head_dim is even. The output may alias the input if their strides are equal. Bound: memory.
 */
#pragma once
#include "kernels/host/view.h"
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
