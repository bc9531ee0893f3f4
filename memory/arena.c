#include "memory/arena.h"

/* Largest first; of equals whoever comes first, so that the layout is one function of its input. */
static gint by_size(gconstpointer a, gconstpointer b, gpointer data) {
    const MemoryTenant *tenants = data;
    const MemoryTenant *p = &tenants[*(const uint32_t *)a], *q = &tenants[*(const uint32_t *)b];
    return p->bytes != q->bytes ? (p->bytes > q->bytes ? -1 : 1)
           : p->from != q->from ? (p->from < q->from ? -1 : 1)
                                : (p > q) - (p < q);
}

/* The lowest place among those placed, which lie in the order of their offsets. */
static uint64_t place_of(const MemoryTenant *tenant, const MemoryTenant *placed, uint32_t n) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const MemoryTenant *other = &placed[i];
        if (other->from < tenant->to && tenant->from < other->to) {
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

uint64_t memory_arena_layout(MemoryTenant *tenants, uint32_t n) {
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
