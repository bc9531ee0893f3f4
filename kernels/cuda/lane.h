/* kernels/cuda/lane.h - what a lane is made of; for .cu files of kernels/cuda only.
 *
 * Every kernel's file reads it, and nvcc reads such a file once for each architecture and once
 * more: so no library's headers are here.
 */
#pragma once
#include "kernels/cuda/runtime.h"

struct KernelCudaCudnn; /* attention/attention-cudnn.cu */
struct KernelCudaBlas;  /* products/product.cu: cuBLASLt's handle, and what it was asked for */

/* When the lane's stand-in for a collective began (ranks/standin.cu); zeros between two. */
struct KernelCudaMoment {
    unsigned long long begun_ns;
    unsigned ended; /* blocks */
};

/* Device memory that grows to what is asked for. */
struct KernelCudaScratch {
    char *data;
    size_t bytes;
};

struct _KernelCuda {
    cudaStream_t stream;
    KernelCudaMath math;
    int processors;                             /* multiprocessors of the device */
    int major;                                  /* of its compute capability */
    int block_shared_bytes;                     /* that a block may be given of shared memory */
    KernelCudaScratch scratch, callers_scratch; /* the kernels' own, and that of who calls them */
    void *blas_workspace; /* device memory; NULL before the lane's first product */
    unsigned *flag;       /* pinned: tag + 1 of the first op with a bad index; 0 */
    unsigned tag;
    KernelCudaBlas *blas;
    /* At a product's end, and not in a slow kernel behind it: GELU; what sums its gradient too. */
    bool blas_knows_gelu, blas_sums_gelu;
    bool (*give_room)(void *self); /* NULL: nobody is asked */
    void *room_giver;
    bool is_short;          /* of memory: products/matmul.cu copies odd rows no more */
    KernelCudaCudnn *cudnn; /* NULL: not there, or not asked for yet */
    char refusal[1024];     /* why cuDNN has not taken a shape, the first such; "": it took all */
    bool own_attention;
    uint64_t attention_calls[2]; /* by KernelCudaAttentionWay */
    KernelCudaMoment *moment;    /* device memory; NULL: not asked for yet */
};

/* What cuBLASLt may use for itself; what NVIDIA advises for Hopper (cuBLAS 13 documentation). */
static const size_t KERNEL_CUDA_BLAS_WORKSPACE = (size_t)32 << 20; /* bytes */

/* Whether a call failed for want of memory, and who is asked for room has given some back: it may
 * be tried again. */
bool kernel_cuda_made_room(KernelCuda *lane, cudaError_t error);
/* Device memory for the lane itself, which frees it; room is asked for where there is none. */
KernelCudaFault kernel_cuda_take(KernelCuda *lane, const char *what, size_t bytes,
                                 void **ret_memory);
/* At least that many bytes of device memory, until the lane's next call of this. */
KernelCudaFault kernel_cuda_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch);
/* The same for what can be done without: nobody is asked for room. */
KernelCudaFault kernel_cuda_spare_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch);

/* A fault's text, formatted; in the thread's buffer. */
KernelCudaFault kernel_cuda_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
KernelCudaFault kernel_cuda_check(const char *call, cudaError_t error);

/* out[col] = sum over p of parts[p, col], in order (reduce.cu). */
KernelCudaFault kernel_cuda_add_parts(KernelCuda *lane, void *out, const float *parts,
                                      size_t n_parts, size_t cols, KernelCudaType type);

/* products/product.cu. */
KernelCudaFault kernel_cuda_blas_new(KernelCuda *lane);
void kernel_cuda_blas_free(KernelCuda *lane);
/* attention/attention-cudnn.cu; attention.cu where there is no cuDNN. */
void kernel_cuda_cudnn_free(KernelCuda *lane);
const char *kernel_cuda_cudnn_version(void);

/* Returns the fault from the calling function, if there is one. */
#define KERNEL_CUDA_TRY(...)                                                                       \
    do {                                                                                           \
        KernelCudaFault fault_ = (__VA_ARGS__);                                                    \
        if (fault_) {                                                                              \
            return fault_;                                                                         \
        }                                                                                          \
    } while (0)
