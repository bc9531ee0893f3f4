/* exec/convert.h - numbers that are stored as fp32, bf16 or fp16: from one to another, and scaled.
 *
 * Widening is exact; narrowing rounds to nearest, ties to even. Threads: any.
 */
#pragma once

#include "plan/dtype.h"
#include <stddef.h>

/* n elements, widened or rounded where the dtypes differ. The two may be one place when they do
 * not. */
void exec_convert(gpointer to, PlanDtype to_dtype, gconstpointer from, PlanDtype from_dtype,
                  size_t n);
/* x *= factor; in 16 bits each product is rounded once. */
void exec_scale(gpointer x, PlanDtype dtype, float factor, size_t n);
