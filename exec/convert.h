/* exec/convert.h - converts and scales numbers that are stored as fp32, bf16 or fp16.
 *
 * Widening is exact; narrowing rounds to nearest, ties to even. Threads: any.
 */
#pragma once

#include "plan/dtype.h"
#include <stddef.h>

/* Converts n elements. If the dtypes are the same, `to` and `from` may overlap; else they must
 * not. */
void exec_convert(gpointer to, PlanDtype to_dtype, gconstpointer from, PlanDtype from_dtype,
                  size_t n);
/* x *= factor; in 16 bits each product is rounded once. */
void exec_scale(gpointer x, PlanDtype dtype, float factor, size_t n);
