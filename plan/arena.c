#include "plan/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Block Block;
struct Block {
    Block *before;
    gsize bytes, used; /* this head included */
};

struct _PlanArena {
    Block *last;
};

/* With AddressSanitizer each piece is a block, so that no step beyond its end goes unseen. */
#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#define EACH_ALONE __has_feature(address_sanitizer)
#else
#define EACH_ALONE 0
#endif

enum {
    ALIGNMENT = 16,
    FIRST_BLOCK = 64 << 10,
    LARGE_FROM = 256 << 10, /* bytes; a block that would be as large as this is */
    LARGE_BLOCK = 64 << 20, /* addresses; five plans of GPT-175B on 512 ranks */
    LARGE_PAGE = 2 << 20,   /* x86-64 and arm64 with pages of 4 KiB */
};

static gsize aligned(gsize bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- the large block that is kept ----------------------------------------------------------- */

static Block *kept;

static Block *take_kept(void) {
    Block *block = g_atomic_pointer_get(&kept);
    return g_atomic_pointer_compare_and_exchange(&kept, block, NULL) ? block : NULL;
}

static bool keep(Block *block) {
    return block->bytes == LARGE_BLOCK && g_atomic_pointer_compare_and_exchange(&kept, NULL, block);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Where there are no large pages the advice is for nothing, and so it is not checked. */
static Block *new_large(gsize bytes) {
    gpointer block = NULL;
    if (posix_memalign(&block, LARGE_PAGE, bytes) != 0) {
        g_error("no memory for %" G_GSIZE_FORMAT " bytes of a plan", bytes);
    }
    madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

static void add_block(PlanArena *arena, gsize piece) {
    gsize bytes = aligned(sizeof(Block)) + piece;
    Block *block = NULL;
    if (!EACH_ALONE) {
        bytes = MAX(bytes, arena->last ? 2 * arena->last->bytes : FIRST_BLOCK);
        if (bytes >= LARGE_FROM) {
            bytes = MAX(bytes, LARGE_BLOCK);
            block = bytes == LARGE_BLOCK ? take_kept() : NULL;
            block = block ? block : new_large(bytes);
        }
    }
    block = block ? block : g_malloc(bytes);
    *block = (Block){.before = arena->last, .bytes = bytes, .used = aligned(sizeof(Block))};
    arena->last = block;
}

/* ---- the arena ------------------------------------------------------------------------------ */

PlanArena *plan_arena_new(void) {
    return g_new0(PlanArena, 1);
}

void plan_arena_free(PlanArena *arena) {
    if (!arena) {
        return;
    }
    for (Block *block = arena->last, *before; block; block = before) {
        before = block->before;
        if (!keep(block)) {
            free(block);
        }
    }
    g_free(arena);
}

gpointer plan_arena_take(PlanArena *arena, gsize bytes) {
    gsize piece = aligned(MAX(bytes, 1)); /* no two begin at the same place */
    if (!arena->last || arena->last->bytes - arena->last->used < piece) {
        add_block(arena, EACH_ALONE ? bytes : piece);
    }
    Block *block = arena->last;
    gpointer taken = (char *)block + block->used;
    block->used += EACH_ALONE ? bytes : piece;
    return taken;
}

gpointer plan_arena_copy(PlanArena *arena, gconstpointer items, gsize bytes) {
    gpointer copy = plan_arena_take(arena, bytes);
    if (bytes) {
        memcpy(copy, items, bytes);
    }
    return copy;
}

const char *plan_arena_text(PlanArena *arena, const char *text) {
    return plan_arena_copy(arena, text, strlen(text) + 1);
}
