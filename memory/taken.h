/* memory/taken.h - which addresses are taken, and when.
 *
 * A tree over moments, each of whose nodes knows two unions of address spans: those of who lives
 * through all its moments but not through all its parent's, and those of who lives in some of them
 * and is booked further down. Who is taken at once is then taken as a whole: spans that touch
 * become one, so that thousands of tensors side by side are passed in one stride.
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

/* Appends to an array of MemorySpans what is taken in these moments; valid until the next booking.
 */
void memory_taken_look(const MemoryTaken *taken, uint32_t from, uint32_t to, GArray *ret_unions);

/* The lowest address with so many bytes free behind it in all of them, which are used up. */
uint64_t memory_taken_lowest(GArray *unions, uint64_t bytes);
