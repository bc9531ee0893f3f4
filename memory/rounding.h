/* memory/rounding.h - how large a block, and how large a segment, a request asks for.
 *
 * Sizes in bytes. Sources: round_size(), get_allocation_size() of
 * c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h, PyTorch 2.13.
 */
#pragma once

#include "memory/options.h"

#define MEMORY_BLOCK_LEAST    UINT64_C(512)       /* each block is a multiple of it */
#define MEMORY_SMALL_MOST     (UINT64_C(1) << 20) /* the largest request of the small pool */
#define MEMORY_SMALL_SEGMENT  (UINT64_C(2) << 20)
#define MEMORY_LARGE_LEAST    (UINT64_C(10) << 20) /* from here on a segment is made to measure */
#define MEMORY_SEGMENT_STEP   (UINT64_C(2) << 20)  /* ... in such steps */
#define MEMORY_REQUEST_BEYOND (UINT64_C(1) << 60)  /* 1 EiB: no request reaches this */

/* The size of the block for a request of 1 byte or more, below MEMORY_REQUEST_BEYOND. */
uint64_t memory_round(const MemoryOptions *options, uint64_t bytes);
/* The segment that a block of this (rounded) size is cut from if it needs a new one. */
uint64_t memory_segment_size(const MemoryOptions *options, uint64_t bytes);
