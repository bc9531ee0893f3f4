/* exec/host-step.h - what is done to tensors that lie on the host, in slots: in fp32, and rounded
 * to what the slot stores.
 *
 * An optimizer's step: gradient, parameter and what the optimizer keeps lie in slots from the op's
 * on; an op may be of a part of them. Before it, gradients are added up, clipped over all ranks, or
 * set to zero; before all steps parameters get their first values. Of a scaled loss it is asked
 * whether to step at all, and what the optimizer is given until it is asked again it leaves out.
 * Threads: any, but see exec/comm/comm.h for ranks that add up.
 */
#pragma once

#include "exec/task.h"
#include "kernels/host/optimizer.h"

bool exec_host_step(const ExecTask *task, GError **error);

/* What an Adam op's attributes say. */
KernelAdam exec_adam_of(const ExecTask *task, int64_t step);
