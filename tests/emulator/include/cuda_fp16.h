/* tests/emulator/include/cuda_fp16.h - CUDA's fp16 as 16 bits, and conversions. */
#pragma once
#include <cuda_runtime.h>

struct __half {
    unsigned short bits;
};

/* An fp16 number is exact in float: its exponent is moved by multiplying with a power of two. */
static inline float __half2float(__half x) {
    unsigned sign = (unsigned)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
    if (rest >= 0x7c00) {
        return __uint_as_float(sign | 0x7f800000 | rest << 13);
    }
    return __uint_as_float(sign | __float_as_uint(__uint_as_float(rest << 13) * 0x1p112f));
}

/* To nearest, ties to even. Adding a number whose last bit is as heavy as fp16's lets the float
 * unit round. */
static inline __half __float2half_rn(float x) {
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (x != x) {
        return {0x7fff};
    }
    if (size >= 0x477ff000) { /* rounds to more than 65504 */
        return {(unsigned short)(sign | 0x7c00)};
    }
    if (size < 0x38800000) { /* below the least normal one, 2^-14 */
        float heavy = __uint_as_float(size) + 0.5f;
        return {(unsigned short)(sign | (__float_as_uint(heavy) - 0x3f000000))};
    }
    unsigned rounded = size + 0xfff + (size >> 13 & 1) - 0x38000000;
    return {(unsigned short)(sign | rounded >> 13)};
}

struct alignas(4) __half2 {
    __half x, y;
};

static inline __half2 __floats2half2_rn(float a, float b) {
    return {__float2half_rn(a), __float2half_rn(b)};
}
static inline float2 __half22float2(__half2 two) {
    return float2{__half2float(two.x), __half2float(two.y)};
}
