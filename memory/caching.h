/* memory/caching.h - PyTorch's CUDA caching allocator (2.13), rule for rule, over any source.
 *
 * Blocks belong to the stream that asked for them: a free block serves later requests of that
 * stream only. A block that other streams use is marked with them; dropped, it waits until the
 * events that are then recorded on those streams have passed. That is looked at only by the next
 * alloc(), as in PyTorch.
 *
 * Out of memory is an answer. Everything is a function of the calls and of the source's answers:
 * ties between blocks of equal size go to the older segment, then the lower offset, never by
 * address.
 *
 * memory/README.md has the path of a request. Free blocks stand in sorted arrays
 * (memory/free-list.h); block records are pooled, so an alloc() that hits the cache and a drop()
 * take no memory of their own.
 *
 * Owns: segments (given back to the source by _free(), which waits for nothing), blocks.
 * Borrows: the source's table and self. Threads: one.
 */
#pragma once

#include "memory/answers.h"
#include "memory/options.h"
#include "memory/source.h"
#include "memory/stats.h"
#include "memory/words.h"

/* Streams are numbered 0 to 63. */
#define MEMORY_N_STREAMS 64

typedef struct _MemoryCaching MemoryCaching;
/* Valid from alloc() until drop(); when that leaves the block waiting, until it is done. */
typedef struct _MemoryBlock MemoryBlock;

/* options NULL: defaults. Fails when the options want expandable segments and the source has
 * none. */
MemoryCaching *memory_caching_new(const MemoryOptions *options, const MemorySource *source,
                                  gpointer self, GError **error);
void memory_caching_free(MemoryCaching *caching); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryCaching, memory_caching_free)

/* False: out of memory. No bytes, no block: true, and *ret_block is NULL. */
bool memory_caching_alloc(MemoryCaching *caching, uint32_t stream, uint64_t bytes,
                          MemoryBlock **ret_block);
/* The block is no longer needed. True when it is free at once, false when it waits for events.
 * NULL is fine. */
bool memory_caching_drop(MemoryCaching *caching, MemoryBlock *block);
/* stream, too, uses the block, which is not dropped yet (PyTorch's record_stream). NULL is fine. */
void memory_caching_mark(MemoryCaching *caching, MemoryBlock *block, uint32_t stream);
/* Waits for every pending event and gives all that is wholly free back to the source. */
void memory_caching_empty(MemoryCaching *caching);

const MemoryStats *memory_caching_stats(const MemoryCaching *caching);

static inline uint64_t memory_caching_allocated(const MemoryCaching *caching) {
    return memory_caching_stats(caching)->pools[MEMORY_POOL_ALL].allocated_bytes.current;
}

static inline uint64_t memory_caching_active(const MemoryCaching *caching) {
    return memory_caching_stats(caching)->pools[MEMORY_POOL_ALL].active_bytes.current;
}

static inline uint64_t memory_caching_reserved(const MemoryCaching *caching) {
    return memory_caching_stats(caching)->pools[MEMORY_POOL_ALL].reserved_bytes.current;
}

/* From now on every answer of the source to event_query() is added to answers (borrowed). */
void memory_caching_keep_answers(MemoryCaching *caching, MemoryAnswers *answers);

/* A block lies at the source's handle plus the offset. */
gpointer memory_block_handle(const MemoryBlock *block);
uint64_t memory_block_offset(const MemoryBlock *block);
/* A number for both, which no two blocks share that live together. */
uint64_t memory_block_address(const MemoryBlock *block);
uint64_t memory_block_bytes(const MemoryBlock *block); /* as the statistics count it */

/* Appends the dropped blocks that still wait, in order. Their events are written as distances from
 * `newest`, so that two moments of a play can be compared. */
void memory_caching_append_waits(const MemoryCaching *caching, MemoryEvent newest,
                                 MemoryWords *state);
/* Appends all of its blocks. Two allocators whose states are equal answer equal calls equally, on
 * two conditions: every event that a block waits for has passed by the next call (the order of the
 * waiting blocks then makes no difference), and no segment is taken from the source or given back.
 * False: garbage is collected, by an age that only grows, so no state ever returns. */
bool memory_caching_append_state(const MemoryCaching *caching, MemoryWords *state);
