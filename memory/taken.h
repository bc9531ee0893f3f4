/* memory/taken.h - which addresses are taken, and when.
 *
 * A segment tree over moments. A node has two unions of address spans: `through`, of tensors that
 * live through all moments of the node (but not through all of its parent's), and `within`, of
 * tensors that live in some of its moments and are booked further down. Spans that touch are merged
 * into one, so that a search passes thousands of tensors side by side in one step.
 *
 * Owns: its tree. Threads: one. Cost: O(log moments) unions a booking and a question; a union of k
 * separate spans takes O(log k) to find a place in and O(k) to shift, and a question passes each
 * span of its unions once.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct _MemoryTaken MemoryTaken;

MemoryTaken *memory_taken_new(uint32_t n_moments);
void memory_taken_free(MemoryTaken *taken); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryTaken, memory_taken_free)

/* Addresses start, ..., end - 1 in moments from, ..., to - 1. */
void memory_taken_book(MemoryTaken *taken, uint32_t from, uint32_t to, uint64_t start,
                       uint64_t end);

/* Spans in the order of their addresses, none of which touch. */
typedef struct {
    uint64_t start, end;
} MemorySpan;

typedef struct {
    MemorySpan *spans;
    uint32_t n, room;
} MemorySpans;

/* Appends to an array of MemorySpans what is taken in moments from, ..., to - 1. The spans are the
 * tree's own, and valid until the next booking. */
void memory_taken_look(const MemoryTaken *taken, uint32_t from, uint32_t to, GArray *ret_unions);

/* The lowest address from which so many bytes are free in all of the unions. The array's entries
 * are used up as they are searched; the tree's spans stay as they are. */
uint64_t memory_taken_lowest(GArray *unions, uint64_t bytes);
