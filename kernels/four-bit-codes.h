/* kernels/four-bit-codes.h - the values of numbers in 4 bits, for the host and for CUDA. */
#pragma once
#include <stdint.h>

enum {
    KERNEL_FOUR_BIT_BLOCK = 64,
    KERNEL_FOUR_BIT_VALUES = 16,
    KERNEL_BYTE_MAP = 256,
    KERNEL_BYTE_BLOCK = 256
};

typedef enum {
    KERNEL_FOUR_BIT_NF4,
    KERNEL_FOUR_BIT_FP4
} KernelFourBitCode;

/* Places in the order of their values; of fp4 those of magnitudes, beside which is a sign. */
typedef struct {
    float values[KERNEL_FOUR_BIT_VALUES];
    unsigned n_places;
    uint8_t places[KERNEL_FOUR_BIT_VALUES];
    uint8_t sign;
    uint8_t of_zero;
} KernelFourBitValues;

static const KernelFourBitValues kernel_four_bit_values[] = {
    /* Dettmers et al. 2023 (QLoRA), appendix E: quantiles of a normal distribution, with 0 and both
     * ends. */
    {{-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
      -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
      0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
      0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f},
     16,
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
     0,
     7},
    /* By bits: of the lower three the magnitude, in twelfths; the fourth is the sign. */
    {{0.0f, 0.0625f / 12, 8.0f / 12, 1.0f, 4.0f / 12, 6.0f / 12, 2.0f / 12, 3.0f / 12, 0.0f,
      -0.0625f / 12, -8.0f / 12, -1.0f, -4.0f / 12, -6.0f / 12, -2.0f / 12, -3.0f / 12},
     8,
     {0, 1, 6, 7, 4, 5, 2, 3},
     8,
     0},
};
