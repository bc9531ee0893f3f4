/* exec/cuda/losses.h - losses on their way to the host. Each is copied to pinned memory right after
 * the op that makes it, and read there when its step is over.
 *
 * Owns: the pinned memory they arrive in. Borrows: ops. Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "exec/play.h"
#include "exec/task.h"

typedef struct {
    GQueue all;   /* as sent */
    char *pinned; /* room for n of them, used in turn */
    unsigned n, next;
} ExecCudaLosses;

/* n: losses of all the steps that may be under way at once. */
bool exec_cuda_losses_init(ExecCudaLosses *losses, unsigned n, GError **error);
void exec_cuda_losses_clear(ExecCudaLosses *losses); /* of zeros is fine; after the streams' end */
/* Copies the loss of an op that the stream has been given. share: its weight in the step's loss. */
bool exec_cuda_losses_send(ExecCudaLosses *losses, const PlanPosition *at, const ExecTask *task,
                           double share, cudaStream_t stream, GError **error);
/* Takes in the losses of the steps that have ended. */
bool exec_cuda_losses_read(ExecCudaLosses *losses, ExecPlay *play, GError **error);
