/* kernels/host/rows/embedding.h - table lookup and its gradient.
 *
 * Both return false if an index lies outside the table; outputs are then undefined (but nothing
 * outside them was touched). Bound: memory, at random rows.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out[i] = weight[index[i]], rows of width; out[count, width], weight[vocab, width]. */
bool kernel_embedding_forward_f32(float *out, const float *weight, const int64_t *index,
                                  size_t count, size_t vocab, size_t width);

/* dweight[vocab, width] = 0, then dweight[index[i]] += dout[i] in the order of i. */
bool kernel_embedding_backward_f32(float *dweight, const float *dout, const int64_t *index,
                                   size_t count, size_t vocab, size_t width);
