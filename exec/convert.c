#include "exec/convert.h"

#include <string.h>

#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"

static void widen(float *to, gconstpointer from, PlanDtype dtype, size_t n) {
    (dtype == PLAN_BF16 ? kernel_widen_bf16 : kernel_widen_f16)(to, from, n);
}

static void narrow(gpointer to, const float *from, PlanDtype dtype, size_t n) {
    (dtype == PLAN_BF16 ? kernel_narrow_bf16 : kernel_narrow_f16)(to, from, n);
}

/* Between the two kinds of halves, by way of floats that stay in the cache. */
static void convert_halves(uint16_t *to, PlanDtype to_dtype, const uint16_t *from,
                           PlanDtype from_dtype, size_t n) {
    float block[1024];
    for (size_t at = 0, part; at < n; at += part) {
        part = MIN(n - at, G_N_ELEMENTS(block));
        widen(block, from + at, from_dtype, part);
        narrow(to + at, block, to_dtype, part);
    }
}

void exec_convert(gpointer to, PlanDtype to_dtype, gconstpointer from, PlanDtype from_dtype,
                  size_t n) {
    if (to_dtype == from_dtype) {
        memmove(to, from, n * plan_dtype_bytes(to_dtype));
    } else if (to_dtype == PLAN_FP32) {
        widen(to, from, from_dtype, n);
    } else if (from_dtype == PLAN_FP32) {
        narrow(to, from, to_dtype, n);
    } else {
        convert_halves(to, to_dtype, from, from_dtype, n);
    }
}

void exec_scale(gpointer x, PlanDtype dtype, float factor, size_t n) {
    if (dtype == PLAN_FP32) {
        kernel_scale_f32(x, x, factor, n);
    } else {
        (dtype == PLAN_BF16 ? kernel_scale_inplace_bf16 : kernel_scale_inplace_f16)(x, factor, n);
    }
}
