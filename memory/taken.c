#include "memory/taken.h"

#include <stdbool.h>
#include <string.h>

typedef struct {
    MemorySpans through, within;
} Node;

struct _MemoryTaken {
    Node *nodes; /* the root is 1, the halves of i are 2 i and 2 i + 1 */
    uint32_t n_leaves;
};

/* Moments low, ..., high - 1 of a node. */
typedef struct {
    uint32_t node, low, high;
} Part;

static Part half(Part part, bool upper) {
    uint32_t middle = part.low + (part.high - part.low) / 2;
    return (Part){2 * part.node + upper, upper ? middle : part.low, upper ? part.high : middle};
}

MemoryTaken *memory_taken_new(uint32_t n_moments) {
    MemoryTaken *taken = g_new0(MemoryTaken, 1);
    taken->n_leaves = 1;
    while (taken->n_leaves < n_moments) {
        taken->n_leaves *= 2;
    }
    taken->nodes = g_new0(Node, 2 * (gsize)taken->n_leaves);
    return taken;
}

void memory_taken_free(MemoryTaken *taken) {
    if (taken) {
        for (gsize i = 0; i < 2 * (gsize)taken->n_leaves; i++) {
            g_free(taken->nodes[i].through.spans);
            g_free(taken->nodes[i].within.spans);
        }
        g_free(taken->nodes);
        g_free(taken);
    }
}

/* ---- booking -------------------------------------------------------------------------------- */

/* The first span that ends at an address or behind it. */
static uint32_t first_reaching(const MemorySpans *all, uint64_t address) {
    uint32_t low = 0, high = all->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all->spans[middle].end < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What it touches becomes one with it. */
static void join(MemorySpans *all, MemorySpan span) {
    uint32_t first = first_reaching(all, span.start), behind = first;
    while (behind < all->n && all->spans[behind].start <= span.end) {
        span.start = MIN(span.start, all->spans[behind].start);
        span.end = MAX(span.end, all->spans[behind].end);
        behind++;
    }
    if (all->n == all->room && behind == first) {
        all->room = MAX(2, 2 * all->room);
        all->spans = g_renew(MemorySpan, all->spans, all->room);
    }
    memmove(all->spans + first + 1, all->spans + behind, (all->n - behind) * sizeof *all->spans);
    all->spans[first] = span;
    all->n += 1 - (behind - first);
}

static void book(MemoryTaken *taken, Part part, uint32_t from, uint32_t to, MemorySpan span) {
    if (from >= part.high || to <= part.low) {
        return;
    }
    if (from <= part.low && to >= part.high) {
        join(&taken->nodes[part.node].through, span);
        return;
    }
    join(&taken->nodes[part.node].within, span);
    book(taken, half(part, false), from, to, span);
    book(taken, half(part, true), from, to, span);
}

void memory_taken_book(MemoryTaken *taken, uint32_t from, uint32_t to, uint64_t start,
                       uint64_t end) {
    if (from < to && start < end) {
        book(taken, (Part){1, 0, taken->n_leaves}, from, to, (MemorySpan){start, end});
    }
}

/* ---- looking -------------------------------------------------------------------------------- */

static void append(const MemorySpans *some, GArray *ret_unions) {
    g_array_append_vals(ret_unions, some, some->n > 0);
}

static void look(const MemoryTaken *taken, Part part, uint32_t from, uint32_t to,
                 GArray *ret_unions) {
    if (from >= part.high || to <= part.low) {
        return;
    }
    const Node *node = &taken->nodes[part.node];
    append(&node->through, ret_unions);
    if (from <= part.low && to >= part.high) {
        append(&node->within, ret_unions);
        return;
    }
    look(taken, half(part, false), from, to, ret_unions);
    look(taken, half(part, true), from, to, ret_unions);
}

void memory_taken_look(const MemoryTaken *taken, uint32_t from, uint32_t to, GArray *ret_unions) {
    if (from < to) {
        look(taken, (Part){1, 0, taken->n_leaves}, from, to, ret_unions);
    }
}

/* Each pushes the address up past its own spans, until none does. */
uint64_t memory_taken_lowest(GArray *unions, uint64_t bytes) {
    uint64_t at = 0;
    bool pushed = true;
    while (pushed) {
        pushed = false;
        for (guint i = 0; i < unions->len; i++) {
            MemorySpans *left = &g_array_index(unions, MemorySpans, i);
            for (; left->n && left->spans->start < at + bytes; left->spans++, left->n--) {
                pushed = pushed || left->spans->end > at;
                at = MAX(at, left->spans->end);
            }
        }
    }
    return at;
}
