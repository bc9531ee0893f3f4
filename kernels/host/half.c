/* kernels/host/half.c - see half.h. */
#include "kernels/host/half.h"
#include "kernels/host/vector.h"

KERNEL_INLINE float from_bf16(uint16_t x) {
    return float_from_bits((uint32_t)x << 16);
}

/* Adding just under half of the last kept bit, and that bit itself, carries exactly when rounding
 * to even goes up. A NaN is cut and made quiet, lest its carry run over into the sign. */
KERNEL_INLINE uint16_t to_bf16(float x) {
    uint32_t bits = float_bits(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan = bits >> 16 | 0x40u;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* Shifted into place, an fp16 is a float whose exponent is 112 too small, denormals included; the
 * largest exponent means infinity or NaN in both. */
KERNEL_INLINE float from_f16(uint16_t x) {
    uint32_t magnitude = x & 0x7fffu;
    uint32_t bits = float_bits(float_from_bits(magnitude << 13) * 0x1p112f);

    bits |= magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    return float_from_bits(bits | (uint32_t)(x & 0x8000u) << 16);
}

/* Below 2^-14 results are multiples of 2^-24, the last bit of floats in [1/2, 1): adding 1/2 lets
 * the processor round. */
KERNEL_INLINE uint16_t to_f16(float x) {
    uint32_t bits = float_bits(x);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t small = float_bits(float_from_bits(magnitude) + 0.5f) - float_bits(0.5f);
    uint32_t rounded = magnitude < 0x38800000u ? small : normal;

    rounded = magnitude >= 0x477ff000u ? 0x7c00u : rounded; /* from 65520 up */
    rounded = magnitude > 0x7f800000u ? 0x7e00u : rounded;
    return (uint16_t)(rounded | (bits >> 16 & 0x8000u));
}

#define HALF_KERNELS(type)                                                                         \
    KERNEL(void, kernel_widen_##type)(float *out, const uint16_t *x, size_t n) {                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            out[i] = from_##type(x[i]);                                                            \
        }                                                                                          \
    }                                                                                              \
    KERNEL(void, kernel_narrow_##type)(uint16_t * out, const float *x, size_t n) {                 \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            out[i] = to_##type(x[i]);                                                              \
        }                                                                                          \
    }                                                                                              \
    KERNEL(void, kernel_add_inplace_##type)(uint16_t * x, const uint16_t *y, size_t n) {           \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            x[i] = to_##type(from_##type(x[i]) + from_##type(y[i]));                               \
        }                                                                                          \
    }                                                                                              \
    KERNEL(void, kernel_scale_inplace_##type)(uint16_t * x, float factor, size_t n) {              \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            x[i] = to_##type(factor * from_##type(x[i]));                                          \
        }                                                                                          \
    }

HALF_KERNELS(bf16)
HALF_KERNELS(f16)
