/* kernels/host/vector.h - how the vector loops are written; for .c files of this folder only.
 *
 * Loops are plain C under KERNEL_LOOP or KERNEL_SUM, and compilers turn them into vector code. Each
 * file that has such loops is compiled once for each instruction set, with KERNEL_VARIANT set to
 * the suffix of its public names; dispatch.c lets the loader choose one. A public function is
 * therefore written
 *     KERNEL(void, kernel_add_f32)(float *out, ...) { ... }
 * which defines kernel_add_f32_v3 (say) and holds it to the prototype in the header. Where there is
 * no suffix (other processors, or a platform whose loader cannot choose) it defines the name
 * itself.
 *
 * Products are never fused with sums (-ffp-contract=off), so element by element all variants, and
 * both compilers, give the same bits.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef KERNEL_VARIANT
#define KERNEL_PASTE_(a, b) a##b
#define KERNEL_PASTE(a, b)  KERNEL_PASTE_(a, b)
#define KERNEL(type, name)                                                                         \
    extern __typeof__(name) KERNEL_PASTE(name, KERNEL_VARIANT);                                    \
    type KERNEL_PASTE(name, KERNEL_VARIANT)
#else
#define KERNEL(type, name) type name
#endif

/* The iterations of the next loop do not depend on each other, even if an output is an input. */
#define KERNEL_LOOP _Pragma("omp simd")
/* They do, only in that sums are formed; these may be formed in any order. */
#define KERNEL_PRAGMA(text) _Pragma(#text)
#define KERNEL_SUM(...)     KERNEL_PRAGMA(omp simd reduction(+ : __VA_ARGS__))

#define KERNEL_INLINE static inline __attribute__((always_inline, unused))

KERNEL_INLINE float float_from_bits(uint32_t bits) {
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

KERNEL_INLINE uint32_t float_bits(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* exp(x), within 2 ulp; 0 below the smallest denormal, inf above the largest float, NaN for NaN.
 *
 * x = n ln 2 + r with n whole and |r| <= ln(2) / 2. Adding 1.5 * 2^23 rounds x / ln 2 to n and
 * leaves n in the low bits. ln 2 is cut in two so that the first product is exact. The polynomial
 * was fitted at Chebyshev nodes to (exp(r) - 1 - r) / r^2. 2^n is applied in two halves, since n
 * may pass the range of exponents where the result is denormal or inf. */
KERNEL_INLINE float exp_f32(float x) {
    const float shift = 12582912.0f;
    float clamped = x > 89.0f ? 89.0f : x;

    clamped = clamped < -104.0f ? -104.0f : clamped;

    float shifted = clamped * 1.44269504f + shift;
    float n = shifted - shift;
    int32_t power = (int32_t)(float_bits(shifted) - float_bits(shift));
    float r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 0.00139261761f;

    p = p * r + 0.00836317307f;
    p = p * r + 0.0416665547f;
    p = p * r + 0.16666577f;
    p = p * r + 0.5f;
    p = 1.0f + (r + r * r * p);

    int32_t half = power >> 1;
    int32_t rest = power - half;

    return p * float_from_bits((uint32_t)(half + 127) << 23) *
           float_from_bits((uint32_t)(rest + 127) << 23);
}

/* The largest of n numbers and least. Kept in lanes by hand, as a compiler that heeds NaN will not
 * take a maximum apart; a NaN among the numbers may or may not be passed over. */
#define MAX_LANES 32
KERNEL_INLINE float max_f32(const float *x, size_t n, float least) {
    float lane[MAX_LANES];
    size_t i = 0;

    for (size_t l = 0; l < MAX_LANES; l++) {
        lane[l] = least;
    }
    for (; i + MAX_LANES <= n; i += MAX_LANES) {
        KERNEL_LOOP
        for (size_t l = 0; l < MAX_LANES; l++) {
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
        }
    }
    for (; i < n; i++) {
        least = x[i] > least ? x[i] : least;
    }
    for (size_t l = 0; l < MAX_LANES; l++) {
        least = lane[l] > least ? lane[l] : least;
    }
    return least;
}

/* 1 / (1 + exp(-x)), within 4 ulp where it is a normal number. */
KERNEL_INLINE float sigmoid_f32(float x) {
    return 1.0f / (1.0f + exp_f32(-x));
}

/* log(x) for positive, finite, normal x, within 2 ulp.
 *
 * x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); the polynomial was fitted at Chebyshev nodes
 * to (log(1 + f) - f + f^2 / 2) / f^3. */
KERNEL_INLINE float log_f32(float x) {
    uint32_t bits = float_bits(x);
    uint32_t offset = bits - 0x3f3504f3u; /* sqrt(1/2) */
    float n = (float)((int32_t)offset >> 23);
    float f = float_from_bits((offset & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 0.0697161146f;

    p = p * f - 0.114797338f;
    p = p * f + 0.116854199f;
    p = p * f - 0.124256873f;
    p = p * f + 0.142490576f;
    p = p * f - 0.166678023f;
    p = p * f + 0.200007157f;
    p = p * f - 0.24999997f;
    p = p * f + 0.333333312f;

    float square = f * f;
    float low = n * -2.12194440e-4f + (f * square * p - 0.5f * square);

    return n * 0.693359375f + (f + low);
}
