/* plan/optimizer/on-host.h - what the host does with its own memory in the optimizer's step: it
 * zeroes and clips gradients, and steps. Inside plan/ only.
 *
 * With parameters offloaded all is there (../autograd/offload.h). A schedule of this project's own
 * has the optimizer alone there: its moments live on the host, beside a copy of what the rank owns
 * of the parameters. Each gradient is copied there; when it has come the host steps, while the next
 * are on their way, and the stepped parameter goes back. Compute waits for all of them.
 */
#pragma once

#include "plan/optimizer/over.h"

void plan_offload_step(const PlanOver *all, bool first);
void plan_offload_step_params(const PlanOver *all);    /* all is on the host already */
void plan_offload_zero_gradients(const PlanOver *all); /* zero_grad keeps them */
/* Clips gradients that lie on the host, each rank knowing its part of them. FSDP2's ranks add up
 * their norms there, over a process group of the hosts'; FSDP1's on the device: zero as for
 * plan_clip_flat(). */
void plan_offload_clip_norm(PlanRun *run, uint64_t ranks);
void plan_offload_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero);
