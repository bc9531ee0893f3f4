/* The static layout: sound on anything, exact where that is known, close to the least it can be. */
#include <glib.h>
#include <stdbool.h>

#include "memory/arena.h"

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
                               MIN(MOMENTS, from + length), 0};
        }
        uint64_t size = memory_arena_layout(tenants, N), least = most_alive(tenants, N, MOMENTS);
        assert_sound(tenants, N, size);
        g_assert_cmpuint(size, >=, least);
        worst = MAX(worst, (double)size / (double)least);
    }
    g_test_message("at most %.3f of what lives at once", worst);
    g_assert_cmpfloat(worst, <=, 1.25);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/arena/exact", exact);
    g_test_add_func("/memory/arena/sound and close", random_ones);
    return g_test_run();
}
