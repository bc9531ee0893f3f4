/* exec/host/experts.h - the ops of experts: their operands and dims as kernels/host/experts.h takes
 * them.
 */
#pragma once

#include "exec/host/launch.h"

bool exec_experts_run(const ExecTask *task, GError **error);
