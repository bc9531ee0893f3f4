/* plan/dtype.h - the element types a buffer can hold.
 *
 * A byte count is always elements times plan_dtype_bytes(); nothing in the plan is packed.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    PLAN_FP32,
    PLAN_BF16,
    PLAN_FP16,
    PLAN_INT64,
    PLAN_UINT8,
    PLAN_INT32,
    PLAN_E4M3, /* float8: 4 bits of exponent, 3 of mantissa */
    PLAN_E5M2,
    PLAN_FP64, /* largest numbers that ranks agree on, and nothing else */
    PLAN_N_DTYPES
} PlanDtype;

const char *plan_dtype_name(PlanDtype dtype);
bool plan_dtype_parse(const char *name, PlanDtype *ret_dtype);

static inline bool plan_dtype_is_float8(PlanDtype dtype) {
    return dtype == PLAN_E4M3 || dtype == PLAN_E5M2;
}

/* Of fp32, bf16 and fp16, which these alone tell apart; any other number of bits is fp32's. */
static inline unsigned plan_dtype_mantissa_bits(PlanDtype dtype) {
    return dtype == PLAN_BF16 ? 7 : dtype == PLAN_FP16 ? 10 : 23;
}

static inline PlanDtype plan_dtype_of_mantissa(int64_t bits) {
    return bits == 7 ? PLAN_BF16 : bits == 10 ? PLAN_FP16 : PLAN_FP32;
}

extern const uint8_t plan_dtype_sizes[PLAN_N_DTYPES]; /* bytes */
static inline uint64_t plan_dtype_bytes(PlanDtype dtype) {
    g_assert(dtype < PLAN_N_DTYPES);
    return plan_dtype_sizes[dtype];
}

/* How many elements that many bytes hold; sizes are powers of two, and a division is slow. */
static inline uint64_t plan_dtype_count(PlanDtype dtype, uint64_t bytes) {
    return bytes >> __builtin_ctz(plan_dtype_sizes[dtype]);
}
