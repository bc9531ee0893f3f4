/* memory/snapshot.h - what the allocator holds, block by block, for whoever judges it.
 *
 * No run needs this. Tests hold the allocator's decisions against those that PyTorch's was recorded
 * to make, and a benchmark counts its free blocks.
 */
#pragma once

#include "memory/caching.h"

typedef enum {
    MEMORY_BLOCK_USED,
    MEMORY_BLOCK_WAITING, /* dropped; its events have not been seen to pass */
    MEMORY_BLOCK_FREE,
    MEMORY_BLOCK_UNMAPPED, /* addresses without memory, in an expandable segment */
} MemoryBlockState;

uint32_t memory_block_segment(const MemoryBlock *block); /* segments are numbered as they come */
MemoryBlockState memory_block_state(const MemoryBlock *block);
/* The block behind it in its range of memory; NULL at the end. */
const MemoryBlock *memory_block_next(const MemoryBlock *block);

/* What is held from the source: one range a segment, or one for each contiguously mapped part of an
 * expandable one. Valid until the next call that changes anything. */
typedef struct {
    uint32_t segment, stream;
    uint64_t offset, bytes;
    MemoryPool pool;
    const MemoryBlock *first;
} MemoryRange;

/* By segment, then offset. Transfer full: an array of MemoryRange. */
GArray *memory_caching_ranges(const MemoryCaching *caching);

/* Told of each block that had waited, as it becomes free and just before it is merged. NULL:
 * nobody. */
void memory_caching_watch(MemoryCaching *caching, void (*done)(gpointer self, MemoryBlock *block),
                          gpointer self);

/* As torch.cuda.reset_peak_memory_stats() does: each peak becomes what there is now. */
void memory_caching_reset_peaks(MemoryCaching *caching);
