/* The static layout: sound on anything, exact where that is known, close to the least it can be,
 * and to the byte what the plain one is. */
#include <glib.h>
#include <stdbool.h>

#include "memory/arena.h"
#include "tests/memory/plain-arena.h"

static uint64_t most_alive(const MemoryTenant *tenants, uint32_t n, uint32_t moments) {
    g_autofree gint64 *change = g_new0(gint64, moments + 1);
    for (uint32_t i = 0; i < n; i++) {
        change[tenants[i].from] += (gint64)tenants[i].bytes;
        change[tenants[i].to] -= (gint64)tenants[i].bytes;
    }
    gint64 alive = 0, most = 0;
    for (uint32_t t = 0; t < moments; t++) {
        alive += change[t];
        most = MAX(most, alive);
    }
    return (uint64_t)most;
}

static void assert_sound(const MemoryTenant *tenants, uint32_t n, uint64_t size) {
    for (uint32_t i = 0; i < n; i++) {
        const MemoryTenant *a = &tenants[i];
        g_assert_cmpuint(a->offset + a->bytes, <=, size);
        for (uint32_t j = 0; j < i; j++) {
            const MemoryTenant *b = &tenants[j];
            bool together = a->from < b->to && b->from < a->to;
            bool apart = a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes;
            g_assert_true(!together || apart || !a->bytes || !b->bytes);
        }
    }
}

/* A stack needs what lives at once and no more; so do tensors that follow each other. */
static void exact(void) {
    MemoryTenant stack[] = {{100, 0, 6}, {50, 1, 5}, {70, 2, 4}, {10, 3, 4}};
    g_assert_cmpuint(memory_arena_layout(stack, 4), ==, 230);
    assert_sound(stack, 4, 230);
    MemoryTenant row[] = {{100, 0, 1}, {90, 1, 2}, {100, 2, 3}, {0, 0, 3}};
    g_assert_cmpuint(memory_arena_layout(row, 4), ==, 100);
    assert_sound(row, 4, 100);
    g_assert_cmpuint(memory_arena_layout(NULL, 0), ==, 0);
}

/* Tensors at random, many of few sizes as in training. */
static void random_ones(void) {
    enum {
        N = 400,
        MOMENTS = 800
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    double worst = 1;
    for (unsigned turn = 0; turn < 60; turn++) {
        MemoryTenant tenants[N];
        for (unsigned i = 0; i < N; i++) {
            uint32_t from = (uint32_t)g_rand_int_range(rand, 0, MOMENTS - 1);
            uint32_t length = (uint32_t)g_rand_int_range(rand, 1, turn % 2 ? 20 : 400);
            tenants[i] =
                (MemoryTenant){(uint64_t)g_rand_int_range(rand, 0, turn % 3 ? 8 : 5000) * 512, from,
                               MIN(MOMENTS, from + length), 0, 0};
        }
        uint64_t size = memory_arena_layout(tenants, N), least = most_alive(tenants, N, MOMENTS);
        assert_sound(tenants, N, size);
        plain_arena_assert_same(tenants, N, size);
        g_assert_cmpuint(size, >=, least);
        worst = MAX(worst, (double)size / (double)least);
    }
    g_test_message("at most %.3f of what lives at once", worst);
    g_assert_cmpfloat(worst, <=, 1.25);
}

/* ---- those that come back ------------------------------------------------------------------- */

/* Every stay of each within some rounds, as tenants that come once. */
static GArray *stays(const MemoryTenant *tenants, uint32_t n, unsigned rounds) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(MemoryTenant));
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < (tenants[i].every ? rounds : 1); k++) {
            MemoryTenant stay = tenants[i];
            stay.from += k * stay.every;
            stay.to += stay.to < UINT32_MAX ? k * stay.every : 0;
            g_array_append_val(all, stay);
        }
    }
    return all;
}

static void assert_sound_for_ever(const MemoryTenant *tenants, uint32_t n, uint64_t size) {
    g_autoptr(GArray) all = stays(tenants, n, 4);
    assert_sound((const MemoryTenant *)(gpointer)all->data, all->len, size);
}

