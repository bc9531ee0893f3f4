/* memory/caching-private.h - what the files of the allocator share.
 *
 *     caching.c     a request from alloc() to its block
 *     blocks.c      block records, the free lists, merging
 *     events.c      dropped blocks that wait
 *     release.c     giving cached segments back
 *     expandable.c  segments that grow by pages
 */
#pragma once

#include "memory/free-list.h"
#include "memory/snapshot.h"

typedef struct _MemorySegment MemorySegment;

/* One segment_new() or address_new(). */
struct _MemorySegment {
    MemorySegment *prev, *next; /* in the order in which they were taken */
    MemoryBlock *first;
    gpointer handle;
    /* Addresses of our own, that only rise: they put blocks in the order of segment, then
     * offset. */
    uint64_t base, bytes;
    uint32_t number, stream;
    MemoryPool pool;
};

/* A segment is a chain of blocks without gaps. A free block never has a free neighbour, nor an
 * unmapped one an unmapped neighbour.
 *
 * One cache line: of thousands of blocks, which come and go in no order, each that is looked at is
 * one to be fetched. So a block knows the stream and the pool of its segment by itself. */
struct _MemoryBlock {
    uint64_t address, bytes;
    union {
        uint64_t requested_bytes; /* while used or waiting */
        uint64_t searches_before; /* while free: the pool's searches when it became free */
    };
    union {
        uint64_t marks;    /* while used: bit s is set when stream s uses it too */
        uint64_t n_events; /* while waiting */
    };
    MemorySegment *segment;
    MemoryBlock *prev, *next;
    uint8_t state;        /* MemoryBlockState */
    uint8_t stream, pool; /* the segment's */
};

#define MEMORY_BLOCK_LINE 64
G_STATIC_ASSERT(sizeof(MemoryBlock) <= MEMORY_BLOCK_LINE);

typedef struct {
    MemoryFreeList free[MEMORY_N_STREAMS];     /* by (bytes, address) */
    MemoryFreeList unmapped[MEMORY_N_STREAMS]; /* by address */
    uint64_t n_searches;                       /* while garbage is collected: the clock of ages */
} MemoryCache;

typedef struct {
    MemoryEvent event;
    MemoryBlock *block;
} MemoryPending;

/* A ring: the events of one stream in the order in which they were recorded. */
typedef struct {
    MemoryPending *ring;
    uint32_t first, n, room; /* room is 0 or a power of two */
} MemoryPendingQueue;

struct _MemoryCaching {
    MemoryOptions options;
    const MemorySource *source;
    gpointer self;
    uint64_t total_bytes;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t throw_bytes; /* UINT64_MAX: never refused at once */
    bool collects;        /* garbage */

    MemoryCache caches[MEMORY_N_POOLS]; /* MEMORY_POOL_ALL has none */
    MemoryPendingQueue pending[MEMORY_N_STREAMS];
    uint64_t waits; /* bit s is set when pending[s] is not empty */

    MemorySegment *first_segment, *last_segment;
    uint32_t n_segments; /* ever taken */
    uint64_t next_base;

    GPtrArray *pages;    /* block records, many at a time */
    MemoryBlock *spares; /* linked by next */

    MemoryAnswers *answers; /* borrowed; NULL: nobody keeps them */
    MemoryStats stats;
    void (*done)(gpointer self, MemoryBlock *block);
    gpointer done_self;
};

typedef struct {
    uint64_t bytes;         /* rounded */
    uint64_t segment_bytes; /* of a segment made for it */
    uint32_t stream;
    MemoryPool pool;
} MemoryRequest;

static inline void memory_stat_add(MemoryStat *stat, uint64_t amount) {
    stat->current += amount;
    stat->allocated += amount;
    if (stat->current > stat->peak) {
        stat->peak = stat->current;
    }
}

static inline void memory_stat_sub(MemoryStat *stat, uint64_t amount) {
    stat->current -= amount;
}

/* The statistics of a pool, and of both together. */
#define MEMORY_STAT_ADD(caching, pool, name, amount)                                               \
    do {                                                                                           \
        memory_stat_add(&(caching)->stats.pools[MEMORY_POOL_ALL].name, amount);                    \
        memory_stat_add(&(caching)->stats.pools[pool].name, amount);                               \
    } while (0)
#define MEMORY_STAT_SUB(caching, pool, name, amount)                                               \
    do {                                                                                           \
        memory_stat_sub(&(caching)->stats.pools[MEMORY_POOL_ALL].name, amount);                    \
        memory_stat_sub(&(caching)->stats.pools[pool].name, amount);                               \
    } while (0)

static inline bool memory_block_is_split(const MemoryBlock *block) {
    return block->prev || block->next;
}

/* blocks.c */
MemorySegment *memory_segment_add(MemoryCaching *caching, const MemoryRequest *request,
                                  gpointer handle, uint64_t bytes, MemoryBlockState state);
/* Takes it out of the books, its only block with it; the source has it back already. */
void memory_segment_remove(MemoryCaching *caching, MemorySegment *segment);
/* The first `bytes` of the block become a block of their own, of no list; the rest keeps its
 * record. */
MemoryBlock *memory_block_cut(MemoryCaching *caching, MemoryBlock *block, uint64_t bytes);
/* Into the list of its state, free or unmapped; and out of it. */
void memory_block_file(MemoryCaching *caching, MemoryBlock *block);
/* The same for a free block that stands in its list already, at the cursor, and that was cut
 * smaller or has grown. */
static inline void memory_block_refile(MemoryCaching *caching, MemoryBlock *block,
                                       MemoryFreeCursor cursor) {
    MemoryCache *cache = &caching->caches[block->pool];
    block->searches_before = cache->n_searches;
    memory_free_list_move(&cache->free[block->stream], cursor, block->bytes, block->address);
}
void memory_block_unfile(MemoryCaching *caching, MemoryBlock *block);
/* Swallows a neighbour of equal state, which stands in a list; block itself does not. Bytes
 * gained. */
uint64_t memory_block_swallow(MemoryCaching *caching, MemoryBlock *block, MemoryBlock *neighbour);
/* A used or waiting block becomes free. */
void memory_block_release(MemoryCaching *caching, MemoryBlock *block);
void memory_blocks_clear(MemoryCaching *caching);

/* events.c */
void memory_events_record(MemoryCaching *caching, MemoryBlock *block);
void memory_events_process(MemoryCaching *caching); /* those that have passed */
void memory_events_sync(MemoryCaching *caching);    /* waits for all */
void memory_events_clear(MemoryCaching *caching);

/* release.c */
void memory_release_garbage(MemoryCaching *caching);
/* Oversize blocks, enough for the request. False: nothing to try again with. */
bool memory_release_enough(MemoryCaching *caching, const MemoryRequest *request);
void memory_release_all(MemoryCaching *caching);
void memory_release_at_end(MemoryCaching *caching);

/* expandable.c */
/* A free block of no list and at least the request's bytes; NULL when there is no room. */
MemoryBlock *memory_expandable_take(MemoryCaching *caching, const MemoryRequest *request);
/* Gives the whole pages within a free block back, and the segment once nothing is mapped. */
void memory_expandable_release(MemoryCaching *caching, MemoryBlock *block);
uint64_t memory_expandable_page(const MemoryCaching *caching, MemoryPool pool);
