/* kernels/host/random.c - see random.h.
 *
 * A round of Philox multiplies two of the four counter words by constants, to 64 bits each; the
 * high halves are mixed with the key and the other two words, and the halves change places. The key
 * grows by the golden ratio and sqrt(3) - 1 between rounds. Constants as in the paper's Philox
 * 4x32.
 *
 * Blocks are made BATCH at a time into four arrays of words, which keeps the loops vectorizable,
 * and turned into numbers in a small array; the part that was asked for is copied out.
 */
#include "kernels/host/random.h"
#include "kernels/host/vector.h"
#include <math.h>

#define ROUNDS       10
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define KEY_STEP_0   0x9E3779B9u
#define KEY_STEP_1   0xBB67AE85u
#define BATCH        128 /* blocks; 512 words, 2 KiB */

KERNEL_INLINE void philox(uint32_t *w0, uint32_t *w1, uint32_t *w2, uint32_t *w3, uint32_t key0,
                          uint32_t key1) {
    uint32_t a = *w0, b = *w1, c = *w2, d = *w3;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = (uint64_t)MULTIPLIER_0 * a;
        uint64_t product1 = (uint64_t)MULTIPLIER_1 * c;

        a = (uint32_t)(product1 >> 32) ^ b ^ key0;
        b = (uint32_t)product1;
        c = (uint32_t)(product0 >> 32) ^ d ^ key1;
        d = (uint32_t)product0;
        key0 += KEY_STEP_0;
        key1 += KEY_STEP_1;
    }
    *w0 = a;
    *w1 = b;
    *w2 = c;
    *w3 = d;
}

KERNEL(void, kernel_philox_4x32)
(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t w0 = counter[0], w1 = counter[1], w2 = counter[2], w3 = counter[3];

    philox(&w0, &w1, &w2, &w3, key[0], key[1]);
    out[0] = w0;
    out[1] = w1;
    out[2] = w2;
    out[3] = w3;
}

typedef struct {
    uint32_t word[4][BATCH];
} Batch;

/* Fills a batch with blocks first, first + 1, ... of a stream. */
KERNEL_INLINE void batch_fill(Batch *batch, uint64_t first, uint64_t seed, uint64_t stream_id) {
    KERNEL_LOOP
    for (size_t i = 0; i < BATCH; i++) {
        uint64_t block = first + i;
        uint32_t w0 = (uint32_t)block;
        uint32_t w1 = (uint32_t)(block >> 32);
        uint32_t w2 = (uint32_t)stream_id;
        uint32_t w3 = (uint32_t)(stream_id >> 32);

        philox(&w0, &w1, &w2, &w3, (uint32_t)seed, (uint32_t)(seed >> 32));
        batch->word[0][i] = w0;
        batch->word[1][i] = w1;
        batch->word[2][i] = w2;
        batch->word[3][i] = w3;
    }
}

