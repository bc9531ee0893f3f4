/* plan/arena.h - the memory a plan lies in: pieces of large blocks, handed out one after the other.
 *
 * All of a plan is freed at once, so a piece is never freed by itself. The first blocks are small
 * and come from the heap; a small plan needs no others. A large plan goes on in a block of reserved
 * addresses, of which only what is written takes memory. Linux is asked to back it by large pages,
 * because the page faults of small ones took a third of the time in which a large plan was built.
 * Freed plans leave a few such blocks to later ones, whose memory is then mapped already.
 *
 * Owns: all pieces. Threads: one an arena; the blocks that are left over serve all threads. Cost:
 * an addition a piece.
 */
#pragma once

#include <glib.h>

/* Under AddressSanitizer each piece is a block of its own, so that accesses beyond it are found. */
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

gpointer plan_arena_take(PlanArena *arena, gsize bytes); /* not cleared; aligned for all types */
gpointer plan_arena_copy(PlanArena *arena, gconstpointer items, gsize bytes);
const char *plan_arena_text(PlanArena *arena, const char *text);
/* Gives back what lies behind the first `bytes` of a piece of so many, if it can be; returns where
 * the piece lies now. */
gpointer plan_arena_shrink(PlanArena *arena, gpointer piece, gsize had_bytes, gsize bytes);

#define plan_arena_array(arena, type, n) ((type *)plan_arena_take(arena, (n) * sizeof(type)))
