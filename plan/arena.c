#include "plan/arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Block Block;
struct Block {
    Block *before;
    gsize bytes, used; /* this head included */
};

struct _PlanArena {
    Block *last; /* the one that has most room left */
    gsize bytes; /* of all blocks */
};

enum {
    ALIGNMENT = 16,
    LEAST_BLOCK = 16 << 10,
    LARGE_FROM = 4 << 20,   /* bytes of an arena; what is more of it is in a large block */
    LARGE_BLOCK = 64 << 20, /* addresses; five plans of GPT-175B on 512 ranks */
    MOST_KEPT = 8,          /* 512 MiB; Llama 3 405B in 8 stages of 32 microbatches takes 7 */
    LARGE_PAGE = 2 << 20,   /* x86-64 and arm64 with pages of 4 KiB */
};

static gsize rounded(gsize bytes, gsize to) {
    return (bytes + to - 1) / to * to;
}

/* ---- large blocks that are kept -------------------------------------------------------------- */

static pthread_mutex_t of_kept = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static Block *kept;
static guint n_kept;

static Block *take_kept(void) {
    pthread_mutex_lock(&of_kept);
    Block *block = kept;
    if (block) {
        kept = block->before;
        n_kept--;
    }
    pthread_mutex_unlock(&of_kept);
    return block;
}

static bool keep(Block *block) {
    pthread_mutex_lock(&of_kept);
    bool is_kept = block->bytes == LARGE_BLOCK && n_kept < MOST_KEPT;
    if (is_kept) {
        block->before = kept;
        kept = block;
        n_kept++;
    }
    pthread_mutex_unlock(&of_kept);
    return is_kept;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Not by malloc, which may be told to write on all that it gives. What is mapped too much on either
 * side goes back. Where there are no large pages the advice is for nothing, so it is not checked.
 */
static Block *map_large(gsize bytes) {
    char *start = mmap(NULL, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        g_error("no memory for %" G_GSIZE_FORMAT " bytes of a plan", bytes);
    }
    gsize before = -(guintptr)start % LARGE_PAGE;
    char *block = start + before;
    if (before > 0) {
        munmap(start, before);
    }
    munmap(block + bytes, LARGE_PAGE - before);
    madvise(block, bytes, MADV_HUGEPAGE);
    return (Block *)(gpointer)block;
}

static Block *new_block(const PlanArena *arena, gsize *bytes) {
    if (PLAN_ARENA_EACH_ALONE || arena->bytes + *bytes <= LARGE_FROM) {
        return g_malloc(*bytes);
    }
    *bytes = rounded(MAX(*bytes, LARGE_BLOCK), LARGE_PAGE);
    Block *block = *bytes == LARGE_BLOCK ? take_kept() : NULL;
    return block ? block : map_large(*bytes);
}

static void free_block(Block *block) {
    if (PLAN_ARENA_EACH_ALONE || block->bytes < LARGE_BLOCK) {
        g_free(block);
    } else if (!keep(block)) {
        munmap(block, block->bytes);
    }
}

static gsize left_of(const Block *block) {
    return block ? block->bytes - block->used : 0;
}

/* Where the piece goes. A large one fills a block of its own; small ones go on filling the one that
 * was begun. */
static Block *add_block(PlanArena *arena, gsize piece) {
    gsize head = rounded(sizeof(Block), ALIGNMENT), bytes = head + piece;
    if (!PLAN_ARENA_EACH_ALONE) {
        bytes = MAX(bytes, LEAST_BLOCK);
    }
    Block *block = new_block(arena, &bytes), *last = arena->last;
    bool stays = left_of(last) > bytes - head - piece;
    Block **behind = stays ? &last->before : &arena->last;
    arena->bytes += bytes;
    *block = (Block){.before = *behind, .bytes = bytes, .used = head};
    *behind = block;
    return block;
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
        free_block(block);
    }
    g_free(arena);
}

static gsize piece_of(gsize bytes) {
    gsize piece = MAX(bytes, 1); /* no two begin at the same place */
    return PLAN_ARENA_EACH_ALONE ? piece : rounded(piece, ALIGNMENT);
}

gpointer plan_arena_take(PlanArena *arena, gsize bytes) {
    gsize piece = piece_of(bytes);
    Block *block = left_of(arena->last) < piece ? add_block(arena, piece) : arena->last;
    gpointer taken = (char *)block + block->used;
    block->used += piece;
    return taken;
}

/* A piece that has a block on the heap to itself. */
gpointer plan_arena_shrink(PlanArena *arena, gpointer piece, gsize had_bytes, gsize bytes) {
    gsize head = rounded(sizeof(Block), ALIGNMENT);
    for (Block **at = &arena->last; *at; at = &(*at)->before) {
        Block *block = *at;
        bool is_alone = (char *)block + head == piece && block->used == head + piece_of(had_bytes);
        if (is_alone && block->bytes < LARGE_BLOCK) {
            gsize left = head + piece_of(bytes);
            arena->bytes -= block->bytes - left;
            *at = block = g_realloc(block, left);
            block->bytes = block->used = left;
            return (char *)block + head;
        }
    }
    return piece;
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
