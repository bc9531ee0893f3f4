/* kernels/cuda/runtime.cu - see runtime.h. */
#include "kernels/cuda/runtime.h"

#include <cublasLt.h>

#include <mutex>
#include <string>

#include "kernels/cuda/lane.h"

static KernelCudaFault ask(int *ret_value, cudaDeviceAttr attribute, int device) {
    return kernel_cuda_check("cudaDeviceGetAttribute",
                             cudaDeviceGetAttribute(ret_value, attribute, device));
}

/* On the chips of data centres cuBLASLt's products end with GELU (an H100 is faster so:
 * karpathy/llm.c pull request 653, 2024-06). On others a second kernel does it, slower than this
 * room's: measured on an RTX 4090 (8.9; pull request 338, 2024-05) and an RTX 5090 (12.0, 296 us
 * for 236; sgl-project/sglang pull request 34350, 2026-08). Of an A100 (8.0) nothing is known. */
static bool ends_with_gelu(int major, int minor) {
    return (major == 8 && minor == 0) || major == 9 || major == 10;
}

/* On an A100 (8.0) GELU's gradient and the sums of its rows end a product in one kernel; on an H100
 * cuBLASLt 12.4.5 has a kernel for the gradient alone, and leaves both to the slow one behind the
 * product (tests/pretended-gpu, 2026-11). Of later ones nothing is known. */
static bool sums_gelu(int major) {
    return major == 8;
}

static KernelCudaFault set_up(KernelCuda *lane) {
    int device, minor;
    KERNEL_CUDA_TRY(kernel_cuda_check("cudaGetDevice", cudaGetDevice(&device)));
    KERNEL_CUDA_TRY(ask(&lane->processors, cudaDevAttrMultiProcessorCount, device));
    KERNEL_CUDA_TRY(
        ask(&lane->block_shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    KERNEL_CUDA_TRY(ask(&lane->major, cudaDevAttrComputeCapabilityMajor, device));
    KERNEL_CUDA_TRY(ask(&minor, cudaDevAttrComputeCapabilityMinor, device));
    lane->blas_knows_gelu = ends_with_gelu(lane->major, minor);
    lane->blas_sums_gelu = lane->blas_knows_gelu && sums_gelu(lane->major);
    KERNEL_CUDA_TRY(kernel_cuda_check("cudaHostAlloc",
                                      cudaHostAlloc((void **)&lane->flag, sizeof *lane->flag,
                                                    cudaHostAllocPortable | cudaHostAllocMapped)));
    *lane->flag = 0;
    return kernel_cuda_blas_new(lane);
}

KernelCudaFault kernel_cuda_new(KernelCuda **ret_lane, cudaStream_t stream, KernelCudaMath math) {
    KernelCuda *lane = new KernelCuda();
    lane->stream = stream;
    lane->math = math;
    KernelCudaFault fault = set_up(lane);
    if (fault) {
        kernel_cuda_free(lane);
        return fault;
    }
    *ret_lane = lane;
    return NULL;
}

void kernel_cuda_free(KernelCuda *lane) {
    if (!lane) {
        return;
    }
    cudaStreamSynchronize(lane->stream);
    kernel_cuda_blas_free(lane);
    kernel_cuda_cudnn_free(lane);
    cudaFree(lane->blas_workspace);
    cudaFree(lane->scratch.data);
    cudaFree(lane->callers_scratch.data);
    cudaFree(lane->moment);
    cudaFreeHost(lane->flag);
    delete lane;
}

cudaStream_t kernel_cuda_stream(const KernelCuda *lane) {
    return lane->stream;
}

void kernel_cuda_tag(KernelCuda *lane, uint32_t op) {
    lane->tag = op;
}

bool kernel_cuda_bad_index(KernelCuda *lane, uint32_t *ret_op) {
    unsigned found = *(volatile unsigned *)lane->flag;
    if (!found) {
        return false;
    }
    *ret_op = found - 1;
    *(volatile unsigned *)lane->flag = 0;
    return true;
}

const char *kernel_cuda_libraries(void) {
    static std::once_flag once;
    static std::string text;
    std::call_once(once, [] {
        size_t version = cublasLtGetVersion();
        text = "cuBLASLt " + std::to_string(version / 10000) + "." +
               std::to_string(version / 100 % 100) + "." + std::to_string(version % 100) + ", " +
               kernel_cuda_cudnn_version();
    });
    return text.c_str();
}
