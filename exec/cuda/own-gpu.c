#include "exec/cuda/own-gpu.h"

#include "exec/cuda/calls.h"

bool exec_cuda_take_gpu(const ExecComm *comm, GError **error) {
    int n = 0;
    if (!exec_cuda_ok(cudaGetDeviceCount(&n), "cudaGetDeviceCount", error)) {
        g_prefix_error(error, "no GPU can be used: ");
        return false;
    }
    return exec_cuda_ok(cudaSetDevice((int)(comm->local_rank % (unsigned)n)), "cudaSetDevice",
                        error);
}

bool exec_cuda_own_bus(char ret_bus[EXEC_CUDA_BUS_TEXT], GError **error) {
    int device;
    return exec_cuda_ok(cudaGetDevice(&device), "cudaGetDevice", error) &&
           exec_cuda_ok(cudaDeviceGetPCIBusId(ret_bus, EXEC_CUDA_BUS_TEXT, device),
                        "cudaDeviceGetPCIBusId", error);
}

uint64_t exec_cuda_used_bytes(void) {
    size_t free_bytes, total_bytes;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? total_bytes - free_bytes : 0;
}

uint64_t exec_cuda_free_bytes(void) {
    size_t free_bytes, total_bytes;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? free_bytes : 0;
}
