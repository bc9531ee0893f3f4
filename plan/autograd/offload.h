/* plan/autograd/offload.h - what waits in the host's memory: activations, parameters, their
 * gradients. Inside plan/ only. What is done there in the optimizer's step is in
 * ../optimizer/on-host.h.
 *
 * Parameters, as FSDP1 and FSDP2 of PyTorch do it: a rank's shards, their gradients and the
 * optimizer live there, and the flavours say when something moves. A tensor lies in numbered slots:
 * its gradient, the parameter and the optimizer's moments. FSDP1's are whole flat shards, of which
 * each parameter is a part. PyTorch pins this memory, so copies run on the lane that asks for them.
 *
 * Two schedules of this project's own. Activations: when a checkpointed block's forward has been
 * issued, its first argument is copied to a slot of the host on a lane of its own and let go; the
 * allocator gives its memory away when that copy has run. Before the block is computed again the
 * argument comes back on another lane; that of the block before it is asked for at the same time,
 * so that its way back is hidden behind this block's backward. The last block's stays, for backward
 * needs it at once. A slot holds one argument of one pass.
 */
#pragma once

#include "plan/autograd/offload-slots.h"

/* Shards never come to the device before training: they are made on the host. */
bool plan_offload_constructs(const PlanRun *run);
/* As plan_init_parameter(), in a shard of so many elements; when all that it holds has been made
 * it is rounded to the model's dtype. */
void plan_offload_init_parameter(PlanRun *run, uint32_t parameter, PlanAxis axis,
                                 uint64_t rank_stride, uint64_t offset, uint64_t elements);
void plan_offload_end_init(PlanRun *run, uint32_t parameter, uint64_t elements);
/* What the tensor's owner (its unit's first parameter with FSDP1, else itself) has on the host. It
 * gets a shard where it is cut on the device, by a copy that blocks. */
void plan_offload_put_shard(PlanRun *run, uint32_t parameter, uint32_t buffer, uint8_t lane);
void plan_offload_get_shard(PlanRun *run, uint32_t parameter, uint32_t buffer, uint8_t lane);
void plan_offload_put_gradient(PlanRun *run, uint32_t parameter, PlanOperand gradient,
                               uint8_t lane);
void plan_offload_put_gradient_and_wait(PlanRun *run, uint32_t parameter, PlanOperand gradient,
                                        uint8_t lane); /* where PyTorch's copy blocks */
/* The host adds it to what it has; PyTorch's copy blocks then. */
void plan_offload_add_gradient(PlanRun *run, uint32_t parameter, PlanOperand gradient,
                               uint8_t lane);

/* Rounds the parameter's gradient on the host (`elements` of it) to a narrower dtype. */
void plan_offload_round_gradient(PlanRun *run, uint32_t parameter, uint64_t elements,
                                 PlanDtype dtype);

void plan_offload_send(PlanRun *run, uint32_t checkpoint);       /* its block has been left */
void plan_offload_bring_back(PlanRun *run, uint32_t checkpoint); /* it is to be computed again */
