/* Blocks that other streams use. Dropped, they wait for one event on each of those streams. Each
 * stream has its own queue, so a slow stream holds up only the blocks that it uses. */
#include "memory/caching-private.h"

static void push(MemoryPendingQueue *queue, MemoryPending pending) {
    if (queue->n == queue->room) {
        uint32_t room = queue->room ? 2 * queue->room : 64;
        MemoryPending *ring = g_new(MemoryPending, room);
        for (uint32_t i = 0; i < queue->n; i++) {
            ring[i] = queue->ring[(queue->first + i) & (queue->room - 1)];
        }
        g_free(queue->ring);
        *queue = (MemoryPendingQueue){.ring = ring, .n = queue->n, .room = room};
    }
    queue->ring[(queue->first + queue->n) & (queue->room - 1)] = pending;
    queue->n++;
}

static MemoryBlock *pop(MemoryCaching *caching, uint32_t stream) {
    MemoryPendingQueue *queue = &caching->pending[stream];
    MemoryBlock *block = queue->ring[queue->first].block;
    queue->first = (queue->first + 1) & (queue->room - 1);
    queue->n--;
    if (queue->n == 0) {
        caching->waits &= ~(UINT64_C(1) << stream);
    }
    return block;
}

static void one_passed(MemoryCaching *caching, MemoryBlock *block) {
    block->n_events--;
    if (block->n_events == 0) {
        memory_block_release(caching, block);
    }
}

void memory_events_record(MemoryCaching *caching, MemoryBlock *block) {
    uint64_t marks = block->marks;
    block->state = MEMORY_BLOCK_WAITING;
    block->n_events = 0;
    for (; marks; marks &= marks - 1) {
        uint32_t stream = (uint32_t)__builtin_ctzll(marks);
        MemoryEvent event = caching->source->event_record(caching->self, stream);
        push(&caching->pending[stream], (MemoryPending){event, block});
        caching->waits |= UINT64_C(1) << stream;
        block->n_events++;
    }
}

static bool has_passed(MemoryCaching *caching, MemoryEvent event) {
    bool passed = caching->source->event_query(caching->self, event);
    if (caching->answers) {
        memory_answers_add(caching->answers, passed);
    }
    return passed;
}

void memory_events_process(MemoryCaching *caching) {
    for (uint64_t waits = caching->waits; waits; waits &= waits - 1) {
        uint32_t stream = (uint32_t)__builtin_ctzll(waits);
        const MemoryPendingQueue *queue = &caching->pending[stream];
        /* The first that has not passed hides those behind it. */
        while (queue->n && has_passed(caching, queue->ring[queue->first].event)) {
            one_passed(caching, pop(caching, stream));
        }
    }
}

void memory_events_sync(MemoryCaching *caching) {
    caching->stats.n_sync_all_streams++;
    while (caching->waits) {
        uint32_t stream = (uint32_t)__builtin_ctzll(caching->waits);
        const MemoryPendingQueue *queue = &caching->pending[stream];
        caching->source->event_sync(caching->self, queue->ring[queue->first].event);
        one_passed(caching, pop(caching, stream));
    }
}

void memory_events_clear(MemoryCaching *caching) {
    for (uint32_t stream = 0; stream < MEMORY_N_STREAMS; stream++) {
        g_free(caching->pending[stream].ring);
    }
}
