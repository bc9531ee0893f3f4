/* plan/arena.h - the memory a plan lies in: pieces of one block, handed out one after the other.
 *
 * A plan is written once and dies at once, so none of its pieces is given back by itself. A block
 * that is full is followed by another. Those of a small plan lie on the heap, where they fill pages
 * that are there already. What a larger one has beyond lies in a large block, a stretch of
 * addresses of which only what is written costs memory. That comes in large pages: the first touch
 * of each small one is a fault, and for a large plan the kernel took a third of the time for them.
 * The large blocks that a plan has left are kept, up to some, for the next plan, whose pages are
 * then there.
 *
 * Owns: all pieces. Threads: one an arena; what is kept is for all. Cost: an addition a piece.
 */
#pragma once

#include <glib.h>

/* With AddressSanitizer each piece is a block, so that no step beyond its end goes unseen. */
#if defined(__SANITIZE_ADDRESS__) /* gcc */
#define PLAN_ARENA_EACH_ALONE 1
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define PLAN_ARENA_EACH_ALONE 1
#endif
#endif
#ifndef PLAN_ARENA_EACH_ALONE
#define PLAN_ARENA_EACH_ALONE 0
#endif

typedef struct _PlanArena PlanArena;

PlanArena *plan_arena_new(void);
void plan_arena_free(PlanArena *arena); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanArena, plan_arena_free)

gpointer plan_arena_take(PlanArena *arena, gsize bytes); /* holds anything; aligned for all types */
gpointer plan_arena_copy(PlanArena *arena, gconstpointer items, gsize bytes);
const char *plan_arena_text(PlanArena *arena, const char *text);

#define plan_arena_array(arena, type, n) ((type *)plan_arena_take(arena, (n) * sizeof(type)))
