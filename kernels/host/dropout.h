/* kernels/host/dropout.h - elements dropped at random, the others scaled up for them.
 *
 * Element i is kept where number first_index + i of the random stream (random.h), uniform in
 * [0, 1), is p or more; so a tensor comes out the same however it is cut, and again when it is
 * computed again. Bound: arithmetic (one word of Philox an element) forward, memory backward.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* mask[i] says whether element i is kept; y = x / (1 - p) there, else 0. y may alias x.
 * 0 <= p < 1. */
void kernel_dropout_forward_f32(float *y, uint8_t *mask, const float *x, size_t n, float p,
                                uint64_t seed, uint64_t stream_id, uint64_t first_index);
/* dx = mask ? dy / (1 - p) : 0; dx may alias dy. */
void kernel_dropout_backward_f32(float *dx, const float *dy, const uint8_t *mask, size_t n,
                                 float p);
