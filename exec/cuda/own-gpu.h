/* exec/cuda/own-gpu.h - the GPU that a rank has, the current device of its process: where it sits,
 * and what is in use of its memory. Threads: the host's.
 */
#pragma once

#include "exec/comm/comm.h"

/* Makes a GPU this process's own: ranks of one machine are dealt out to the GPUs that it sees.
 * Fails where there is none. */
bool exec_cuda_take_gpu(const ExecComm *comm, GError **error);

enum {
    EXEC_CUDA_BUS_TEXT = 32 /* "00000000:00:00.0", and room */
};

/* Where it sits in the machine. */
bool exec_cuda_own_bus(char ret_bus[EXEC_CUDA_BUS_TEXT], GError **error);
/* How much of its memory is in use, by whatever program, and how much is free; 0: the driver does
 * not say. */
uint64_t exec_cuda_used_bytes(void);
uint64_t exec_cuda_free_bytes(void);
