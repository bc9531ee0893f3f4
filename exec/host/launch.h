/* exec/host/launch.h - one op of a plan becomes calls of kernels/host. */
#pragma once

#include "exec/task.h"

/* False with error: the host cannot do this op. Asked before a play begins. */
bool exec_host_knows(const ExecContext *context, const PlanOp *op, GError **error);
/* Runs it; blocks until it is done. */
bool exec_host_run(const ExecTask *task, GError **error);
/* A part of it: an op that is a kernel (compute.c). */
bool exec_host_compute(const ExecTask *task, GError **error);
