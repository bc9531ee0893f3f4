/* exec/cuda/memory/room.h - room for what kernels take for themselves, beside the allocator.
 *
 * Workspaces and scratch memory are no tensors of the plan. PyTorch takes them from its allocator,
 * which gives unused segments back to the GPU before it calls memory out. So does this: where the
 * GPU has no room for them left, the allocator gives back all that it only keeps.
 *
 * Borrows: the allocator. Threads: the host's.
 */
#pragma once

#include "kernels/cuda/runtime.h"
#include "memory/caching.h"

typedef struct {
    MemoryCaching *caching;
    uint64_t given_bytes; /* so far */
} ExecCudaRoom;

/* From now on the lane's kernels ask here when the GPU has no room for them. Both must live as long
 * as the other does. */
void exec_cuda_room_for(ExecCudaRoom *room, KernelCuda *kernels);
