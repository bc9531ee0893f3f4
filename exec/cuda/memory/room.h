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

/* The kernels of a lane ask for room here; for as long as both are. */
void exec_cuda_room_for(ExecCudaRoom *room, KernelCuda *kernels);
