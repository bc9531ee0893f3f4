/* exec/host/half.h - operands stored in 16 bits: bf16 and fp16.
 *
 * Every op computes in fp32. What an op reads of numbers stored in 16 bits is first widened into
 * scratch memory, what it writes goes there too and is rounded once, when the op is done; so a sum
 * inside an op is never rounded, as on a GPU. The scratch belongs to the lane's thread, is as large
 * as the largest op has needed, and lies outside the modeled device's memory.
 */
#pragma once

#include "exec/host/launch.h"

typedef bool (*ExecRun)(const ExecTask *task, GError **error);

/* Runs the op on widened operands, or as it is where none is stored in 16 bits. */
bool exec_host_run_widened(const ExecTask *task, ExecRun run, GError **error);
