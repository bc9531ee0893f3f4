/* Segments that are addresses first, more than the device has memory, and get memory by the page
 * where it is wanted. So one segment a stream and pool usually does, and nothing is left over
 * between segments.
 *
 * Mapped and unmapped parts of a segment are blocks of one chain. A request that no free block
 * holds takes the lowest stretch of free and unmapped blocks that is long enough, and maps what
 * is missing. Pages go back when the whole cache is released and nothing lies on them. */
#include "memory/caching-private.h"
#include "memory/rounding.h"

uint64_t memory_expandable_page(const MemoryCaching *caching, MemoryPool pool) {
    return pool == MEMORY_POOL_SMALL ? MEMORY_SMALL_SEGMENT : caching->options.large_segment_bytes;
}

static bool is_idle(const MemoryBlock *block) {
    return block->state == MEMORY_BLOCK_FREE || block->state == MEMORY_BLOCK_UNMAPPED;
}

static bool has_room(const MemoryBlock *block, uint64_t bytes) {
    uint64_t room = 0;
    for (; block && is_idle(block) && room < bytes; block = block->next) {
        room += block->bytes;
    }
    return room >= bytes;
}

/* An eighth more than all memory, so that pages given back low down can return at the end. */
static MemoryBlock *add_segment(MemoryCaching *caching, const MemoryRequest *request) {
    uint64_t page = memory_expandable_page(caching, request->pool);
    uint64_t wanted = caching->total_bytes + caching->total_bytes / 8;
    uint64_t bytes = (wanted + page - 1) / page * page;
    gpointer handle = NULL;
    if (!caching->source->address_new(caching->self, bytes, &handle)) {
        return NULL;
    }
    MemorySegment *segment =
        memory_segment_add(caching, request, handle, bytes, MEMORY_BLOCK_UNMAPPED);
    memory_block_file(caching, segment->first);
    return segment->first;
}

/* The first block of the stretch to take: unmapped, or free with an unmapped one behind it. */
static MemoryBlock *find_stretch(MemoryCaching *caching, const MemoryRequest *request) {
    const MemoryFreeList *list = &caching->caches[request->pool].unmapped[request->stream];
    MemoryFreeCursor cursor = memory_free_list_first();
    MemoryBlock *block;
    while ((block = memory_free_list_at(list, cursor))) {
        if (block->prev && is_idle(block->prev)) {
            block = block->prev;
        }
        if (has_room(block, request->bytes)) {
            return block;
        }
        cursor = memory_free_list_next(list, cursor);
    }
    return add_segment(caching, request);
}

/* Maps whole pages for the block's first `bytes`. It becomes free, one with its free neighbours. */
static bool map(MemoryCaching *caching, MemoryBlock *block, uint64_t bytes) {
    MemorySegment *segment = block->segment;
    uint64_t page = memory_expandable_page(caching, segment->pool);
    uint64_t n_pages = (bytes + page - 1) / page;
    if (!caching->source->map(caching->self, segment->handle, memory_block_offset(block), page,
                              n_pages)) {
        return false;
    }
    uint64_t mapped = n_pages * page;
    memory_block_unfile(caching, block);
    if (mapped < block->bytes) {
        MemoryBlock *rest = block;
        block = memory_block_cut(caching, rest, mapped);
        memory_block_file(caching, rest);
    }
    block->state = MEMORY_BLOCK_FREE;
    memory_block_swallow(caching, block, block->prev);
    memory_block_swallow(caching, block, block->next);
    memory_block_file(caching, block);
    MEMORY_STAT_ADD(caching, segment->pool, reserved_bytes, mapped);
    caching->stats.n_device_allocs++;
    return true;
}

/* When a later page of the stretch cannot be had, those mapped for earlier ones stay, free. */
MemoryBlock *memory_expandable_take(MemoryCaching *caching, const MemoryRequest *request) {
    MemoryBlock *block = find_stretch(caching, request);
    if (!block) {
        return NULL;
    }
    MemoryBlock *before = block->prev;
    MemorySegment *segment = block->segment;
    uint64_t ready = 0;
    while (true) {
        /* Mapping merges records, so the block is found again: it is the one behind `before`. */
        block = before ? before->next : segment->first;
        ready = block->state == MEMORY_BLOCK_FREE ? block->bytes : 0;
        if (ready >= request->bytes) {
            break;
        }
        MemoryBlock *unmapped = ready ? block->next : block;
        if (!unmapped) {
            return NULL; /* a new segment's addresses end here: it asks for more than all memory */
        }
        if (!map(caching, unmapped, MIN(unmapped->bytes, request->bytes - ready))) {
            return NULL;
        }
    }
    memory_block_unfile(caching, block);
    return block;
}

void memory_expandable_release(MemoryCaching *caching, MemoryBlock *block) {
    MemorySegment *segment = block->segment;
    uint64_t page = memory_expandable_page(caching, segment->pool);
    uint64_t offset = memory_block_offset(block);
    uint64_t begin = (offset + page - 1) / page * page;
    uint64_t end = (offset + block->bytes) / page * page;
    if (begin >= end) {
        return;
    }
    caching->source->stream_sync(caching->self, segment->stream);
    caching->source->unmap(caching->self, segment->handle, begin, page, (end - begin) / page);
    memory_block_unfile(caching, block);
    if (begin > offset) {
        memory_block_file(caching, memory_block_cut(caching, block, begin - offset));
    }
    if (block->bytes > end - begin) {
        MemoryBlock *behind = block;
        block = memory_block_cut(caching, behind, end - begin);
        memory_block_file(caching, behind);
    }
    block->state = MEMORY_BLOCK_UNMAPPED;
    memory_block_swallow(caching, block, block->prev);
    memory_block_swallow(caching, block, block->next);
    MEMORY_STAT_SUB(caching, segment->pool, reserved_bytes, end - begin);
    caching->stats.n_device_frees++;
    if (memory_block_is_split(block)) {
        memory_block_file(caching, block);
        return;
    }
    caching->source->address_free(caching->self, segment->handle, segment->bytes);
    memory_segment_remove(caching, segment);
}
