#include "tests/memory/plain-arena.h"

#include <stdbool.h>

/* Largest first; of equals whoever comes first, so that the layout is one function of its input. */
static gint by_size(gconstpointer a, gconstpointer b, gpointer data) {
    const MemoryTenant *tenants = data;
    const MemoryTenant *p = &tenants[*(const uint32_t *)a], *q = &tenants[*(const uint32_t *)b];
    return p->bytes != q->bytes ? (p->bytes > q->bytes ? -1 : 1)
           : p->from != q->from ? (p->from < q->from ? -1 : 1)
                                : (p > q) - (p < q);
}

/* Both come back: as on a circle of one round. */
static bool meet_going_round(const MemoryTenant *a, const MemoryTenant *b) {
    uint32_t round = a->every, behind = b->from - a->from + (b->from < a->from ? round : 0);
    return behind < a->to - a->from || round - behind < b->to - b->from;
}

/* The first stay that ends after the other has begun is the first that can meet it. */
static bool meets_once(const MemoryTenant *round, const MemoryTenant *once) {
    uint64_t nth = once->from < round->to ? 0 : (once->from - round->to) / round->every + 1;
    return round->from + nth * round->every < once->to;
}

static bool ever_meet(const MemoryTenant *a, const MemoryTenant *b) {
    if (a->every && b->every) {
        return meet_going_round(a, b);
    }
    return a->every   ? meets_once(a, b)
           : b->every ? meets_once(b, a)
                      : b->from < a->to && a->from < b->to;
}

/* The lowest place among those placed, which lie in the order of their offsets. */
static uint64_t place_of(const MemoryTenant *tenant, const MemoryTenant *placed, uint32_t n) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const MemoryTenant *other = &placed[i];
        if (ever_meet(tenant, other)) {
            if (other->offset >= at + tenant->bytes) {
                return at;
            }
            at = MAX(at, other->offset + other->bytes);
        }
    }
    return at;
}

static void insert(GArray *placed, const MemoryTenant *tenant) {
    guint low = 0, high = placed->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (g_array_index(placed, MemoryTenant, middle).offset <= tenant->offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    g_array_insert_vals(placed, low, tenant, 1);
}

uint64_t plain_arena_layout(MemoryTenant *tenants, uint32_t n) {
    g_autofree uint32_t *order = g_new(uint32_t, n);
    g_autoptr(GArray) placed = g_array_sized_new(FALSE, FALSE, sizeof(MemoryTenant), n);
    uint64_t size = 0;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    g_qsort_with_data(order, (gint)n, sizeof *order, by_size, tenants);
    for (uint32_t i = 0; i < n; i++) {
        MemoryTenant *tenant = &tenants[order[i]];
        tenant->offset =
            place_of(tenant, (const MemoryTenant *)(gpointer)placed->data, placed->len);
        size = MAX(size, tenant->offset + tenant->bytes);
        if (tenant->bytes) {
            insert(placed, tenant);
        }
    }
    return size;
}

void plain_arena_assert_same(const MemoryTenant *tenants, uint32_t n, uint64_t size) {
    g_autofree MemoryTenant *again = g_memdup2(tenants, n * sizeof *tenants);
    g_assert_cmpuint(plain_arena_layout(again, n), ==, size);
    for (uint32_t i = 0; i < n; i++) {
        g_assert_cmpuint(again[i].offset, ==, tenants[i].offset);
    }
}
