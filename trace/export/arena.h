/* trace/export/arena.h - made-up addresses: each block at the lowest place that has room.
 *
 * Blocks lie in order of address. A place costs O(blocks alive).
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    uint64_t offset, bytes;
    void *owner; /* whoever placed it */
} ArenaBlock;

typedef struct {
    GArray *blocks; /* ArenaBlock, by offset */
} Arena;

void arena_begin(Arena *arena);
void arena_clear(Arena *arena);
uint64_t arena_place(Arena *arena, uint64_t bytes, void *owner); /* its offset */
void arena_remove(Arena *arena, uint64_t offset);
uint64_t arena_end(const Arena *arena); /* of the highest block; 0 when there is none */
