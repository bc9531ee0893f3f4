/* kernels/cuda/philox.cuh - Philox 4x32-10 as kernels/host/random.c has it; for .cu files of this
 * folder only.
 *
 * Floats are formed with __fmul_rn() and __fadd_rn(), which are never fused, in the host's order:
 * so every number is the host's, bit by bit.
 */
#pragma once
#include "kernels/cuda/device.cuh"

namespace cu {

struct Words {
    unsigned word[4];
};

/* Block `block` of a stream. */
static inline __device__ Words philox(uint64_t block, uint64_t seed, uint64_t stream_id) {
    unsigned a = (unsigned)block, b = (unsigned)(block >> 32), c = (unsigned)stream_id;
    unsigned d = (unsigned)(stream_id >> 32), key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned low0 = 0xD2511F53u * a, low1 = 0xCD9E8D57u * c;
        unsigned high0 = __umulhi(0xD2511F53u, a), high1 = __umulhi(0xCD9E8D57u, c);
        a = high1 ^ b ^ key0;
        b = low1;
        c = high0 ^ d ^ key1;
        d = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return Words{{a, b, c, d}};
}

/* A multiple of 2^-24 in [0, 1). */
static inline __device__ float unit(unsigned word) {
    return __fmul_rn((float)(int)(word >> 8), 0x1p-24f);
}

static inline __device__ float mul_add(float a, float b, float c) {
    return __fadd_rn(__fmul_rn(a, b), c);
}

/* log(x) for positive, finite, normal x: kernels/host/vector.h, number by number. */
static inline __device__ float host_log(float x) {
    unsigned offset = __float_as_uint(x) - 0x3f3504f3u;
    float n = (float)((int)offset >> 23);
    float f = __fadd_rn(__uint_as_float((offset & 0x007fffffu) + 0x3f3504f3u), -1.0f);
    float p = 0.0697161146f;
    p = mul_add(p, f, -0.114797338f);
    p = mul_add(p, f, 0.116854199f);
    p = mul_add(p, f, -0.124256873f);
    p = mul_add(p, f, 0.142490576f);
    p = mul_add(p, f, -0.166678023f);
    p = mul_add(p, f, 0.200007157f);
    p = mul_add(p, f, -0.24999997f);
    p = mul_add(p, f, 0.333333312f);
    float square = __fmul_rn(f, f);
    float tail = __fadd_rn(__fmul_rn(__fmul_rn(f, square), p), -__fmul_rn(0.5f, square));
    float low = __fadd_rn(__fmul_rn(n, -2.12194440e-4f), tail);
    return __fadd_rn(__fmul_rn(n, 0.693359375f), __fadd_rn(f, low));
}

/* Two independent standard normals from two words, as the host makes them. */
static inline __device__ void normal_pair(unsigned word0, unsigned word1, float *first,
                                          float *second) {
    float radius = __fsqrt_rn(__fmul_rn(-2.0f, host_log(__fadd_rn(unit(word0), 0x1p-24f))));
    float a = __fmul_rn((float)((int)(word1 >> 6 & 0xffffffu) - 0x800000), 0x1p-26f);
    float square = __fmul_rn(a, a), s = 41.4728306f, c = -26.0582886f;
    s = mul_add(s, square, -76.6978663f);
    s = mul_add(s, square, 81.6052047f);
    s = mul_add(s, square, -41.3417022f);
    s = mul_add(s, square, 6.28318531f);
    s = __fmul_rn(s, a);
    c = mul_add(c, square, 60.2381898f);
    c = mul_add(c, square, -85.456765f);
    c = mul_add(c, square, 64.9393938f);
    c = mul_add(c, square, -19.7392088f);
    c = mul_add(c, square, 1.0f);
    unsigned quarter = word1 >> 30;
    float x = quarter & 1u ? s : c, y = quarter & 1u ? c : s;
    unsigned flip_x = ((quarter + 1u) & 2u) << 30, flip_y = (quarter & 2u) << 30;
    *first = __fmul_rn(radius, __uint_as_float(__float_as_uint(x) ^ flip_x));
    *second = __fmul_rn(radius, __uint_as_float(__float_as_uint(y) ^ flip_y));
}

} // namespace cu
