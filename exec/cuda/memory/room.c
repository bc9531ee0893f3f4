#include "exec/cuda/memory/room.h"

/* The allocator waits for what streams still do with what it gives back. */
static bool give(void *self) {
    ExecCudaRoom *room = self;
    uint64_t held = memory_caching_reserved(room->caching);
    memory_caching_empty(room->caching);
    uint64_t given = held - memory_caching_reserved(room->caching);
    room->given_bytes += given;
    return given > 0;
}

void exec_cuda_room_for(ExecCudaRoom *room, KernelCuda *kernels) {
    kernel_cuda_ask_for_room(kernels, give, room);
}
