/* exec/cuda/measure/watch.h - clock and power of the GPU while it works.
 *
 * A thread of its own looks some times a second, from start to stop: what stands there when all is
 * over is an idle GPU's. Opening NVML takes many milliseconds, so that is done before ranks begin
 * together. Of the current device.
 */
#pragma once

#include "trace/trace.h"

typedef struct _ExecCudaWatch ExecCudaWatch;

ExecCudaWatch *exec_cuda_watch_new(void); /* NULL: there is no NVML */
void exec_cuda_watch_start(ExecCudaWatch *watch);
void exec_cuda_watch_stop(ExecCudaWatch *watch);
/* Into the header; after the stop. */
void exec_cuda_watch_add(const ExecCudaWatch *watch, Trace *trace);
void exec_cuda_watch_free(ExecCudaWatch *watch); /* NULL is fine, here and above */
