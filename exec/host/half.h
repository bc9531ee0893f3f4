/* exec/host/half.h - operands stored in 16 bits: bf16 and fp16.
 *
 * Every op computes in fp32. Operands stored in 16 bits are widened into scratch memory before the
 * op and rounded once after it, so that a sum inside an op is never rounded, as on a GPU. The
 * scratch belongs to the lane's thread, grows to what the largest op needs, and is not part of the
 * modeled device's memory.
 */
#pragma once

#include "exec/host/launch.h"

typedef bool (*ExecRun)(const ExecTask *task, GError **error);

/* Runs the op on widened operands, or as it is where none is stored in 16 bits. */
bool exec_host_run_widened(const ExecTask *task, ExecRun run, GError **error);
