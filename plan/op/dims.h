/* plan/op/dims.h - whether an op's dims contradict each other.
 *
 * Inside plan/op only.
 */
#pragma once

#include "plan/op/op.h"

/* d: its dims, checked before: none is 0 unless its row allows that. */
bool plan_dims_contradict(PlanOpKind kind, const uint64_t *d);
