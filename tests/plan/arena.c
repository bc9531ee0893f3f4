/* The memory of a plan: pieces that keep out of each other's way, and large blocks kept. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plan/arena.h"

enum {
    PIECES = 100,
    LARGE = 40 << 20 /* bytes; a piece that has a large block to itself */
};

static gsize size_of(unsigned i) {
    static const gsize sizes[] = {0, 1, 15, 16, 17, 1000, 70000, 300000};
    return sizes[i % G_N_ELEMENTS(sizes)];
}

/* Each is filled with its number, and all numbers are still there at the end. */
static void fill(PlanArena *arena, uint8_t seed) {
    guint8 *pieces[PIECES];
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = plan_arena_take(arena, size_of(i));
        memset(pieces[i], (uint8_t)(i + seed), size_of(i));
    }
    for (unsigned i = 0; i < PIECES; i++) {
        for (gsize at = 0; at < size_of(i); at++) {
            g_assert_cmpuint(pieces[i][at], ==, (uint8_t)(i + seed));
        }
    }
}

static void pieces(void) {
    g_autoptr(PlanArena) arena = plan_arena_new();
    fill(arena, 0);
    fill(arena, 1);
}

static void aligned(void) {
    g_autoptr(PlanArena) arena = plan_arena_new();
    for (unsigned i = 0; i < PIECES; i++) {
        g_assert_cmpuint((guintptr)plan_arena_take(arena, size_of(i)) % G_ALIGNOF(max_align_t), ==,
                         0);
    }
}

/* A section without instructions must not look like the one that follows it. */
static void empty_pieces(void) {
    g_autoptr(PlanArena) arena = plan_arena_new();
    gpointer a = plan_arena_take(arena, 0), b = plan_arena_take(arena, 0);
    g_assert_true(a && b && a != b);
}

static void copies(void) {
    g_autoptr(PlanArena) arena = plan_arena_new();
    char word[] = "gather";
    const char *text = plan_arena_text(arena, word);
    const char *items = plan_arena_copy(arena, word, 3);
    memset(word, 0, sizeof word);
    g_assert_cmpstr(text, ==, "gather");
    g_assert_cmpmem(items, 3, "gat", 3);
    g_assert_nonnull(plan_arena_copy(arena, NULL, 0));
}

/* What arenas leave the next ones have, and two at once have nothing in common. */
static void blocks_are_kept(void) {
    PlanArena *arena = plan_arena_new();
    const gpointer first = plan_arena_take(arena, LARGE);
    PlanArena *other = plan_arena_new();
    const gpointer second = plan_arena_take(other, LARGE);
    g_assert_true(ABS((char *)first - (char *)second) >= LARGE);
    plan_arena_free(arena);
    plan_arena_free(other);
    arena = plan_arena_new();
    const gpointer again = plan_arena_take(arena, LARGE), more = plan_arena_take(arena, LARGE);
    plan_arena_free(arena);
    if (PLAN_ARENA_EACH_ALONE) {
        g_test_skip("with AddressSanitizer each piece is a block by itself");
        return;
    }
    g_assert_true(again == second && more == first);
}

static gpointer fill_many(gpointer seed) {
    for (unsigned turn = 0; turn < 10; turn++) {
        g_autoptr(PlanArena) arena = plan_arena_new();
        fill(arena, (uint8_t)(GPOINTER_TO_UINT(seed) + turn));
    }
    return NULL;
}

static void threads(void) {
    GThread *running[4];
    for (unsigned i = 0; i < G_N_ELEMENTS(running); i++) {
        running[i] = g_thread_new("arena", fill_many, GUINT_TO_POINTER(50 * i));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(running); i++) {
        g_thread_join(running[i]);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/arena/pieces keep apart", pieces);
    g_test_add_func("/plan/arena/pieces hold anything", aligned);
    g_test_add_func("/plan/arena/empty pieces have places of their own", empty_pieces);
    g_test_add_func("/plan/arena/copies", copies);
    g_test_add_func("/plan/arena/large blocks are kept for the next", blocks_are_kept);
    g_test_add_func("/plan/arena/threads", threads);
    return g_test_run();
}
