/* Giving cached segments back to the source. A segment can go when it is one free block. Three
 * occasions, in the order in which a request that finds no block comes upon them: too old
 * (garbage), in the way of a large request (oversize), and all. */
#include "memory/caching-private.h"

static void release_segment(MemoryCaching *caching, MemoryBlock *block) {
    MemorySegment *segment = block->segment;
    caching->stats.n_device_frees++;
    caching->source->segment_free(caching->self, segment->handle, segment->bytes);
    MEMORY_STAT_SUB(caching, segment->pool, segments, 1);
    MEMORY_STAT_SUB(caching, segment->pool, reserved_bytes, segment->bytes);
    memory_block_unfile(caching, block);
    memory_segment_remove(caching, segment);
}

/* Free blocks of a pool by stream, size and address: whole segments, or every block when
 * segments are expandable. A list of its own, since releasing changes the free lists. */
static GPtrArray *releasable(MemoryCaching *caching, MemoryPool pool) {
    GPtrArray *blocks = g_ptr_array_new();
    for (uint32_t stream = 0; stream < MEMORY_N_STREAMS; stream++) {
        const MemoryFreeList *list = &caching->caches[pool].free[stream];
        MemoryFreeCursor cursor = memory_free_list_first();
        MemoryBlock *block;
        while ((block = memory_free_list_at(list, cursor))) {
            if (caching->options.expandable_segments || !memory_block_is_split(block)) {
                g_ptr_array_add(blocks, block);
            }
            cursor = memory_free_list_next(list, cursor);
        }
    }
    return blocks;
}

/* In searches of its pool since the block became free. */
static uint64_t age_of(const MemoryCaching *caching, const MemoryBlock *block) {
    return caching->caches[block->pool].n_searches - block->searches_before;
}

/* Large segments of at least the mean age go, then of what is left likewise, until reserved is
 * back at the threshold or a round frees nothing. A round does not stop half-way. */
void memory_release_garbage(MemoryCaching *caching) {
    uint64_t reserved = memory_caching_reserved(caching);
    uint64_t threshold =
        (uint64_t)(caching->options.garbage_collection_threshold * (double)caching->limit_bytes);
    if (caching->options.expandable_segments || reserved <= threshold) {
        return;
    }
    uint64_t target = reserved - threshold, reclaimed = 0, ages = 0;
    g_autoptr(GPtrArray) blocks = releasable(caching, MEMORY_POOL_LARGE);
    for (guint i = 0; i < blocks->len; i++) {
        ages += age_of(caching, g_ptr_array_index(blocks, i));
    }
    bool freed = true;
    while (reclaimed < target && freed && blocks->len > 0) {
        double mean = (double)ages / blocks->len;
        freed = false;
        guint n_kept = 0;
        for (guint i = 0; i < blocks->len; i++) {
            MemoryBlock *block = g_ptr_array_index(blocks, i);
            uint64_t age = age_of(caching, block);
            if ((double)age < mean) {
                g_ptr_array_index(blocks, n_kept++) = block;
                continue;
            }
            freed = true;
            reclaimed += block->bytes;
            ages -= age;
            release_segment(caching, block);
        }
        g_ptr_array_set_size(blocks, (gint)n_kept);
    }
}

/* The smallest oversize block that would hold the request; else oversize blocks from the largest
 * down until they would together. Too little in all: it is freed, and false. */
bool memory_release_enough(MemoryCaching *caching, const MemoryRequest *request) {
    uint64_t oversize = caching->options.max_split_bytes;
    if (oversize == UINT64_MAX || caching->options.expandable_segments) {
        return false;
    }
    uint64_t wanted = MAX(request->bytes, oversize);
    MemoryFreeList *list = &caching->caches[request->pool].free[request->stream];
    MemoryBlock *block = memory_free_list_at(list, memory_free_list_find(list, wanted, 0));
    if (block) {
        release_segment(caching, block);
        return true;
    }
    uint64_t released = 0;
    while (released < wanted && (block = memory_free_list_last(list)) && block->bytes >= oversize) {
        released += block->bytes;
        release_segment(caching, block);
    }
    return released >= wanted;
}

void memory_release_all(MemoryCaching *caching) {
    memory_events_sync(caching);
    static const MemoryPool order[] = {MEMORY_POOL_LARGE, MEMORY_POOL_SMALL};
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        g_autoptr(GPtrArray) blocks = releasable(caching, order[i]);
        for (guint j = 0; j < blocks->len; j++) {
            MemoryBlock *block = g_ptr_array_index(blocks, j);
            if (caching->options.expandable_segments) {
                memory_expandable_release(caching, block);
            } else {
                release_segment(caching, block);
            }
        }
    }
}

/* The mapped parts of an expandable segment. */
static void unmap_everything(MemoryCaching *caching, const MemorySegment *segment) {
    uint64_t page = memory_expandable_page(caching, segment->pool);
    for (const MemoryBlock *block = segment->first; block;) {
        const MemoryBlock *first = block;
        uint64_t bytes = 0;
        for (; block && block->state != MEMORY_BLOCK_UNMAPPED; block = block->next) {
            bytes += block->bytes;
        }
        if (bytes > 0) {
            caching->source->unmap(caching->self, segment->handle, memory_block_offset(first), page,
                                   bytes / page);
        }
        block = block ? block->next : NULL;
    }
}

void memory_release_at_end(MemoryCaching *caching) {
    for (const MemorySegment *segment = caching->first_segment; segment; segment = segment->next) {
        if (caching->options.expandable_segments) {
            unmap_everything(caching, segment);
            caching->source->address_free(caching->self, segment->handle, segment->bytes);
        } else {
            caching->source->segment_free(caching->self, segment->handle, segment->bytes);
        }
    }
}
