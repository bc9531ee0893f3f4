/* exec/offload/host-step.h - arithmetic on tensors that lie on the host, in slots. It is done in
 * fp32, and results are rounded to the slot's dtype.
 *
 * In an optimizer's step the gradient, the parameter and the optimizer's state lie in consecutive
 * slots, from the op's on; an op may cover a part of each. Before a step gradients are added up,
 * clipped over all ranks, or set to zero; before the first one parameters get their first values.
 * With a scaled loss the host first decides whether to step at all; if not, all ops of the
 * optimizer are left out until it decides again.
 * Threads: any, but see exec/comm/comm.h for ranks that add up.
 */
#pragma once

#include "exec/task.h"
#include "kernels/host/lists/optimizer.h"

bool exec_host_step(const ExecTask *task, GError **error);

/* What an Adam op's attributes say. */
KernelAdam exec_adam_of(const ExecTask *task, int64_t step);
