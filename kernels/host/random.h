/* kernels/host/random.h - counter-based random numbers: Philox 4x32-10.
 *
 * A number is a function of (seed, stream_id, index) and nothing else, so an array comes out the
 * same whoever fills it and however it is cut into shards. Philox (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011) enciphers a 128-bit counter {block, stream_id} under a
 * 64-bit key, the seed. Element i takes word i % 4 of block i / 4 (uniform_i64: words 2 (i % 2) and
 * the next of block i / 2). Normals come in pairs by Box and Muller from words {0, 1} and {2, 3},
 * with this room's own logarithm, sine and cosine: no libm, no fused multiply-add, so the bits are
 * equal for every compiler and machine with IEEE arithmetic. |normal| < 5.8. Not for secrets.
 * Bound: arithmetic.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The block cipher itself: out = philox(counter, key). */
void kernel_philox_4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* Elements first_index .. first_index + n - 1 of the stream, normal with this mean and standard
 * deviation. */
void kernel_philox_normal_f32(float *out, size_t n, uint64_t seed, uint64_t stream_id,
                              uint64_t first_index, float mean, float std);

/* Likewise uniform in [low, high): low + u (high - low), u a multiple of 2^-24. */
void kernel_philox_uniform_f32(float *out, size_t n, uint64_t seed, uint64_t stream_id,
                               uint64_t first_index, float low, float high);

/* Likewise uniform integers in [0, bound), bound > 0; no value is favoured by more than
 * bound / 2^64. */
void kernel_philox_uniform_i64(int64_t *out, size_t n, int64_t bound, uint64_t seed,
                               uint64_t stream_id, uint64_t first_index);
