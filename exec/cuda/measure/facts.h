/* exec/cuda/measure/facts.h - what a reader of a trace must know of the GPU and its software.
 *
 * Names, versions, and, where the management library (NVML) can be loaded, clocks, power and the
 * GPU's own count of its memory. Of the current device. Threads: the host's.
 */
#pragma once

#include "exec/comm/comm.h"
#include "trace/trace.h"

/* Makes a GPU this process's own: ranks of one machine are dealt out to the GPUs that it
 * sees. Fails where there is none. */
bool exec_cuda_take_gpu(const ExecComm *comm, GError **error);

/* Into the header; a fact that cannot be had is left out. */
void exec_cuda_facts_add(Trace *trace);
/* Memory of the GPU that is in use, whoever uses it, and that is not; 0: it cannot be had. */
uint64_t exec_cuda_facts_used_bytes(void);
uint64_t exec_cuda_facts_free_bytes(void);

/* Looks at clock and power from start to stop, some times a second, from a thread of its own: what
 * stands there when all is over is an idle GPU's. Opening NVML takes many milliseconds, so that is
 * done before ranks begin together. */
typedef struct _ExecCudaWatch ExecCudaWatch;

ExecCudaWatch *exec_cuda_watch_new(void); /* NULL: there is no NVML */
void exec_cuda_watch_start(ExecCudaWatch *watch);
void exec_cuda_watch_stop(ExecCudaWatch *watch);
/* Into the header; after the stop. */
void exec_cuda_watch_add(const ExecCudaWatch *watch, Trace *trace);
void exec_cuda_watch_free(ExecCudaWatch *watch); /* NULL is fine, here and above */
