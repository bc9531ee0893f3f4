#include "memory/taken.h"

#include <stdbool.h>
#include <string.h>

typedef struct {
    MemoryUnion through, within;
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
            g_free(taken->nodes[i].through.ranges);
            g_free(taken->nodes[i].within.ranges);
        }
        g_free(taken->nodes);
        g_free(taken);
    }
}

/* ---- booking -------------------------------------------------------------------------------- */

/* The first range that ends at an address or behind it. */
static uint32_t first_reaching(const MemoryUnion *all, uint64_t address) {
    uint32_t low = 0, high = all->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all->ranges[middle].end < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What it touches becomes one with it. */
static void join(MemoryUnion *all, MemoryRange range) {
    uint32_t first = first_reaching(all, range.start), behind = first;
    while (behind < all->n && all->ranges[behind].start <= range.end) {
        range.start = MIN(range.start, all->ranges[behind].start);
        range.end = MAX(range.end, all->ranges[behind].end);
        behind++;
    }
    if (all->n == all->room && behind == first) {
        all->room = MAX(2, 2 * all->room);
        all->ranges = g_renew(MemoryRange, all->ranges, all->room);
    }
    memmove(all->ranges + first + 1, all->ranges + behind, (all->n - behind) * sizeof *all->ranges);
    all->ranges[first] = range;
    all->n += 1 - (behind - first);
}

static void book(MemoryTaken *taken, Part part, uint32_t from, uint32_t to, MemoryRange range) {
    if (from >= part.high || to <= part.low) {
        return;
    }
    if (from <= part.low && to >= part.high) {
        join(&taken->nodes[part.node].through, range);
        return;
    }
    join(&taken->nodes[part.node].within, range);
    book(taken, half(part, false), from, to, range);
    book(taken, half(part, true), from, to, range);
}

void memory_taken_book(MemoryTaken *taken, uint32_t from, uint32_t to, uint64_t start,
                       uint64_t end) {
    if (from < to && start < end) {
        book(taken, (Part){1, 0, taken->n_leaves}, from, to, (MemoryRange){start, end});
    }
}

/* ---- looking -------------------------------------------------------------------------------- */

static void append(const MemoryUnion *some, GArray *ret_unions) {
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

/* Each pushes the address up past its own ranges, until none does. */
uint64_t memory_taken_lowest(GArray *unions, uint64_t bytes) {
    uint64_t at = 0;
    bool pushed = true;
    while (pushed) {
        pushed = false;
        for (guint i = 0; i < unions->len; i++) {
            MemoryUnion *left = &g_array_index(unions, MemoryUnion, i);
            for (; left->n && left->ranges->start < at + bytes; left->ranges++, left->n--) {
                pushed = pushed || left->ranges->end > at;
                at = MAX(at, left->ranges->end);
            }
        }
    }
    return at;
}
