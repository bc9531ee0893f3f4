/* memory/free-list.h - blocks in order of (key, address).
 *
 * The free blocks of one stream and pool by size; or unmapped ones, all of key 0, by address. No
 * two entries are equal. A list is an array of chunks, each a short sorted array: finding is two
 * binary searches, inserting moves at most one chunk's entries. Tens of blocks stand in one or
 * two cache-warm chunks; thousands cost no more than a few dozen entries moved. Where each chunk
 * ends in the order is kept beside the chunks too, so that a search fetches only the chunk that it
 * finds. bench/memory-allocator.c measures it.
 *
 * A cursor points to an entry of the list; it is good until the list changes.
 *
 * Owns: its chunks, which it keeps when they run empty. Borrows: the blocks. Threads: one.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MEMORY_CHUNK 32

typedef struct {
    uint64_t key, address;
} MemoryFreeOrder;

typedef struct {
    MemoryFreeOrder order;
    gpointer block;
} MemoryFreeEntry;

typedef struct {
    uint32_t n;
    MemoryFreeEntry entries[MEMORY_CHUNK];
} MemoryFreeChunk;

typedef struct {
    MemoryFreeChunk **chunks; /* n in use, in order, none empty; then spare ones up to n_made */
    MemoryFreeOrder *lasts;   /* of each chunk in use, its last entry's; if several are */
    uint32_t n, n_made, room;
} MemoryFreeList;

typedef struct {
    uint32_t chunk, entry;
} MemoryFreeCursor;

/* A list of zeros is empty. */
void memory_free_list_clear(MemoryFreeList *list);

void memory_free_list_insert(MemoryFreeList *list, uint64_t key, uint64_t address, gpointer block);
void memory_free_list_remove(MemoryFreeList *list, uint64_t key, uint64_t address);
void memory_free_list_remove_at(MemoryFreeList *list, MemoryFreeCursor cursor);
/* Puts the block at the cursor where it belongs now that its key or address has changed. */
void memory_free_list_move(MemoryFreeList *list, MemoryFreeCursor cursor, uint64_t key,
                           uint64_t address);

/* The first entry not before (key, address). */
MemoryFreeCursor memory_free_list_find(const MemoryFreeList *list, uint64_t key, uint64_t address);

/* The block at the cursor; NULL behind the last one. */
static inline gpointer memory_free_list_at(const MemoryFreeList *list, MemoryFreeCursor cursor) {
    return cursor.chunk < list->n ? list->chunks[cursor.chunk]->entries[cursor.entry].block : NULL;
}

static inline MemoryFreeCursor memory_free_list_first(void) {
    return (MemoryFreeCursor){0, 0};
}

static inline MemoryFreeCursor memory_free_list_next(const MemoryFreeList *list,
                                                     MemoryFreeCursor cursor) {
    if (cursor.entry + 1 < list->chunks[cursor.chunk]->n) {
        return (MemoryFreeCursor){cursor.chunk, cursor.entry + 1};
    }
    return (MemoryFreeCursor){cursor.chunk + 1, 0};
}

/* The last block; NULL when the list is empty. */
gpointer memory_free_list_last(const MemoryFreeList *list);
