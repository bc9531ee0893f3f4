/* kernels/host/copy.h - moving bytes whatever they mean.
 *
 * A source and a destination never overlap. Bound: memory.
 */
#pragma once
#include <stddef.h>

void kernel_copy_bytes(void *out, const void *in, size_t bytes);
void kernel_zero_bytes(void *out, size_t bytes);

/* Copies rows pieces of row_bytes; those of out start out_stride bytes apart, those of in
 * in_stride. This is all that FSDP2's copies need, one call a parameter:
 *     copy-in to the all-gather:  rows 1 (a shard to its place in the rank's slice)
 *     split_with_sizes_copy:      rows = ranks; in_stride the gathered slice, out_stride the shard
 *     chunk_cat:                  rows = ranks; in_stride the chunk, out_stride the rank's slice
 * A shorter last chunk is a second call, its padding a kernel_zero_bytes(). */
void kernel_copy_2d_bytes(void *out, size_t out_stride, const void *in, size_t in_stride,
                          size_t rows, size_t row_bytes);

/* out[i0, i1, i2, i3] = in[i0, i1, i2, i3] for indices below size; strides in elements. Permutes,
 * makes contiguous, and expands (an input stride of 0). */
void kernel_copy_4d_f32(float *out, const size_t out_stride[4], const float *in,
                        const size_t in_stride[4], const size_t size[4]);