/* One that lives from round to round meets what lives at either end of it. */
static void round_and_round(void) {
    /* At the round's head and its tail; between them there is room. */
    MemoryTenant across[] = {{100, 18, 22, 0, 10}, {60, 11, 13, 0, 10}, {80, 14, 17, 0, 10}};
    g_assert_cmpuint(memory_arena_layout(across, 3), ==, 160);
    assert_sound_for_ever(across, 3, 160);
    /* One that comes once, and leaves before those of the first round come, or not. */
    MemoryTenant once[] = {{100, 0, 12, 0, 0}, {100, 12, 16, 0, 10}, {100, 18, 21, 0, 10}};
    g_assert_cmpuint(memory_arena_layout(once, 3), ==, 100);
    assert_sound_for_ever(once, 3, 100);
    once[0].to = 13;
    g_assert_cmpuint(memory_arena_layout(once, 3), ==, 200);
    assert_sound_for_ever(once, 3, 200);
    once[0].to = UINT32_MAX;
    once[0].from = 17; /* in the first round, and stays: meets even who has gone by then */
    g_assert_cmpuint(memory_arena_layout(once, 3), ==, 200);
    assert_sound_for_ever(once, 3, 200);
}

static void random_rounds(void) {
    enum {
        N = 120,
        BEFORE = 100,
        ROUND = 150
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    double worst = 1;
    for (unsigned turn = 0; turn < 60; turn++) {
        MemoryTenant tenants[N];
        for (unsigned i = 0; i < N; i++) {
            bool back = i % 3 > 0;
            uint32_t from = (uint32_t)(back ? g_rand_int_range(rand, BEFORE, BEFORE + ROUND)
                                            : g_rand_int_range(rand, 0, BEFORE));
            uint32_t length = (uint32_t)g_rand_int_range(rand, 1, turn % 2 ? 20 : ROUND + 1);
            bool stays_on = !back && i % 30 == 0;
            tenants[i] =
                (MemoryTenant){(uint64_t)g_rand_int_range(rand, 0, turn % 3 ? 8 : 5000) * 512, from,
                               stays_on ? UINT32_MAX : from + length, 0, back ? ROUND : 0};
        }
        uint64_t size = memory_arena_layout(tenants, N);
        assert_sound_for_ever(tenants, N, size);
        plain_arena_assert_same(tenants, N, size);
        g_autoptr(GArray) all = stays(tenants, N, 4);
        for (guint i = 0; i < all->len; i++) {
            MemoryTenant *stay = &g_array_index(all, MemoryTenant, i);
            stay->to = MIN(stay->to, BEFORE + 5 * ROUND);
        }
        uint64_t least =
            most_alive((const MemoryTenant *)(gpointer)all->data, all->len, BEFORE + 5 * ROUND);
        g_assert_cmpuint(size, >=, least);
        worst = MAX(worst, (double)size / (double)least);
    }
    g_test_message("at most %.3f of what lives at once", worst);
    g_assert_cmpfloat(worst, <=, 1.35);
}

/* Few moments, so that many come, leave and go round at the same one; rounds from one moment to all
 * there are, and some who come once stay for several of them, or for ever. */
static void same_as_plain(void) {
    enum {
        MOST = 60
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (unsigned turn = 0; turn < 4000; turn++) {
        MemoryTenant tenants[MOST];
        uint32_t n = (uint32_t)g_rand_int_range(rand, 0, MOST + 1);
        gint32 round = g_rand_int_range(rand, 1, turn % 3 ? 40 : 8);
        gint32 begins = g_rand_int_range(rand, 0, 40);
        for (uint32_t i = 0; i < n; i++) {
            bool back = turn % 4 == 0 ? false : turn % 4 == 1 ? true : g_rand_boolean(rand);
            gint32 from = back ? g_rand_int_range(rand, begins, begins + round)
                               : g_rand_int_range(rand, 0, begins + round);
            gint32 length = g_rand_int_range(rand, 1,
                                             back       ? round + 1
                                             : turn % 2 ? 10
                                                        : 3 * round + 1);
            bool stays_on = !back && g_rand_int_range(rand, 0, 8) == 0;
            tenants[i] = (MemoryTenant){
                (uint64_t)g_rand_int_range(rand, 0, turn % 5 ? 8 : 500), (uint32_t)from,
                stays_on ? UINT32_MAX : (uint32_t)(from + length), 0, back ? (uint32_t)round : 0};
        }
        plain_arena_assert_same(tenants, n, memory_arena_layout(tenants, n));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/arena/exact", exact);
    g_test_add_func("/memory/arena/sound and close", random_ones);
    g_test_add_func("/memory/arena/round and round", round_and_round);
    g_test_add_func("/memory/arena/rounds, sound and close", random_rounds);
    g_test_add_func("/memory/arena/same as the plain one", same_as_plain);
    return g_test_run();
}
