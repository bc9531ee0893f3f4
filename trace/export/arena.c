#include "trace/export/arena.h"

static ArenaBlock *block(const Arena *arena, guint i) {
    return &g_array_index(arena->blocks, ArenaBlock, i);
}

void arena_begin(Arena *arena) {
    arena->blocks = g_array_new(FALSE, FALSE, sizeof(ArenaBlock));
}

void arena_clear(Arena *arena) {
    g_array_unref(arena->blocks);
}

uint64_t arena_place(Arena *arena, uint64_t bytes, void *owner) {
    uint64_t offset = 0;
    guint i = 0;
    while (i < arena->blocks->len && block(arena, i)->offset < offset + bytes) {
        offset = block(arena, i)->offset + block(arena, i)->bytes;
        i++;
    }
    ArenaBlock placed = {offset, bytes, owner};
    g_array_insert_val(arena->blocks, i, placed);
    return offset;
}

void arena_remove(Arena *arena, uint64_t offset) {
    guint low = 0, high = arena->blocks->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (block(arena, middle)->offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    g_assert(low < arena->blocks->len && block(arena, low)->offset == offset);
    g_array_remove_index(arena->blocks, low);
}

uint64_t arena_end(const Arena *arena) {
    guint n = arena->blocks->len;
    return n > 0 ? block(arena, n - 1)->offset + block(arena, n - 1)->bytes : 0;
}
