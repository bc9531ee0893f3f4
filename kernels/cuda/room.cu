/* kernels/cuda/room.cu - memory that a lane takes for itself, beside what it is given. */
#include "kernels/cuda/lane.h"
#include "kernels/cuda/runtime.h"

size_t kernel_cuda_scratch_bytes(const KernelCuda *lane) {
    return lane->scratch.bytes + lane->callers_scratch.bytes +
           (lane->blas_workspace ? KERNEL_CUDA_BLAS_WORKSPACE : 0);
}

void kernel_cuda_ask_for_room(KernelCuda *lane, bool (*give_room)(void *self), void *self) {
    lane->give_room = give_room;
    lane->room_giver = self;
}

bool kernel_cuda_made_room(KernelCuda *lane, cudaError_t error) {
    bool made =
        error == cudaErrorMemoryAllocation && lane->give_room && lane->give_room(lane->room_giver);
    if (made) {
        cudaGetLastError(); /* no fault of what is tried again */
    }
    return made;
}

KernelCudaFault kernel_cuda_take(KernelCuda *lane, const char *what, size_t bytes,
                                 void **ret_memory) {
    cudaError_t error = cudaMalloc(ret_memory, bytes);
    if (kernel_cuda_made_room(lane, error)) {
        error = cudaMalloc(ret_memory, bytes);
    }
    return error == cudaSuccess
               ? NULL
               : kernel_cuda_fault("cudaMalloc of %zu bytes (%s): %s (%s)", bytes, what,
                                   cudaGetErrorString(error), cudaGetErrorName(error));
}

static KernelCudaFault grown(KernelCuda *lane, KernelCudaScratch *scratch, size_t bytes,
                             void **ret_scratch) {
    if (bytes > scratch->bytes) {
        KERNEL_CUDA_TRY(
            kernel_cuda_check("cudaStreamSynchronize", cudaStreamSynchronize(lane->stream)));
        cudaFree(scratch->data);
        *scratch = {};
        KERNEL_CUDA_TRY(
            kernel_cuda_take(lane, "scratch of a lane", bytes, (void **)&scratch->data));
        scratch->bytes = bytes;
    }
#ifdef KERNEL_EMULATED /* what another op has left there is no number */
    cudaMemsetAsync(scratch->data, 0xff, bytes, lane->stream);
#endif
    *ret_scratch = scratch->data;
    return NULL;
}

KernelCudaFault kernel_cuda_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch) {
    return grown(lane, &lane->scratch, bytes, ret_scratch);
}

KernelCudaFault kernel_cuda_spare_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch) {
    bool (*give_room)(void *self) = lane->give_room;
    lane->give_room = NULL;
    KernelCudaFault fault = kernel_cuda_scratch(lane, bytes, ret_scratch);
    lane->give_room = give_room;
    return fault;
}

KernelCudaFault kernel_cuda_callers_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch) {
    return grown(lane, &lane->callers_scratch, bytes, ret_scratch);
}
