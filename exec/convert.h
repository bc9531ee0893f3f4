/* exec/convert.h - numbers from one way of storing them to another: fp32, bf16, fp16.
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
