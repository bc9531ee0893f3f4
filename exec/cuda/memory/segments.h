/* exec/cuda/memory/segments.h - the GPU's memory as the allocator's source of segments.
 *
 * Segments are cudaMalloc's; expandable ones are addresses over which the driver maps pages, where
 * it can (exec/cuda/memory/virtual.h). Events come from a pool.
 *
 * Owns: the events. Borrows: the streams, by lane. Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "memory/source.h"

typedef struct {
    const cudaStream_t *streams;
    uint64_t limit_bytes; /* of the modeled device; the GPU's own where that is less */
    uint64_t held_bytes;
    GPtrArray *events, *idle; /* cudaEvent_t: all that were made; those of them that are unused */
    GError *error;            /* the first failure, for whoever asks */
} ExecCudaSegments;

/* Fails when there is no GPU to ask. The current device is meant. */
bool exec_cuda_segments_init(ExecCudaSegments *segments, const cudaStream_t *streams,
                             uint64_t limit_bytes, GError **error);
void exec_cuda_segments_clear(ExecCudaSegments *segments); /* of zeros is fine */

/* self: ExecCudaSegments. The driver's pages: with expandable segments, or without. */
const MemorySource *exec_cuda_segments_source(void);
