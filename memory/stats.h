/* memory/stats.h - what PyTorch's memory_stats() says: amounts with their peaks, and counters.
 *
 * Each amount has its own peak, reached at its own time. `allocated` is all that was ever added to
 * it, so allocated - current is what was taken off again.
 */
#pragma once

#include <stdint.h>

typedef enum {
    MEMORY_POOL_ALL,
    MEMORY_POOL_SMALL, /* requests of at most 1 MiB */
    MEMORY_POOL_LARGE,
} MemoryPool;
#define MEMORY_N_POOLS 3

typedef struct {
    uint64_t current, peak, allocated;
} MemoryStat;

typedef struct {
    MemoryStat requested_bytes;      /* as the caller asked, until the block is really free */
    MemoryStat allocated_bytes;      /* whole blocks, until the caller drops them */
    MemoryStat active_bytes;         /* whole blocks, until they are free for another request */
    MemoryStat reserved_bytes;       /* held from the source */
    MemoryStat inactive_split_bytes; /* free pieces of segments; expandable ones are left out */
    MemoryStat segments;             /* as a count; expandable ones are left out */
} MemoryPoolStats;

typedef struct {
    MemoryPoolStats pools[MEMORY_N_POOLS];
    uint64_t n_alloc_retries;    /* tried again after releasing the whole cache, helped or not */
    uint64_t n_ooms;             /* gave up; throw_on_cudamalloc_oom's refusals do not count */
    uint64_t n_device_allocs;    /* segments taken, or ranges mapped */
    uint64_t n_device_frees;     /* segments given back, or ranges unmapped */
    uint64_t n_sync_all_streams; /* waited for every pending event */
} MemoryStats;
