#include "plan/dtype.h"

static const char *const names[PLAN_N_DTYPES] = {
    [PLAN_FP32] = "fp32",   [PLAN_BF16] = "bf16",   [PLAN_FP16] = "fp16",
    [PLAN_INT64] = "int64", [PLAN_UINT8] = "uint8", [PLAN_INT32] = "int32",
    [PLAN_E4M3] = "e4m3",   [PLAN_E5M2] = "e5m2",   [PLAN_FP64] = "fp64",
};

const uint8_t plan_dtype_sizes[PLAN_N_DTYPES] = {
    [PLAN_FP32] = 4,  [PLAN_BF16] = 2, [PLAN_FP16] = 2, [PLAN_INT64] = 8, [PLAN_UINT8] = 1,
    [PLAN_INT32] = 4, [PLAN_E4M3] = 1, [PLAN_E5M2] = 1, [PLAN_FP64] = 8,
};

const char *plan_dtype_name(PlanDtype dtype) {
    g_assert(dtype < PLAN_N_DTYPES);
    return names[dtype];
}

bool plan_dtype_parse(const char *name, PlanDtype *ret_dtype) {
    for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
        if (g_str_equal(names[i], name)) {
            *ret_dtype = (PlanDtype)i;
            return true;
        }
    }
    return false;
}
