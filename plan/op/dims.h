/* plan/op/dims.h - whether an op's dims contradict each other.
 *
 * Inside plan/op only.
 */
#pragma once

#include "plan/op/op.h"

/* d: its dims, none of which is 0 that must not be. */
bool plan_dims_contradict(PlanOpKind kind, const uint64_t *d);
