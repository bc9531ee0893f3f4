/* The way of a request: events that have passed, a free block of its stream, and where there is
 * none a segment, for which in turn garbage, oversize blocks and at last the whole cache make
 * room. */
#include "memory/caching.h"

#include "memory/caching-private.h"
#include "memory/rounding.h"

typedef enum {
    GOT,
    NO_ROOM, /* what is released may help */
    REFUSED, /* throw_on_cudamalloc_oom: not even asked */
} Outcome;

static uint64_t part_of(uint64_t bytes, double fraction) {
    return (uint64_t)(fraction * (double)bytes);
}

MemoryCaching *memory_caching_new(const MemoryOptions *options, const MemorySource *source,
                                  gpointer self, GError **error) {
    MemoryOptions defaults;
    memory_options_init(&defaults);
    options = options ? options : &defaults;
    if (options->expandable_segments && !source->map) {
        g_set_error(
            error, MEMORY_ERROR, MEMORY_ERROR_UNSUPPORTED,
            "allocator option expandable_segments: this device cannot map memory by the page; "
            "leave it out");
        return NULL;
    }
    MemoryCaching *caching = g_new0(MemoryCaching, 1);
    caching->options = *options;
    caching->source = source;
    caching->self = self;
    caching->total_bytes = source->total_bytes(self);
    caching->limit_bytes = UINT64_MAX;
    caching->throw_bytes = UINT64_MAX;
    if (options->throw_on_cudamalloc_oom) {
        caching->throw_bytes = part_of(caching->total_bytes, options->throw_fraction);
    }
    if (options->memory_fraction < 1) {
        caching->limit_bytes = part_of(caching->total_bytes, options->memory_fraction);
        caching->collects = options->garbage_collection_threshold > 0;
    }
    caching->pages = g_ptr_array_new_with_free_func(g_free);
    return caching;
}

void memory_caching_free(MemoryCaching *caching) {
    if (!caching) {
        return;
    }
    memory_release_at_end(caching);
    memory_events_clear(caching);
    memory_blocks_clear(caching);
    g_free(caching);
}

/* How large an expandable block is or could become without moving. */
static uint64_t reach(const MemoryBlock *block) {
    const MemoryBlock *next = block->next;
    return block->bytes + (next && next->state == MEMORY_BLOCK_UNMAPPED ? next->bytes : 0);
}

/* Best fit counts the unmapped room behind a block as part of it, so that blocks which cannot
 * grow are used up first. */
static MemoryFreeCursor least_reach(const MemoryFreeList *list, MemoryFreeCursor best) {
    MemoryFreeCursor next = memory_free_list_next(list, best);
    const MemoryBlock *candidate;
    while ((candidate = memory_free_list_at(list, next)) &&
           reach(candidate) < reach(memory_free_list_at(list, best))) {
        best = next;
        next = memory_free_list_next(list, next);
    }
    return best;
}

/* Oversize blocks serve oversize requests only, and those only if little is wasted. */
static bool may_take(const MemoryCaching *caching, const MemoryRequest *request,
                     const MemoryBlock *block) {
    uint64_t oversize = caching->options.max_split_bytes;
    if (request->bytes < oversize) {
        return block->bytes < oversize;
    }
    return block->bytes - request->bytes < caching->options.max_non_split_rounding_bytes;
}

/* It stays in its list, at the cursor. NULL: there is none that will do. */
static MemoryBlock *find_cached(MemoryCaching *caching, const MemoryRequest *request,
                                MemoryFreeCursor *ret_cursor) {
    MemoryCache *cache = &caching->caches[request->pool];
    if (caching->collects) {
        cache->n_searches++;
    }
    MemoryFreeList *list = &cache->free[request->stream];
    MemoryFreeCursor cursor = memory_free_list_find(list, request->bytes, 0);
    MemoryBlock *block = memory_free_list_at(list, cursor);
    if (block && caching->options.expandable_segments) {
        cursor = least_reach(list, cursor);
        block = memory_free_list_at(list, cursor);
    }
    *ret_cursor = cursor;
    return block && may_take(caching, request, block) ? block : NULL;
}

static Outcome take_segment(MemoryCaching *caching, const MemoryRequest *request,
                            MemoryBlock **ret_block) {
    uint64_t after = memory_caching_reserved(caching) + request->segment_bytes;
    if (after > caching->limit_bytes) {
        return NO_ROOM;
    }
    if (after > caching->throw_bytes) {
        return REFUSED;
    }
    if (caching->options.expandable_segments) {
        MemoryBlock *block = memory_expandable_take(caching, request);
        *ret_block = block ? block : *ret_block;
        return block ? GOT : NO_ROOM;
    }
    gpointer handle = NULL;
    if (!caching->source->segment_new(caching->self, request->segment_bytes, &handle)) {
        return NO_ROOM;
    }
    MemorySegment *segment =
        memory_segment_add(caching, request, handle, request->segment_bytes, MEMORY_BLOCK_FREE);
    MEMORY_STAT_ADD(caching, request->pool, segments, 1);
    MEMORY_STAT_ADD(caching, request->pool, reserved_bytes, request->segment_bytes);
    caching->stats.n_device_allocs++;
    *ret_block = segment->first;
    return GOT;
}

