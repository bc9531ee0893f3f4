/* memory/snapshot.c - looking at blocks, one or all, and writing all of them down. */
#include "memory/snapshot.h"

#include "memory/caching-private.h"

gpointer memory_block_handle(const MemoryBlock *block) {
    return block->segment->handle;
}

uint64_t memory_block_offset(const MemoryBlock *block) {
    return block->address - block->segment->base;
}

uint32_t memory_block_segment(const MemoryBlock *block) {
    return block->segment->number;
}

uint64_t memory_block_address(const MemoryBlock *block) {
    return block->address;
}

uint64_t memory_block_bytes(const MemoryBlock *block) {
    return block->bytes;
}

MemoryBlockState memory_block_state(const MemoryBlock *block) {
    return block->state;
}

const MemoryBlock *memory_block_next(const MemoryBlock *block) {
    const MemoryBlock *next = block->next;
    return next && next->state != MEMORY_BLOCK_UNMAPPED ? next : NULL;
}

GArray *memory_caching_ranges(const MemoryCaching *caching) {
    GArray *ranges = g_array_new(FALSE, FALSE, sizeof(MemoryRange));
    for (const MemorySegment *segment = caching->first_segment; segment; segment = segment->next) {
        for (const MemoryBlock *block = segment->first; block; block = block->next) {
            bool starts = !block->prev || block->prev->state == MEMORY_BLOCK_UNMAPPED;
            if (block->state == MEMORY_BLOCK_UNMAPPED || !starts) {
                continue;
            }
            MemoryRange range = {
                .segment = segment->number,
                .stream = segment->stream,
                .offset = memory_block_offset(block),
                .pool = segment->pool,
                .first = block,
            };
            for (const MemoryBlock *piece = block; piece; piece = memory_block_next(piece)) {
                range.bytes += piece->bytes;
            }
            g_array_append_val(ranges, range);
        }
    }
    return ranges;
}

void memory_caching_watch(MemoryCaching *caching, void (*done)(gpointer self, MemoryBlock *block),
                          gpointer self) {
    caching->done = done;
    caching->done_self = self;
}

static void reset_peak(MemoryStat *stat) {
    stat->peak = stat->current;
}

void memory_caching_reset_peaks(MemoryCaching *caching) {
    for (uint32_t pool = 0; pool < MEMORY_N_POOLS; pool++) {
        MemoryPoolStats *stats = &caching->stats.pools[pool];
        reset_peak(&stats->requested_bytes);
        reset_peak(&stats->allocated_bytes);
        reset_peak(&stats->active_bytes);
        reset_peak(&stats->reserved_bytes);
        reset_peak(&stats->inactive_split_bytes);
        reset_peak(&stats->segments);
    }
}

enum {
    WORDS_OF_BLOCK = 3 /* at most */
};

/* Where it lies say the blocks before it. Of the rest of the record only what counts in its state:
 * the others keep what was there. */
static void append_block(MemoryWords *state, const MemoryBlock *block) {
    memory_words_reserve(state, WORDS_OF_BLOCK);
    uint64_t *word = state->words + state->n;
    uint64_t bytes_and_state = block->bytes << 3 | block->state; /* of four; bytes are below 2^60 */
    if (block->state != MEMORY_BLOCK_USED && block->state != MEMORY_BLOCK_WAITING) {
        *word++ = bytes_and_state;
    } else {
        uint64_t more = block->state == MEMORY_BLOCK_USED ? block->marks : block->n_events;
        *word++ = bytes_and_state | (uint64_t)(more > 0) << 2; /* a word for it; often it is 0 */
        *word++ = block->requested_bytes;
        *word = more;
        word += more > 0;
    }
    state->n = (gsize)(word - state->words);
}

void memory_caching_append_waits(const MemoryCaching *caching, MemoryEvent newest,
                                 MemoryWords *state) {
    for (uint32_t stream = 0; stream < MEMORY_N_STREAMS; stream++) {
        const MemoryPendingQueue *queue = &caching->pending[stream];
        memory_words_add(state, queue->n);
        for (uint32_t i = 0; i < queue->n; i++) {
            const MemoryPending *waits = &queue->ring[(queue->first + i) & (queue->room - 1)];
            memory_words_add(state, newest - waits->event);
            memory_words_add(state, waits->block->address);
        }
    }
}

bool memory_caching_append_state(const MemoryCaching *caching, MemoryWords *state) {
    for (const MemorySegment *segment = caching->first_segment; segment; segment = segment->next) {
        memory_words_add(state, segment->number);
        for (const MemoryBlock *block = segment->first; block; block = block->next) {
            append_block(state, block);
        }
    }
    return !caching->collects;
}
