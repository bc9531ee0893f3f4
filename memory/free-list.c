#include "memory/free-list.h"

#include <string.h>

/* Order by key, then by address: where the address is lower, comparing with key + 1 lets an equal
 * key pass. There is no branch here, nor in the searches, because a processor could not predict
 * which way it would go. */
static bool is_before(const MemoryFreeOrder *order, uint64_t key, uint64_t address) {
    return order->key < key + (order->address < address);
}

static bool entry_is_before(const MemoryFreeEntry *entry, uint64_t key, uint64_t address) {
    return is_before(&entry->order, key, address);
}

void memory_free_list_clear(MemoryFreeList *list) {
    for (uint32_t i = 0; i < list->n_made; i++) {
        g_free(list->chunks[i]);
    }
    g_free(list->chunks);
    g_free(list->lasts);
    *list = (MemoryFreeList){0};
}

/* Refreshes the cached copy of a chunk's last entry; with one chunk nobody reads it. */
static void note_last(MemoryFreeList *list, uint32_t at) {
    if (list->n > 1) {
        const MemoryFreeChunk *chunk = list->chunks[at];
        list->lasts[at] = chunk->entries[chunk->n - 1].order;
    }
}

/* The first chunk whose last entry is not before; when there is none, the last. Not of an empty
 * list. */
static uint32_t find_chunk(const MemoryFreeList *list, uint64_t key, uint64_t address) {
    uint32_t low = 0;
    for (uint32_t left = list->n - 1, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        low += is_before(&list->lasts[low + half - 1], key, address) ? half : 0;
    }
    return low;
}

/* The first entry that is not before; n when there is none. */
static uint32_t find_entry(const MemoryFreeChunk *chunk, uint64_t key, uint64_t address) {
    uint32_t low = 0;
    for (uint32_t left = chunk->n, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        low += entry_is_before(&chunk->entries[low + half - 1], key, address) ? half : 0;
    }
    return low;
}

MemoryFreeCursor memory_free_list_find(const MemoryFreeList *list, uint64_t key, uint64_t address) {
    if (list->n == 0) {
        return (MemoryFreeCursor){0, 0};
    }
    uint32_t chunk = find_chunk(list, key, address);
    uint32_t entry = find_entry(list->chunks[chunk], key, address);
    bool behind_all = entry == list->chunks[chunk]->n;
    return behind_all ? (MemoryFreeCursor){list->n, 0} : (MemoryFreeCursor){chunk, entry};
}

/* Those behind it move up, or down over it. */
static void move_chunks(MemoryFreeList *list, uint32_t to, uint32_t from) {
    uint32_t n = list->n - from;
    memmove(&list->chunks[to], &list->chunks[from], n * sizeof *list->chunks);
    memmove(&list->lasts[to], &list->lasts[from], n * sizeof *list->lasts);
}

/* An empty chunk at that place among those in use. */
static MemoryFreeChunk *add_chunk(MemoryFreeList *list, uint32_t at) {
    if (list->n == list->n_made) {
        if (list->n_made == list->room) {
            list->room = list->room ? 2 * list->room : 4;
            list->chunks = g_renew(MemoryFreeChunk *, list->chunks, list->room);
            list->lasts = g_renew(MemoryFreeOrder, list->lasts, list->room);
        }
        list->chunks[list->n_made++] = g_new(MemoryFreeChunk, 1);
    }
    MemoryFreeChunk *chunk = list->chunks[list->n];
    move_chunks(list, at + 1, at);
    list->chunks[at] = chunk;
    list->n++;
    chunk->n = 0;
    return chunk;
}

/* The upper half of a full chunk moves to a new one behind it. */
static void split_chunk(MemoryFreeList *list, uint32_t at) {
    MemoryFreeChunk *upper = add_chunk(list, at + 1);
    MemoryFreeChunk *lower = list->chunks[at];
    upper->n = MEMORY_CHUNK / 2;
    lower->n = MEMORY_CHUNK - upper->n;
    memcpy(upper->entries, &lower->entries[lower->n], upper->n * sizeof *upper->entries);
    note_last(list, at);
    note_last(list, at + 1);
}

void memory_free_list_insert(MemoryFreeList *list, uint64_t key, uint64_t address, gpointer block) {
    if (list->n == 0) {
        add_chunk(list, 0);
    }
    uint32_t at = find_chunk(list, key, address);
    if (list->chunks[at]->n == MEMORY_CHUNK) {
        split_chunk(list, at);
        at += is_before(&list->lasts[at], key, address);
    }
    MemoryFreeChunk *chunk = list->chunks[at];
    uint32_t entry = find_entry(chunk, key, address);
    memmove(&chunk->entries[entry + 1], &chunk->entries[entry],
            (chunk->n - entry) * sizeof *chunk->entries);
    chunk->entries[entry] = (MemoryFreeEntry){{key, address}, block};
    chunk->n++;
    note_last(list, at);
}

void memory_free_list_remove_at(MemoryFreeList *list, MemoryFreeCursor cursor) {
    MemoryFreeChunk *chunk = list->chunks[cursor.chunk];
    chunk->n--;
    memmove(&chunk->entries[cursor.entry], &chunk->entries[cursor.entry + 1],
            (chunk->n - cursor.entry) * sizeof *chunk->entries);
    if (chunk->n > 0) {
        note_last(list, cursor.chunk);
    } else {
        move_chunks(list, cursor.chunk, cursor.chunk + 1);
        list->n--;
        list->chunks[list->n] = chunk;
    }
}

/* Between its neighbours, were it there: the last entry of the chunk before, the first of the one
 * behind. */
static bool belongs_to(const MemoryFreeList *list, uint32_t at, uint64_t key, uint64_t address) {
    return (at == 0 || is_before(&list->lasts[at - 1], key, address)) &&
           (at + 1 >= list->n || !entry_is_before(&list->chunks[at + 1]->entries[0], key, address));
}

/* Most go a few places, within their chunk. */
void memory_free_list_move(MemoryFreeList *list, MemoryFreeCursor cursor, uint64_t key,
                           uint64_t address) {
    MemoryFreeChunk *chunk = list->chunks[cursor.chunk];
    MemoryFreeEntry *at = &chunk->entries[cursor.entry];
    MemoryFreeEntry *first = chunk->entries, *last = first + chunk->n - 1;
    gpointer block = at->block;
    if (!belongs_to(list, cursor.chunk, key, address)) {
        memory_free_list_remove_at(list, cursor);
        memory_free_list_insert(list, key, address, block);
        return;
    }
    for (; at > first && !entry_is_before(at - 1, key, address); at--) {
        *at = at[-1];
    }
    for (; at < last && entry_is_before(at + 1, key, address); at++) {
        *at = at[1];
    }
    *at = (MemoryFreeEntry){{key, address}, block};
    note_last(list, cursor.chunk);
}

void memory_free_list_remove(MemoryFreeList *list, uint64_t key, uint64_t address) {
    MemoryFreeCursor cursor = memory_free_list_find(list, key, address);
    g_assert(cursor.chunk < list->n);
    MemoryFreeOrder order = list->chunks[cursor.chunk]->entries[cursor.entry].order;
    g_assert(order.key == key && order.address == address);
    memory_free_list_remove_at(list, cursor);
}

gpointer memory_free_list_last(const MemoryFreeList *list) {
    if (list->n == 0) {
        return NULL;
    }
    const MemoryFreeChunk *chunk = list->chunks[list->n - 1];
    return chunk->entries[chunk->n - 1].block;
}
