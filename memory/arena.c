#include "memory/arena.h"

#include <stdbool.h>

#include "memory/taken.h"

/* Tables of taken addresses, one for each pair of kinds of tenants that can meet:
 *   once    tenants that come once, for others that come once
 *   stays   tenants that come back, with every stay that a tenant of the first kind can meet
 *   circle  tenants that come back, for others that do: moments of one round, modulo its length
 *
 * Of two tenants that are alive together, the later one begins while the other is there. So only
 * moments at which some tenant begins have to be told apart. */
typedef struct {
    MemoryTenant *tenants;
    uint32_t n;
    uint64_t round; /* the length of a round; 0: nobody comes back */
    uint64_t end;   /* from this moment on everything is as a round before */
    /* uint64_t, rising: the moments at which tenants begin; of those that come back, within a
     * round. */
    GArray *comings, *in_turn;
    MemoryTaken *once, *stays, *circle;
    GArray *unions; /* addresses taken by those that the tenant being placed meets */
} Layout;

/* ---- moments -------------------------------------------------------------------------------- */

static gint by_moment(gconstpointer a, gconstpointer b) {
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return (p > q) - (p < q);
}

static void sort_once_each(GArray *moments) {
    guint kept = 0;
    g_array_sort(moments, by_moment);
    for (guint i = 0; i < moments->len; i++) {
        uint64_t moment = g_array_index(moments, uint64_t, i);
        if (kept == 0 || g_array_index(moments, uint64_t, kept - 1) != moment) {
            g_array_index(moments, uint64_t, kept++) = moment;
        }
    }
    g_array_set_size(moments, kept);
}

/* How many of them are before this one. */
static uint32_t before(const GArray *moments, uint64_t moment) {
    guint low = 0, high = moments->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(moments, uint64_t, middle) < moment) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Sets round and end. A tenant that never leaves is there in every round, so it has met all that
 * come back once a full round has passed. */
static void find_end(Layout *layout) {
    for (uint32_t i = 0; i < layout->n; i++) {
        layout->round = MAX(layout->round, layout->tenants[i].every);
    }
    for (uint32_t i = 0; i < layout->n; i++) {
        const MemoryTenant *tenant = &layout->tenants[i];
        uint64_t known = tenant->every || tenant->to == UINT32_MAX
                             ? tenant->from + (tenant->every ? 1 : layout->round + 1)
                             : tenant->to;
        layout->end = MAX(layout->end, known);
    }
}

static void list_moments(Layout *layout) {
    for (uint32_t i = 0; i < layout->n; i++) {
        const MemoryTenant *tenant = &layout->tenants[i];
        uint64_t comes = tenant->from;
        if (tenant->every) {
            uint64_t in_turn = comes % layout->round;
            g_array_append_val(layout->in_turn, in_turn);
        }
        do {
            g_array_append_val(layout->comings, comes);
            comes += layout->round;
        } while (tenant->every && comes < layout->end);
    }
    sort_once_each(layout->comings);
    sort_once_each(layout->in_turn);
}

/* ---- who is where, and when ----------------------------------------------------------------- */

typedef void Visit(Layout *layout, MemoryTaken *taken, uint32_t from, uint32_t to,
                   const MemoryTenant *tenant);

static void look(Layout *layout, MemoryTaken *taken, uint32_t from, uint32_t to,
                 const MemoryTenant *tenant) {
    memory_taken_look(taken, from, to, layout->unions);
}

static void book(Layout *layout, MemoryTaken *taken, uint32_t from, uint32_t to,
                 const MemoryTenant *tenant) {
    memory_taken_book(taken, from, to, tenant->offset, tenant->offset + tenant->bytes);
}

/* Visits a tenant's first stay and, if it comes back, those that begin before `end`. */
static void each_stay(Layout *layout, const MemoryTenant *tenant, MemoryTaken *taken,
                      Visit *visit) {
    uint64_t from = tenant->from, to = tenant->to;
    do {
        visit(layout, taken, before(layout->comings, from), before(layout->comings, to), tenant);
        from += layout->round;
        to += layout->round;
    } while (tenant->every && from < layout->end);
}

static void on_circle(Layout *layout, const MemoryTenant *tenant, Visit *visit) {
    uint64_t from = tenant->from % layout->round, to = from + (tenant->to - tenant->from);
    uint32_t first = before(layout->in_turn, from);
    visit(layout, layout->circle, first, before(layout->in_turn, to), tenant);
    if (to > layout->round) {
        uint32_t past = before(layout->in_turn, to - layout->round);
        visit(layout, layout->circle, 0, MIN(past, first), tenant);
    }
}

static uint64_t place_of(Layout *layout, const MemoryTenant *tenant) {
    g_array_set_size(layout->unions, 0);
    each_stay(layout, tenant, layout->once, look);
    if (tenant->every) {
        on_circle(layout, tenant, look);
    } else {
        each_stay(layout, tenant, layout->stays, look);
    }
    return memory_taken_lowest(layout->unions, tenant->bytes);
}

static void settle(Layout *layout, const MemoryTenant *tenant) {
    each_stay(layout, tenant, tenant->every ? layout->stays : layout->once, book);
    if (tenant->every) {
        on_circle(layout, tenant, book);
    }
}

/* ---- largest first -------------------------------------------------------------------------- */

/* Larger ones first; of equal ones the earlier, so that the same input gives the same layout. */
static gint by_size(gconstpointer a, gconstpointer b, gpointer data) {
    const MemoryTenant *tenants = data;
    const MemoryTenant *p = &tenants[*(const uint32_t *)a], *q = &tenants[*(const uint32_t *)b];
    return p->bytes != q->bytes ? (p->bytes > q->bytes ? -1 : 1)
           : p->from != q->from ? (p->from < q->from ? -1 : 1)
                                : (p > q) - (p < q);
}

static uint64_t place_all(Layout *layout) {
    g_autofree uint32_t *order = g_new(uint32_t, layout->n);
    uint64_t size = 0;
    for (uint32_t i = 0; i < layout->n; i++) {
        order[i] = i;
    }
    g_qsort_with_data(order, (gint)layout->n, sizeof *order, by_size, layout->tenants);
    for (uint32_t i = 0; i < layout->n; i++) {
        MemoryTenant *tenant = &layout->tenants[order[i]];
        tenant->offset = place_of(layout, tenant);
        size = MAX(size, tenant->offset + tenant->bytes);
        if (tenant->bytes) {
            settle(layout, tenant);
        }
    }
    return size;
}

uint64_t memory_arena_layout(MemoryTenant *tenants, uint32_t n) {
    g_autoptr(GArray) comings = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) in_turn = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) unions = g_array_new(FALSE, FALSE, sizeof(MemorySpans));
    Layout layout = {
        .tenants = tenants, .n = n, .comings = comings, .in_turn = in_turn, .unions = unions};
    find_end(&layout);
    list_moments(&layout);
    g_autoptr(MemoryTaken) once = memory_taken_new(comings->len);
    g_autoptr(MemoryTaken) stays = memory_taken_new(comings->len);
    g_autoptr(MemoryTaken) circle = memory_taken_new(in_turn->len);
    layout.once = once;
    layout.stays = stays;
    layout.circle = circle;
    return place_all(&layout);
}
