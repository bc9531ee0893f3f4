/* memory/arena.h - a static layout: every tensor's place settled before the play.
 *
 * What an allocator that knew the whole program could do: tensors that never live at once share
 * addresses, nothing is cached, nothing is cut. Largest first, each at the lowest place where it
 * disturbs none that lives beside it (the greedy order of Pisarchyk and Lee, "Efficient memory
 * management for deep neural net inference", 2020). The result is at least the most that lives at
 * once, and seldom much more. Time: n log n where tensors are as in training, many of a size side
 * by side (a million, 40 passes of GPT-175B: 2 s, 2026-11); where all sizes and lives are at
 * random and lives long, n by the number of gaps between them, at worst the square.
 *
 * In a program that repeats, such as a training step, some tensors come back in each round, at the
 * same offset. Such a tenant lives in moments from, ..., to - 1, and again `every` moments later,
 * for ever. All tenants that come back have the same `every`; they begin within one round, and live
 * for a round at most, whose end may lie in the next round. Every tenant lives for a moment or
 * more.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    uint64_t bytes;
    uint32_t from, to; /* lives in moments from, ..., to - 1 */
    uint64_t offset;   /* set by memory_arena_layout() */
    uint32_t every;    /* 0: once */
} MemoryTenant;

/* Lays them out; returns the bytes of the arena. */
uint64_t memory_arena_layout(MemoryTenant *tenants, uint32_t n);
