/* kernels/cuda/copy.h - many pieces copied by one launch, cast on the way.
 *
 * All that sharding needs: parts put one after the other (flatten, copies into a gather and out of
 * a bucket), columns joined, a gathered slice dealt out to parameters (rows = ranks, strides the
 * slice and the shard), chunks of gradients laid out by rank, padded with zeros. Pieces do not
 * overlap. Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void *to;
    const void *from;              /* NULL: zeros */
    size_t rows, width;            /* elements a row */
    size_t to_stride, from_stride; /* elements from one row to the next */
    KernelCudaType to_type, from_type;
} KernelCudaPiece;

/* Any number of pieces; some 40 go into one launch. */
KernelCudaFault kernel_cuda_copy_pieces(KernelCuda *lane, const KernelCudaPiece *pieces, size_t n);

#ifdef __cplusplus
}
#endif