/* A multiple of 2^-24 in [0, 1). */
KERNEL_INLINE float unit(uint32_t word) {
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* Two independent standard normals from two words.
 *
 * The radius takes a uniform number in (0, 1]. The angle's top two bits choose a quarter turn and
 * the next 24 a place a within it, in turns, -1/8 <= a < 1/8; the polynomials were fitted at
 * Chebyshev nodes to sin(2 pi a) / a and cos(2 pi a) in a^2. */
KERNEL_INLINE void normal_pair(uint32_t word0, uint32_t word1, float *ret_first,
                               float *ret_second) {
    float radius = sqrtf(-2.0f * log_f32(unit(word0) + 0x1p-24f));
    float a = (float)((int32_t)((word1 >> 6) & 0xffffffu) - 0x800000) * 0x1p-26f;
    float square = a * a;
    float s = 41.4728306f;
    float c = -26.0582886f;

    s = s * square - 76.6978663f;
    s = s * square + 81.6052047f;
    s = s * square - 41.3417022f;
    s = s * square + 6.28318531f;
    s = s * a;
    c = c * square + 60.2381898f;
    c = c * square - 85.456765f;
    c = c * square + 64.9393938f;
    c = c * square - 19.7392088f;
    c = c * square + 1.0f;

    uint32_t quarter = word1 >> 30;
    float x = (quarter & 1u) != 0 ? s : c;
    float y = (quarter & 1u) != 0 ? c : s;
    uint32_t flip_x = ((quarter + 1u) & 2u) << 30; /* quarters 1 and 2 */
    uint32_t flip_y = (quarter & 2u) << 30;        /* quarters 2 and 3 */

    *ret_first = radius * float_from_bits(float_bits(x) ^ flip_x);
    *ret_second = radius * float_from_bits(float_bits(y) ^ flip_y);
}

/* How many of count numbers starting at index lie in the batch that begins at batch_first. */
KERNEL_INLINE size_t batch_part(uint64_t index, uint64_t batch_first, size_t batch_numbers,
                                size_t count) {
    size_t left = batch_numbers - (size_t)(index - batch_first);

    return count < left ? count : left;
}

KERNEL(void, kernel_philox_normal_f32)
(float *out, size_t n, uint64_t seed, uint64_t stream_id, uint64_t first_index, float mean,
 float std) {
    Batch batch;
    float number[4 * BATCH];

    for (size_t done = 0; done < n;) {
        uint64_t index = first_index + done;
        uint64_t block = index / 4;
        size_t part = batch_part(index, block * 4, 4 * BATCH, n - done);

        batch_fill(&batch, block, seed, stream_id);
        KERNEL_LOOP
        for (size_t i = 0; i < BATCH; i++) {
            float z0, z1, z2, z3;

            normal_pair(batch.word[0][i], batch.word[1][i], &z0, &z1);
            normal_pair(batch.word[2][i], batch.word[3][i], &z2, &z3);
            number[4 * i] = mean + std * z0;
            number[4 * i + 1] = mean + std * z1;
            number[4 * i + 2] = mean + std * z2;
            number[4 * i + 3] = mean + std * z3;
        }
        memcpy(out + done, number + index % 4, part * sizeof *out);
        done += part;
    }
}

KERNEL(void, kernel_philox_uniform_f32)
(float *out, size_t n, uint64_t seed, uint64_t stream_id, uint64_t first_index, float low,
 float high) {
    Batch batch;
    float number[4 * BATCH];
    float span = high - low;

    for (size_t done = 0; done < n;) {
        uint64_t index = first_index + done;
        uint64_t block = index / 4;
        size_t part = batch_part(index, block * 4, 4 * BATCH, n - done);

        batch_fill(&batch, block, seed, stream_id);
        KERNEL_LOOP
        for (size_t i = 0; i < BATCH; i++) {
            number[4 * i] = low + unit(batch.word[0][i]) * span;
            number[4 * i + 1] = low + unit(batch.word[1][i]) * span;
            number[4 * i + 2] = low + unit(batch.word[2][i]) * span;
            number[4 * i + 3] = low + unit(batch.word[3][i]) * span;
        }
        memcpy(out + done, number + index % 4, part * sizeof *out);
        done += part;
    }
}

/* The high 64 bits of a product; a is a random number, so the result is it scaled to [0, b). */
KERNEL_INLINE uint64_t multiply_high(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32;
    uint64_t b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t other = a0 * b1 + (uint32_t)middle;

    return a1 * b1 + (middle >> 32) + (other >> 32);
}

KERNEL(void, kernel_philox_uniform_i64)
(int64_t *out, size_t n, int64_t bound, uint64_t seed, uint64_t stream_id, uint64_t first_index) {
    Batch batch;
    int64_t number[2 * BATCH];
    uint64_t range = (uint64_t)bound;

    for (size_t done = 0; done < n;) {
        uint64_t index = first_index + done;
        uint64_t block = index / 2;
        size_t part = batch_part(index, block * 2, 2 * BATCH, n - done);

        batch_fill(&batch, block, seed, stream_id);
        for (size_t i = 0; i < BATCH; i++) {
            uint64_t even = (uint64_t)batch.word[1][i] << 32 | batch.word[0][i];
            uint64_t odd = (uint64_t)batch.word[3][i] << 32 | batch.word[2][i];

            number[2 * i] = (int64_t)multiply_high(even, range);
            number[2 * i + 1] = (int64_t)multiply_high(odd, range);
        }
        memcpy(out + done, number + index % 2, part * sizeof *out);
        done += part;
    }
}
