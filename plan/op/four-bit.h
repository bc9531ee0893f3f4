/* plan/op/four-bit.h - what weights in 4 bits are: bitsandbytes' NF4 and FP4 (0.50).
 *
 * A number is the place of one of 16 values, times the largest magnitude of its block of 64. With
 * double quantization these magnitudes, less their mean, are places in a map of 256 values, times
 * the largest of their blocks of 256.
 */
#pragma once

typedef enum {
    PLAN_FOUR_BIT_NF4 = 1, /* values as likely as each other, of normally distributed weights */
    PLAN_FOUR_BIT_FP4,     /* a sign, two bits of exponent, one of mantissa */
    PLAN_N_FOUR_BIT_CODES
} PlanFourBitCode;

enum {
    PLAN_FOUR_BIT_VALUES = 16,
    PLAN_FOUR_BIT_BLOCK = 64,
    PLAN_FOUR_BIT_MAP = 256,
    PLAN_FOUR_BIT_MAP_BLOCK = 256
};
