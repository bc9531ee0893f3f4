#include "plan/vector.h"

#include <string.h>

gpointer plan_vector_grow(PlanArena *arena, gpointer items, gsize used_bytes, gsize bytes) {
    if (!arena) {
        return g_realloc(items, bytes);
    }
    gpointer larger = plan_arena_take(arena, bytes);
    if (used_bytes) {
        memcpy(larger, items, used_bytes);
    }
    return larger;
}

gpointer plan_vector_shrink(PlanArena *arena, gpointer items, gsize had_bytes, gsize bytes) {
    return arena ? plan_arena_shrink(arena, items, had_bytes, bytes) : g_realloc(items, bytes);
}
