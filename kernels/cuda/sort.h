/* kernels/cuda/sort.h - positions in the order of their index, equals in the order they stand in;
 * for .cu files of kernels/cuda only.
 *
 * The same bits in every run. n positions take 20 n bytes of the lane's scratch, and some more for
 * counts; what is left there holds until the lane's next call that needs scratch. Bound: memory,
 * three passes for each 9 bits of the limit.
 */
#pragma once
#include "kernels/cuda/lane.h"

struct KernelCudaSorted {
    const unsigned *key, *position; /* n of each: an index, and where it stood */
};

/* Of indices below the limit. Others are told of (kernel_cuda_bad_index()), have the limit for a
 * key and come last. */
KernelCudaFault kernel_cuda_sort_positions(KernelCuda *lane, const int64_t *index, size_t n,
                                           size_t limit, KernelCudaSorted *ret_sorted);
