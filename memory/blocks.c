/* Records of segments and blocks, and the one way in which pieces become whole again. */
#include "memory/caching-private.h"

#define BLOCKS_PER_PAGE 256

static MemoryBlock *new_block(MemoryCaching *caching) {
    if (!caching->spares) {
        char *room = g_malloc((BLOCKS_PER_PAGE + 1) * sizeof(MemoryBlock));
        g_ptr_array_add(caching->pages, room);
        MemoryBlock *page = (MemoryBlock *)(gpointer)(room + -(guintptr)room % MEMORY_BLOCK_LINE);
        for (uint32_t i = 0; i < BLOCKS_PER_PAGE; i++) {
            page[i].next = i + 1 < BLOCKS_PER_PAGE ? &page[i + 1] : NULL;
        }
        caching->spares = page;
    }
    MemoryBlock *block = caching->spares;
    caching->spares = block->next;
    return block;
}

static void recycle(MemoryCaching *caching, MemoryBlock *block) {
    block->next = caching->spares;
    caching->spares = block;
}

MemorySegment *memory_segment_add(MemoryCaching *caching, const MemoryRequest *request,
                                  gpointer handle, uint64_t bytes, MemoryBlockState state) {
    MemorySegment *segment = g_new(MemorySegment, 1);
    MemoryBlock *block = new_block(caching);
    *segment = (MemorySegment){
        .prev = caching->last_segment,
        .first = block,
        .handle = handle,
        .base = caching->next_base,
        .bytes = bytes,
        .number = caching->n_segments++,
        .stream = request->stream,
        .pool = request->pool,
    };
    *block = (MemoryBlock){
        .address = segment->base,
        .bytes = bytes,
        .segment = segment,
        .state = state,
        .stream = (uint8_t)request->stream,
        .pool = (uint8_t)request->pool,
    };
    caching->next_base += bytes;
    if (segment->prev) {
        segment->prev->next = segment;
    } else {
        caching->first_segment = segment;
    }
    caching->last_segment = segment;
    return segment;
}

void memory_segment_remove(MemoryCaching *caching, MemorySegment *segment) {
    if (segment->prev) {
        segment->prev->next = segment->next;
    } else {
        caching->first_segment = segment->next;
    }
    if (segment->next) {
        segment->next->prev = segment->prev;
    } else {
        caching->last_segment = segment->prev;
    }
    recycle(caching, segment->first);
    g_free(segment);
}

MemoryBlock *memory_block_cut(MemoryCaching *caching, MemoryBlock *block, uint64_t bytes) {
    MemoryBlock *cut = new_block(caching);
    *cut = *block;
    cut->bytes = bytes;
    cut->next = block;
    if (cut->prev) {
        cut->prev->next = cut;
    } else {
        cut->segment->first = cut;
    }
    block->prev = cut;
    block->address += bytes;
    block->bytes -= bytes;
    return cut;
}

void memory_block_file(MemoryCaching *caching, MemoryBlock *block) {
    MemoryCache *cache = &caching->caches[block->pool];
    uint32_t stream = block->stream;
    if (block->state == MEMORY_BLOCK_FREE) {
        block->searches_before = cache->n_searches;
        memory_free_list_insert(&cache->free[stream], block->bytes, block->address, block);
    } else {
        memory_free_list_insert(&cache->unmapped[stream], 0, block->address, block);
    }
}

void memory_block_unfile(MemoryCaching *caching, MemoryBlock *block) {
    MemoryCache *cache = &caching->caches[block->pool];
    uint32_t stream = block->stream;
    if (block->state == MEMORY_BLOCK_FREE) {
        memory_free_list_remove(&cache->free[stream], block->bytes, block->address);
    } else {
        memory_free_list_remove(&cache->unmapped[stream], 0, block->address);
    }
}

