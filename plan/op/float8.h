/* plan/op/float8.h - the meaning of the dims of float8 ops, and float8's own constants.
 *
 * Facts: torchao.float8 0.18, recorded and read (float8_utils.py: amax_to_scale). A scale per row
 * or per column is a power of two; a scale of a whole tensor is not.
 */
#pragma once

#include "plan/dtype.h"

/* What has a scale of its own. */
typedef enum {
    PLAN_FLOAT8_WHOLE,
    PLAN_FLOAT8_EACH_ROW,
    PLAN_FLOAT8_EACH_COLUMN,
    PLAN_FLOAT8_SCALED_ALREADY, /* numbers that are cast as they come */
    PLAN_N_FLOAT8_ALONG
} PlanFloat8Along;

/* What is computed on the way to the cast: nothing, or an op that a compiler merges with it. */
typedef enum {
    PLAN_FLOAT8_AS_THEY_ARE,
    PLAN_FLOAT8_BY_NORM,
    PLAN_FLOAT8_BY_SWIGLU,
    PLAN_N_FLOAT8_MADE
} PlanFloat8Made;

/* One step of PyTorch's eager kernels; each in the dtype of what it writes. */
typedef enum {
    PLAN_FLOAT8_MAGNITUDE,
    PLAN_FLOAT8_CONVERT,  /* between fp32 and fp64 */
    PLAN_FLOAT8_AT_LEAST, /* PLAN_FLOAT8_LEAST */
    PLAN_FLOAT8_INVERT,
    PLAN_FLOAT8_TIMES_LARGEST,
    PLAN_FLOAT8_TIMES_SCALE,
    PLAN_FLOAT8_BOUND,            /* to what float8 can hold */
    PLAN_FLOAT8_INVERSE_SCALE,    /* of a largest magnitude: what a product multiplies by */
    PLAN_FLOAT8_INVERSE_OF_POWER, /* the same where the scale is a power of two */
    PLAN_N_FLOAT8_STEPS
} PlanFloat8Step;

/* MXFP8: numbers that share a scale; exponents that lie together for a product (cuBLAS, 1D block
 * scaling factors layout): of so many rows, and so many blocks of each. */
enum {
    PLAN_MXFP8_BLOCK = 32,
    PLAN_MXFP8_TILE_ROWS = 128,
    PLAN_MXFP8_TILE_COLS = 4,
    PLAN_MXFP8_ORDER_KERNELS = 3 /* of exponents from a cast along columns: a fill, two copies */
};

/* torchao's EPS: a largest magnitude below it counts as this much. */
#define PLAN_FLOAT8_LEAST 1e-12

/* The largest number that the dtype holds. e4m3 has no infinity (torch.float8_e4m3fn). */
static inline double plan_float8_largest(PlanDtype dtype) {
    return dtype == PLAN_E5M2 ? 57344 : 448;
}

/* How many scales a matrix has. */
static inline uint64_t plan_float8_n_scales(PlanFloat8Along along, uint64_t rows, uint64_t cols) {
    return along == PLAN_FLOAT8_EACH_ROW ? rows : along == PLAN_FLOAT8_EACH_COLUMN ? cols : 1;
}
