/* kernels/cuda/ranks/standin.h - a kernel that stands in for one of NCCL's, where there is one GPU.
 *
 * It is as many blocks as NCCL would have channels, each of the threads and shared memory of
 * NCCL's, so the same multiprocessors are taken; it reads what a rank would read and writes what it
 * would receive, a piece at a time so that memory is busy all along; and it ends so long after its
 * first block began as the caller says. What others would send are numbers that the caller has made
 * beforehand.
 *
 * Bound: the time that is asked for; else memory, through the multiprocessors it takes.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many numbers stand for what others send; they are taken round and round. */
#define KERNEL_CUDA_STAND_IN_NUMBERS ((size_t)1 << 18)

typedef enum {
    KERNEL_CUDA_STAND_IN_GATHER,  /* others' numbers everywhere but in the own slice */
    KERNEL_CUDA_STAND_IN_SCATTER, /* all of in is read; others' numbers in out, which is a slice */
    KERNEL_CUDA_STAND_IN_REDUCE,  /* out times factor, in place */
    KERNEL_CUDA_STAND_IN_NOTHING, /* only lasts */
} KernelCudaStandInKind;

typedef struct {
    KernelCudaStandInKind kind;
    KernelCudaType type;
    bool is_bytes;       /* in place of the type, of what is gathered */
    size_t elements;     /* of the whole tensor */
    size_t first, slice; /* own elements of it: where they begin, how many they are */
    const void *in;      /* gather: the own slice, NULL where it lies in out already */
    void *out;
    const void *numbers; /* KERNEL_CUDA_STAND_IN_NUMBERS of the type, at 16 bytes */
    size_t from;         /* the first of them that is taken; a multiple of 8, of bytes of 16 */
    float factor;
    unsigned blocks;
    int64_t least_ns;
} KernelCudaStandIn;

KernelCudaFault kernel_cuda_stand_in(KernelCuda *lane, const KernelCudaStandIn *stand_in);

#ifdef __cplusplus
}
#endif
