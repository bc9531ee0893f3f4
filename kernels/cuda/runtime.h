/* kernels/cuda/runtime.h - what holds for all CUDA kernels, and what a lane needs to run them.
 *
 * Conventions of this folder. The lane comes first, then outputs, then inputs, then sizes, then
 * scalars, then the type of the stored numbers. Pointers are to the device's memory, arrays are
 * row-major and contiguous unless a stride is given, strides count elements. A size of zero is
 * allowed and does nothing. An output is written in full and never read first, unless the comment
 * says "in place" or "accumulates"; where "may alias" is said, an output may be exactly one of the
 * inputs. Nothing waits for the device: a call puts kernels on the lane's stream and returns.
 * Numbers stored in 16 bits are widened, all arithmetic is in fp32 (sums in fp32 by a fixed tree,
 * so that results repeat bit by bit), and each output is rounded once.
 * Statistics (mean, rstd, logsumexp) and the tables of a rotation's angles that are said to be
 * float are fp32 whatever the type is. Arrays need only the alignment of their elements; those
 * aligned to 16 bytes are read 16 bytes a thread, others one number a thread.
 *
 * A call that fails returns a text that names the CUDA, cuBLAS or cuDNN call and its error, else
 * NULL. The text is the calling thread's and lasts until its next failure. What fails on the device
 * shows at the next synchronization, as CUDA has it.
 *
 * Indices outside their table: nothing outside the table is touched, and the tag of the first op
 * that met one is kept in host memory (kernel_cuda_bad_index()).
 *
 * Owns: the lane's scratch memory, library handles and plans. Borrows: the stream. Threads: a lane
 * is used by one thread at a time.
 */
#pragma once
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How numbers are stored. The first three stand as PLAN_FP32, PLAN_BF16, PLAN_FP16 do. */
typedef enum {
    KERNEL_CUDA_F32,
    KERNEL_CUDA_BF16,
    KERNEL_CUDA_F16,
} KernelCudaType;

static inline size_t kernel_cuda_type_bytes(KernelCudaType type) {
    return type == KERNEL_CUDA_F32 ? 4 : 2;
}

/* How products of fp32 matrices are formed: whether their factors may be rounded to tf32. */
typedef enum {
    KERNEL_CUDA_EXACT,
    KERNEL_CUDA_TF32,
} KernelCudaMath;

/* NULL: all is well. */
typedef const char *KernelCudaFault;

typedef struct _KernelCuda KernelCuda; /* what one stream needs to run kernels */

/* On the current device. */
KernelCudaFault kernel_cuda_new(KernelCuda **ret_lane, cudaStream_t stream, KernelCudaMath math);
/* NULL is fine. Waits for the stream. */
void kernel_cuda_free(KernelCuda *lane);

cudaStream_t kernel_cuda_stream(const KernelCuda *lane);

/* Device memory that the lane holds for itself: cuBLAS's workspace, from the first product on; the
 * stages of reductions; what callers ask for. Grown when an op needs more than any did before (the
 * stream is then waited for), never given back. */
size_t kernel_cuda_scratch_bytes(const KernelCuda *lane);
/* Who is asked for room when the device has none for that, or for the code of a kernel that is
 * launched for the first time, by the thread that uses the lane. It says whether it has given any
 * back; what lanes still use must then be in it no more. */
void kernel_cuda_ask_for_room(KernelCuda *lane, bool (*give_room)(void *self), void *self);

/* So much of it for whoever calls kernels, who do not touch it; until the next call of this. */
KernelCudaFault kernel_cuda_callers_scratch(KernelCuda *lane, size_t bytes, void **ret_scratch);

/* What follows belongs to this op; 0 at first. */
void kernel_cuda_tag(KernelCuda *lane, uint32_t op);
/* Whether an op met an index outside its table since the last call, and which was the first.
 * Complete for what the stream was waited for. */
bool kernel_cuda_bad_index(KernelCuda *lane, uint32_t *ret_op);

/* The libraries behind the products and attention, and their versions, for headers of reports:
 * "cuBLASLt 13.0.2, cuDNN 9.13.0" or "cuBLASLt 13.0.2, no cuDNN". */
const char *kernel_cuda_libraries(void);

#ifdef __cplusplus
}
#endif
