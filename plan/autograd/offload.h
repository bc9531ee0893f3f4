/* plan/autograd/offload.h - what waits, or is done, in the host's memory. Inside plan/ only.
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
 *
 * Optimizer: its moments live on the host, beside a copy of what the rank owns of the parameters.
 * Each gradient is copied there; when it has come the host steps, while the next are on their way,
 * and the stepped parameter goes back. Compute waits for all of them.
 */
#pragma once

#include "plan/optimizer/optimizer.h"

typedef enum {
    PLAN_ON_HOST_GRADIENT,
    PLAN_ON_HOST_PARAMETER,
    PLAN_N_ON_HOST = 4 /* and both moments, which the device makes */
} PlanOnHost;

extern const char *const plan_offload_lanes[]; /* NULL-terminated, after the flavour's */

bool plan_offload_has_params(const PlanRun *run);
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

void plan_offload_step(const PlanOver *all, bool first);
void plan_offload_step_params(const PlanOver *all);    /* all is on the host already */
void plan_offload_zero_gradients(const PlanOver *all); /* zero_grad keeps them */
/* Clips gradients that lie on the host, each rank knowing its part of them. FSDP2's ranks add up
 * their norms there, over a process group of the hosts'; FSDP1's on the device: zero as for
 * plan_clip_flat(). */
void plan_offload_clip_norm(PlanRun *run, uint64_t ranks);
void plan_offload_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero);
void plan_offload_send(PlanRun *run, uint32_t checkpoint);       /* its block has been left */
void plan_offload_bring_back(PlanRun *run, uint32_t checkpoint); /* it is to be computed again */
void plan_offload_ask(PlanRun *run, PlanTensor number);          /* the host waits for it */

/* Behind the slots of all parameters: what gradients need there (offload-gradients.c). */
enum {
    PLAN_N_OFFLOAD_SLOTS = 3
};

/* Between the files of offload: a slot of a parameter's owner, and the first behind all of them. */
uint32_t plan_offload_slot(const PlanRun *run, uint32_t parameter, PlanOnHost which);
uint32_t plan_offload_slots_end(const PlanRun *run);
void plan_offload_move(PlanRun *run, PlanOpKind kind, uint32_t slot, PlanOperand tensor,
                       uint8_t lane);
/* To the host, which waits for it. */
void plan_offload_fetch(PlanRun *run, uint32_t slot, PlanOperand tensor, uint8_t lane);
void plan_offload_round(PlanRun *run, uint32_t slot, uint64_t elements, PlanDtype dtype);
