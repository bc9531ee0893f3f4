/* exec/host-adam.h - the step of an offloaded optimizer, on the host, in its slots.
 *
 * Gradient, parameter and both moments lie in four slots from the op's on, as fp32. Threads: any.
 */
#pragma once

#include "exec/task.h"
#include "kernels/host/optimizer.h"

/* False with error: more elements than any tensor of the plan, so nobody put them there. */
bool exec_host_adam_is_bounded(const PlanRole *role, const PlanOp *op, GError **error);
bool exec_host_adam(const ExecTask *task, GError **error);

/* What an Adam op's attributes say. */
KernelAdam exec_adam_of(const ExecTask *task, int64_t step);