uint64_t memory_block_swallow(MemoryCaching *caching, MemoryBlock *block, MemoryBlock *neighbour) {
    if (!neighbour || neighbour->state != block->state) {
        return 0;
    }
    memory_block_unfile(caching, neighbour);
    if (block->prev == neighbour) {
        block->address = neighbour->address;
        block->prev = neighbour->prev;
        if (block->prev) {
            block->prev->next = block;
        } else {
            block->segment->first = block;
        }
    } else {
        block->next = neighbour->next;
        if (block->next) {
            block->next->prev = block;
        }
    }
    uint64_t bytes = neighbour->bytes;
    block->bytes += bytes;
    recycle(caching, neighbour);
    return bytes;
}

/* What becomes a free piece of a segment counts as inactive split; what is whole again does not.
 * As in PyTorch only the net change is booked, so that a merge leaves no peak behind. */
static void book_inactive_split(MemoryCaching *caching, const MemoryBlock *block,
                                uint64_t gained_bytes) {
    MemoryPool pool = block->pool;
    uint64_t now = memory_block_is_split(block) ? block->bytes : 0;
    if (now > gained_bytes) {
        MEMORY_STAT_ADD(caching, pool, inactive_split_bytes, now - gained_bytes);
    } else if (now < gained_bytes) {
        MEMORY_STAT_SUB(caching, pool, inactive_split_bytes, gained_bytes - now);
    }
}

static MemoryBlock *if_free(MemoryBlock *block) {
    return block && block->state == MEMORY_BLOCK_FREE ? block : NULL;
}

/* The neighbour takes the block's bytes and place. */
static void give_to(MemoryBlock *neighbour, const MemoryBlock *block) {
    if (neighbour == block->prev) {
        neighbour->next = block->next;
        if (block->next) {
            block->next->prev = neighbour;
        }
    } else {
        neighbour->address = block->address;
        neighbour->prev = block->prev;
        if (block->prev) {
            block->prev->next = neighbour;
        } else {
            neighbour->segment->first = neighbour;
        }
    }
    neighbour->bytes += block->bytes;
}

/* A block of no list, free by now, joins its free neighbours. One of them stays, so that its entry
 * in the list only moves. Returns the block that it is part of then. */
static MemoryBlock *join(MemoryCaching *caching, MemoryBlock *block, uint64_t *ret_gained_bytes) {
    MemoryBlock *low = if_free(block->prev), *high = if_free(block->next);
    *ret_gained_bytes = (low ? low->bytes : 0) + (high ? high->bytes : 0);
    if (!low && !high) {
        memory_block_file(caching, block);
        return block;
    }
    if (low && high) {
        memory_block_swallow(caching, block, high);
    }
    MemoryBlock *stays = low ? low : high;
    const MemoryFreeList *list = &caching->caches[stays->pool].free[stays->stream];
    MemoryFreeCursor cursor = memory_free_list_find(list, stays->bytes, stays->address);
    give_to(stays, block);
    recycle(caching, block);
    memory_block_refile(caching, stays, cursor);
    return stays;
}

void memory_block_release(MemoryCaching *caching, MemoryBlock *block) {
    if (block->state == MEMORY_BLOCK_WAITING && caching->done) {
        caching->done(caching->done_self, block);
    }
    MemoryPool pool = block->pool;
    MEMORY_STAT_SUB(caching, pool, active_bytes, block->bytes);
    MEMORY_STAT_SUB(caching, pool, requested_bytes, block->requested_bytes);
    block->state = MEMORY_BLOCK_FREE;
    uint64_t gained;
    const MemoryBlock *whole = join(caching, block, &gained);
    if (!caching->options.expandable_segments) {
        book_inactive_split(caching, whole, gained);
    }
}

void memory_blocks_clear(MemoryCaching *caching) {
    for (MemorySegment *segment = caching->first_segment, *next; segment; segment = next) {
        next = segment->next;
        g_free(segment);
    }
    for (uint32_t pool = 0; pool < MEMORY_N_POOLS; pool++) {
        for (uint32_t stream = 0; stream < MEMORY_N_STREAMS; stream++) {
            memory_free_list_clear(&caching->caches[pool].free[stream]);
            memory_free_list_clear(&caching->caches[pool].unmapped[stream]);
        }
    }
    g_ptr_array_unref(caching->pages);
}
