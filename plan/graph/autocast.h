/* plan/graph/autocast.h - what torch.autocast makes of an op's inputs.
 *
 * Inside a region of autocast PyTorch casts, op by op, what the op is given: products and attention
 * get 16 bits, norms, powers and losses fp32, and the rest takes what comes, the widest of it where
 * that differs. A 16-bit copy of a parameter is made once and held until the region is left.
 *
 * A compiler (2.13's Inductor, recorded) writes what a norm or a rotation makes in 16 bits at once,
 * and casts each weight where it is used.
 *
 * Read in PyTorch 2.13 (ATen/autocast_mode.h, its lists) and held to recordings of it. RMSNorm is
 * in the list of fp32 since 2.12 (pytorch #174824); before that its kernel took what came.
 */
#pragma once

#include "plan/graph/graph.h"

/* Whether it casts such an input of the op, and to what. */
bool plan_autocast_input(const PlanGraph *graph, PlanOpKind kind, uint32_t input,
                         PlanDtype *ret_dtype);

/* What an output comes in, given inputs so cast; given where none of them is a floating-point
 * number. */
PlanDtype plan_autocast_result(const PlanGraph *graph, PlanOpKind kind, unsigned output,
                               const uint32_t *inputs, unsigned n, PlanDtype given);

/* How many of its outputs that is true of; what follows them has a dtype of its own. */
unsigned plan_autocast_n_results(PlanOpKind kind);
