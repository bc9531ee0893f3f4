/* sim/queue.c - a binary heap of slots that knows where each slot sits. */
#include "sim/queue.h"

#include <stdlib.h>

#define ABSENT UINT32_MAX

typedef struct {
    SimTime at;
    uint64_t turn; /* insertion count: breaks ties */
    uint32_t slot;
} Entry;

struct _SimQueue {
    Entry *heap;
    uint32_t n, n_slots, capacity;
    uint32_t *place; /* of each slot in the heap, or ABSENT */
    uint64_t turns;
};

static bool before(const Entry *a, const Entry *b) {
    return a->at != b->at ? a->at < b->at : a->turn < b->turn;
}

static void put(SimQueue *queue, uint32_t place, const Entry *entry) {
    queue->heap[place] = *entry;
    queue->place[entry->slot] = place;
}

static inline void sift_up(SimQueue *queue, uint32_t place, Entry entry) {
    while (place > 0 && before(&entry, &queue->heap[(place - 1) / 2])) {
        put(queue, place, &queue->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(queue, place, &entry);
}

static inline void sift_down(SimQueue *queue, uint32_t place, Entry entry) {
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= queue->n) {
            break;
        }
        if (child + 1 < queue->n && before(&queue->heap[child + 1], &queue->heap[child])) {
            child++;
        }
        if (!before(&queue->heap[child], &entry)) {
            break;
        }
        put(queue, place, &queue->heap[child]);
        place = child;
    }
    put(queue, place, &entry);
}

static void take_out(SimQueue *queue, uint32_t place) {
    queue->place[queue->heap[place].slot] = ABSENT;
    Entry last = queue->heap[--queue->n];
    if (place == queue->n) {
        return;
    }
    if (place > 0 && before(&last, &queue->heap[(place - 1) / 2])) {
        sift_up(queue, place, last);
    } else {
        sift_down(queue, place, last);
    }
}

SimQueue *sim_queue_new(uint32_t n_slots) {
    SimQueue *queue = g_new0(SimQueue, 1);
    sim_queue_grow(queue, n_slots);
    return queue;
}

void sim_queue_grow(SimQueue *queue, uint32_t n_slots) {
    if (n_slots > queue->capacity) {
        queue->capacity = MAX(n_slots, 2 * queue->capacity);
        queue->heap = g_renew(Entry, queue->heap, queue->capacity);
        queue->place = g_renew(uint32_t, queue->place, queue->capacity);
    }
    for (; queue->n_slots < n_slots; queue->n_slots++) {
        queue->place[queue->n_slots] = ABSENT;
    }
}

void sim_queue_free(SimQueue *queue) {
    if (queue) {
        g_free(queue->heap);
        g_free(queue->place);
        g_free(queue);
    }
}

void sim_queue_set(SimQueue *queue, uint32_t slot, SimTime at) {
    g_assert(slot < queue->n_slots);
    Entry entry = {.at = at, .turn = queue->turns++, .slot = slot};
    uint32_t place = queue->place[slot];
    if (place == ABSENT) {
        sift_up(queue, queue->n++, entry);
    } else if (before(&entry, &queue->heap[place])) {
        sift_up(queue, place, entry);
    } else {
        sift_down(queue, place, entry);
    }
}

void sim_queue_unset(SimQueue *queue, uint32_t slot) {
    g_assert(slot < queue->n_slots);
    if (queue->place[slot] != ABSENT) {
        take_out(queue, queue->place[slot]);
    }
}

bool sim_queue_is_set(const SimQueue *queue, uint32_t slot) {
    return queue->place[slot] != ABSENT;
}

SimTime sim_queue_next(const SimQueue *queue) {
    return queue->n ? queue->heap[0].at : SIM_NEVER;
}

bool sim_queue_pop(SimQueue *queue, uint32_t *ret_slot, SimTime *ret_at) {
    if (!queue->n) {
        return false;
    }
    *ret_slot = queue->heap[0].slot;
    *ret_at = queue->heap[0].at;
    take_out(queue, 0);
    return true;
}

void sim_queue_shift(SimQueue *queue, SimTime by) {
    for (uint32_t i = 0; i < queue->n; i++) {
        queue->heap[i].at += by;
    }
}

static int compare_entries(gconstpointer a, gconstpointer b) {
    return before(a, b) ? -1 : 1; /* no two are equal */
}

void sim_queue_append_state(const SimQueue *queue, SimTime now, MemoryWords *state) {
    g_autofree Entry *entries = g_memdup2(queue->heap, queue->n * sizeof *queue->heap);
    if (entries) { /* of an empty queue there are none */
        qsort(entries, queue->n, sizeof *entries, compare_entries);
    }
    for (uint32_t i = 0; i < queue->n; i++) {
        memory_words_add(state, entries[i].slot);
        memory_words_add(state, (uint64_t)(entries[i].at - now));
    }
}
