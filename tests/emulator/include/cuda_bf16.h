/* tests/emulator/include/cuda_bf16.h - CUDA's bf16 as 16 bits, and conversions. */
#pragma once
#include <cuda_runtime.h>

struct __nv_bfloat16 {
    unsigned short bits;
};

static inline float __bfloat162float(__nv_bfloat16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}

/* To nearest, ties to even; NaN stays NaN. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    unsigned bits = __float_as_uint(x);
    if (x != x) {
        return {0x7fff};
    }
    return {(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return {__float2bfloat16_rn(a), __float2bfloat16_rn(b)};
}
