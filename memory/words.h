/* memory/words.h - a state written down as a list of numbers, to be compared with another state.
 *
 * Two states are equal if their words are, provided that the same functions wrote both.
 *
 * Owns: its array. Threads: one. Cost: O(1) a word.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Zeros: none. */
typedef struct {
    uint64_t *words;
    gsize n, room;
} MemoryWords;

static inline void memory_words_clear(MemoryWords *words) {
    g_free(words->words);
    *words = (MemoryWords){0};
}

/* Room for n more. */
static inline void memory_words_reserve(MemoryWords *words, gsize n) {
    if (words->room - words->n < n) {
        words->room = MAX(2 * words->room, words->n + n);
        words->words = g_renew(uint64_t, words->words, words->room);
    }
}

static inline void memory_words_add(MemoryWords *words, uint64_t word) {
    memory_words_reserve(words, 1);
    words->words[words->n++] = word;
}

/* n bytes, rounded up to whole words. */
static inline void memory_words_add_bytes(MemoryWords *words, gconstpointer bytes, gsize n) {
    gsize more = (n + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    memory_words_reserve(words, more);
    words->words[words->n + more - 1] = 0;
    memcpy(words->words + words->n, bytes, n);
    words->n += more;
}

static inline bool memory_words_equal(const MemoryWords *a, const MemoryWords *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->words, b->words, a->n * sizeof *a->words) == 0);
}
