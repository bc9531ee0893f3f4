#include "memory/free-list.h"

#include <string.h>

/* Of equal keys the lower address: then the key may as well be one less. Without branches, and so
 * are the searches: which way they go nobody can foretell. */
static bool is_before(const MemoryFreeEntry *entry, uint64_t key, uint64_t address) {
    return entry->key < key + (entry->address < address);
}

void memory_free_list_clear(MemoryFreeList *list) {
    for (uint32_t i = 0; i < list->n_made; i++) {
        g_free(list->chunks[i]);
    }
    g_free(list->chunks);
    *list = (MemoryFreeList){0};
}

/* The first chunk whose last entry is not before; when there is none, the last. Not of an empty
 * list. */
static uint32_t find_chunk(const MemoryFreeList *list, uint64_t key, uint64_t address) {
    uint32_t low = 0;
    for (uint32_t left = list->n - 1, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        const MemoryFreeChunk *chunk = list->chunks[low + half - 1];
        low += is_before(&chunk->entries[chunk->n - 1], key, address) ? half : 0;
    }
    return low;
}

/* The first entry that is not before; n when there is none. */
static uint32_t find_entry(const MemoryFreeChunk *chunk, uint64_t key, uint64_t address) {
    uint32_t low = 0;
    for (uint32_t left = chunk->n, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        low += is_before(&chunk->entries[low + half - 1], key, address) ? half : 0;
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

/* An empty chunk at that place among those in use. */
static MemoryFreeChunk *add_chunk(MemoryFreeList *list, uint32_t at) {
    if (list->n == list->n_made) {
        if (list->n_made == list->room) {
            list->room = list->room ? 2 * list->room : 4;
            list->chunks = g_renew(MemoryFreeChunk *, list->chunks, list->room);
        }
        list->chunks[list->n_made++] = g_new(MemoryFreeChunk, 1);
    }
    MemoryFreeChunk *chunk = list->chunks[list->n];
    memmove(&list->chunks[at + 1], &list->chunks[at], (list->n - at) * sizeof *list->chunks);
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
}

void memory_free_list_insert(MemoryFreeList *list, uint64_t key, uint64_t address, gpointer block) {
    if (list->n == 0) {
        add_chunk(list, 0);
    }
    uint32_t at = find_chunk(list, key, address);
    if (list->chunks[at]->n == MEMORY_CHUNK) {
        split_chunk(list, at);
        const MemoryFreeChunk *lower = list->chunks[at];
        if (is_before(&lower->entries[lower->n - 1], key, address)) {
            at++;
        }
    }
    MemoryFreeChunk *chunk = list->chunks[at];
    uint32_t entry = find_entry(chunk, key, address);
    memmove(&chunk->entries[entry + 1], &chunk->entries[entry],
            (chunk->n - entry) * sizeof *chunk->entries);
    chunk->entries[entry] = (MemoryFreeEntry){key, address, block};
    chunk->n++;
}

void memory_free_list_remove_at(MemoryFreeList *list, MemoryFreeCursor cursor) {
    MemoryFreeChunk *chunk = list->chunks[cursor.chunk];
    chunk->n--;
    memmove(&chunk->entries[cursor.entry], &chunk->entries[cursor.entry + 1],
            (chunk->n - cursor.entry) * sizeof *chunk->entries);
    if (chunk->n == 0) {
        list->n--;
        memmove(&list->chunks[cursor.chunk], &list->chunks[cursor.chunk + 1],
                (list->n - cursor.chunk) * sizeof *list->chunks);
        list->chunks[list->n] = chunk;
    }
}

/* Between its neighbours, were it there: the last entry of the chunk before, the first of the one
 * behind. */
static bool belongs_to(const MemoryFreeList *list, uint32_t at, uint64_t key, uint64_t address) {
    const MemoryFreeChunk *lower = at > 0 ? list->chunks[at - 1] : NULL;
    const MemoryFreeChunk *upper = at + 1 < list->n ? list->chunks[at + 1] : NULL;
    return (!lower || is_before(&lower->entries[lower->n - 1], key, address)) &&
           (!upper || !is_before(&upper->entries[0], key, address));
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
    for (; at > first && !is_before(at - 1, key, address); at--) {
        *at = at[-1];
    }
    for (; at < last && is_before(at + 1, key, address); at++) {
        *at = at[1];
    }
    *at = (MemoryFreeEntry){key, address, block};
}

void memory_free_list_remove(MemoryFreeList *list, uint64_t key, uint64_t address) {
    MemoryFreeCursor cursor = memory_free_list_find(list, key, address);
    g_assert(cursor.chunk < list->n);
    const MemoryFreeEntry *entry = &list->chunks[cursor.chunk]->entries[cursor.entry];
    g_assert(entry->key == key && entry->address == address);
    memory_free_list_remove_at(list, cursor);
}

gpointer memory_free_list_last(const MemoryFreeList *list) {
    if (list->n == 0) {
        return NULL;
    }
    const MemoryFreeChunk *chunk = list->chunks[list->n - 1];
    return chunk->entries[chunk->n - 1].block;
}