/* NULL: out of memory. */
static MemoryBlock *make_room(MemoryCaching *caching, const MemoryRequest *request) {
    if (caching->collects) {
        memory_release_garbage(caching);
    }
    MemoryBlock *block = NULL;
    Outcome outcome = take_segment(caching, request, &block);
    if (outcome == NO_ROOM && memory_release_enough(caching, request)) {
        outcome = take_segment(caching, request, &block);
    }
    if (outcome == NO_ROOM) {
        memory_release_all(caching);
        caching->stats.n_alloc_retries++;
        outcome = take_segment(caching, request, &block);
    }
    if (outcome == NO_ROOM) {
        caching->stats.n_ooms++;
    }
    return block;
}

static bool is_worth_splitting(const MemoryCaching *caching, const MemoryRequest *request,
                               const MemoryBlock *block) {
    uint64_t rest = block->bytes - request->bytes;
    if (request->pool == MEMORY_POOL_SMALL || caching->options.expandable_segments) {
        return rest >= MEMORY_BLOCK_LEAST;
    }
    return request->bytes < caching->options.max_split_bytes && rest > MEMORY_SMALL_MOST;
}

static void count_used(MemoryPoolStats *stats, const MemoryBlock *block) {
    memory_stat_add(&stats->allocated_bytes, block->bytes);
    memory_stat_add(&stats->active_bytes, block->bytes);
    memory_stat_add(&stats->requested_bytes, block->requested_bytes);
}

/* A free block becomes the caller's, or its low end does and the rest stays free. cursor: where it
 * stands among the free ones; NULL: nowhere. */
static MemoryBlock *hand_out(MemoryCaching *caching, const MemoryRequest *request,
                             MemoryBlock *block, const MemoryFreeCursor *cursor,
                             uint64_t requested_bytes) {
    bool books = !caching->options.expandable_segments;
    bool was_split = memory_block_is_split(block);
    if (is_worth_splitting(caching, request, block)) {
        MemoryBlock *rest = block;
        block = memory_block_cut(caching, rest, request->bytes);
        if (cursor) {
            memory_block_refile(caching, rest, *cursor);
        } else {
            memory_block_file(caching, rest);
        }
        if (books && !was_split) {
            MEMORY_STAT_ADD(caching, request->pool, inactive_split_bytes, rest->bytes);
        }
    } else if (cursor) {
        memory_free_list_remove_at(&caching->caches[request->pool].free[request->stream], *cursor);
    }
    if (books && was_split) {
        MEMORY_STAT_SUB(caching, request->pool, inactive_split_bytes, block->bytes);
    }
    block->state = MEMORY_BLOCK_USED;
    block->marks = 0;
    block->requested_bytes = requested_bytes;
    count_used(&caching->stats.pools[MEMORY_POOL_ALL], block);
    count_used(&caching->stats.pools[request->pool], block);
    return block;
}

bool memory_caching_alloc(MemoryCaching *caching, uint32_t stream, uint64_t bytes,
                          MemoryBlock **ret_block) {
    g_assert(stream < MEMORY_N_STREAMS);
    if (bytes == 0) {
        *ret_block = NULL;
        return true;
    }
    if (bytes >= MEMORY_REQUEST_BEYOND) {
        return false;
    }
    if (caching->waits) {
        memory_events_process(caching);
    }
    MemoryRequest request = {.bytes = memory_round(&caching->options, bytes), .stream = stream};
    request.pool = request.bytes <= MEMORY_SMALL_MOST ? MEMORY_POOL_SMALL : MEMORY_POOL_LARGE;
    MemoryFreeCursor at;
    const MemoryFreeCursor *cursor = &at;
    MemoryBlock *block = find_cached(caching, &request, &at);
    if (!block) {
        cursor = NULL;
        request.segment_bytes = memory_segment_size(&caching->options, request.bytes);
        block = make_room(caching, &request);
    }
    if (!block) {
        return false;
    }
    *ret_block = hand_out(caching, &request, block, cursor, bytes);
    return true;
}

bool memory_caching_drop(MemoryCaching *caching, MemoryBlock *block) {
    if (!block) {
        return true;
    }
    g_assert(block->state == MEMORY_BLOCK_USED);
    MEMORY_STAT_SUB(caching, block->pool, allocated_bytes, block->bytes);
    if (block->marks) {
        memory_events_record(caching, block);
        return false;
    }
    memory_block_release(caching, block);
    return true;
}

void memory_caching_mark(MemoryCaching *caching, MemoryBlock *block, uint32_t stream) {
    g_assert(stream < MEMORY_N_STREAMS);
    if (block && block->stream != stream) {
        g_assert(block->state == MEMORY_BLOCK_USED);
        block->marks |= UINT64_C(1) << stream;
    }
}

void memory_caching_empty(MemoryCaching *caching) {
    memory_release_all(caching);
}

const MemoryStats *memory_caching_stats(const MemoryCaching *caching) {
    return &caching->stats;
}

void memory_caching_keep_answers(MemoryCaching *caching, MemoryAnswers *answers) {
    caching->answers = answers;
}
