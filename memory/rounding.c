#include "memory/rounding.h"

/* Position of the highest bit. */
static uint32_t floor_log2(uint64_t number) {
    return 63 - (uint32_t)__builtin_clzll(number);
}

static uint64_t round_up(uint64_t number, uint64_t step) {
    return (number + step - 1) / step * step;
}

/* Between two powers of two lie `divisions` equal steps; the next one is taken. */
static uint64_t round_to_division(uint64_t bytes, uint32_t divisions) {
    uint64_t step = (UINT64_C(1) << floor_log2(bytes)) / divisions;
    return round_up(bytes, step);
}

uint64_t memory_round(const MemoryOptions *options, uint64_t bytes) {
    if (bytes < MEMORY_BLOCK_LEAST) {
        return MEMORY_BLOCK_LEAST;
    }
    uint32_t log2 = floor_log2(bytes);
    uint32_t interval = log2 < 20 ? 0 : MIN(log2 - 20, MEMORY_N_ROUNDUPS - 1);
    uint64_t divisions = options->roundup_divisions[interval];
    /* Above 512 bytes a division, so that a step is never below 512 bytes, nor 0. */
    if (divisions > 1 && bytes > MEMORY_BLOCK_LEAST * divisions) {
        return round_to_division(bytes, (uint32_t)divisions);
    }
    return round_up(bytes, MEMORY_BLOCK_LEAST);
}

uint64_t memory_segment_size(const MemoryOptions *options, uint64_t bytes) {
    if (bytes <= MEMORY_SMALL_MOST) {
        return MEMORY_SMALL_SEGMENT;
    }
    if (bytes < MEMORY_LARGE_LEAST) {
        return options->large_segment_bytes;
    }
    return round_up(bytes, MEMORY_SEGMENT_STEP);
}
