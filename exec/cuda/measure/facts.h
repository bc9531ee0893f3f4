/* exec/cuda/measure/facts.h - what a reader of a trace must know of the GPU and its software.
 *
 * Names, versions, and, where the management library (NVML) can be loaded, clocks, power and the
 * GPU's own count of its memory. Of the current device. Threads: the host's.
 */
#pragma once

#include "trace/trace.h"

/* Into the header; a fact that cannot be had is left out. */
void exec_cuda_facts_add(Trace *trace);
