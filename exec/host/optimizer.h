/* exec/host/optimizer.h - the optimizers' steps, and the norms and factors of clipping. */
#pragma once

#include "exec/host/launch.h"

/* The op's operands are lists; its kind is one of an optimizer or of clipping. */
void exec_host_optimize(const ExecTask *task);
