#include "plan/dtype.h"

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[PLAN_N_DTYPES] = {
    [PLAN_FP32] = {"fp32", 4},   [PLAN_BF16] = {"bf16", 2},   [PLAN_FP16] = {"fp16", 2},
    [PLAN_INT64] = {"int64", 8}, [PLAN_UINT8] = {"uint8", 1},
};

const char *plan_dtype_name(PlanDtype dtype) {
    g_assert(dtype < PLAN_N_DTYPES);
    return dtypes[dtype].name;
}

uint64_t plan_dtype_bytes(PlanDtype dtype) {
    g_assert(dtype < PLAN_N_DTYPES);
    return dtypes[dtype].bytes;
}

bool plan_dtype_parse(const char *name, PlanDtype *ret_dtype) {
    for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
        if (g_str_equal(dtypes[i].name, name)) {
            *ret_dtype = (PlanDtype)i;
            return true;
        }
    }
    return false;
}
