/* plan/graph/boundaries.h - what FSDP2's mixed precision casts where a unit begins and ends.
 *
 * A unit's hooks cast what its module is given to the dtype in which its parameters are gathered,
 * and what it gives to output_dtype (MixedPrecisionPolicy). A family knows no units: it goes on
 * naming the values that were cast, and each name stands for the cast from then on; inside of a
 * unit for the cast that the unit was given. Without such units all this is nothing.
 *
 * Read in PyTorch 2.13 (torch/distributed/fsdp/_fully_shard/_fsdp_state.py) and held to recordings.
 * Inside plan/graph/ only, but for plan_graph_stand_in() (emit.h).
 */
#pragma once

#include "plan/graph/private.h"

/* What the module is given, which is entered with the next step; in ret_given as it is cast. */
void plan_boundary_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n,
                         uint32_t *ret_given);
/* The module that was entered at a step has been left with results. */
void plan_boundary_leave(PlanGraph *graph, uint32_t module, uint32_t enter, const uint32_t *results,
                         unsigned n);
/* A result of the root, of n, as what is made of it is differentiated: beside a loss, which is a
 * number, backward comes to nothing else that the root gives. */
uint32_t plan_boundary_differentiated(PlanGraph *graph, uint32_t value, unsigned n);
