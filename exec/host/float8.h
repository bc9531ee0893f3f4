/* exec/host/float8.h - ops of linear layers in float8 (FLOAT8_OP of ops.def). */
#pragma once

#include "exec/host/launch.h"

void exec_float8_compute(const ExecTask *task);
