/* exec/host/positions.h - what a pass makes of nothing but positions and labels: rotary tables, op
 * by op, and targets that are one behind their tokens. Layouts are those of plan/op/ops.def.
 */
#pragma once

#include "exec/host/launch.h"

void exec_positions_compute(const ExecTask *task);
