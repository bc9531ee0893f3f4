/* plan/vector.h - arrays that grow, typed and inline, where a plan is built.
 *
 * Building a large plan appends half a million times. With GArray, whose append is a call that
 * copies a size known only at run time, this took a quarter of the whole. Only plan/ appends; other
 * rooms read them.
 *
 * Owns: its items, unless they lie in an arena.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "plan/arena.h"

#define PLAN_VECTOR(type)                                                                          \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t len, room;                                                                        \
        PlanArena *arena; /* where the items lie; NULL: on the heap */                             \
    }

/* Moves an array, of which used_bytes are in use, to where it has room for `bytes`. Cold: so that
 * who pushes saves no registers for a call that seldom comes. */
__attribute__((cold)) gpointer plan_vector_grow(PlanArena *arena, gpointer items, gsize used_bytes,
                                                gsize bytes);

/* Room for n items at least. */
#define plan_vector_reserve(v, n)                                                                  \
    do {                                                                                           \
        if ((n) > (v)->room) {                                                                     \
            (v)->room = MAX(MAX(64, (uint32_t)(n)), (v)->room * 2);                                \
            (v)->items = plan_vector_grow((v)->arena, (v)->items, (v)->len * sizeof *(v)->items,   \
                                          (v)->room * sizeof *(v)->items);                         \
        }                                                                                          \
    } while (0)

/* Room for n more. */
#define plan_vector_more(v, n) plan_vector_reserve(v, (v)->len + (n))

#define plan_vector_push(v, ...)                                                                   \
    do {                                                                                           \
        plan_vector_more(v, 1);                                                                    \
        (v)->items[(v)->len++] = (__VA_ARGS__);                                                    \
    } while (0)

/* n more items at the end, which the caller writes. */
#define plan_vector_extend(v, n, ret_items)                                                        \
    do {                                                                                           \
        plan_vector_more(v, n);                                                                    \
        *(ret_items) = (v)->items + (v)->len;                                                      \
        (v)->len += (n);                                                                           \
    } while (0)

#define plan_vector_last(v) (&(v)->items[(v)->len - 1])

gpointer plan_vector_shrink(PlanArena *arena, gpointer items, gsize had_bytes, gsize bytes);

/* Gives back the room that a vector has beyond its items. */
#define plan_vector_trim(v)                                                                        \
    do {                                                                                           \
        (v)->items = plan_vector_shrink((v)->arena, (v)->items, (v)->room * sizeof *(v)->items,    \
                                        (v)->len * sizeof *(v)->items);                            \
        (v)->room = (v)->len;                                                                      \
    } while (0)

/* Frees the items of a vector on the heap. */
#define plan_vector_clear(v)                                                                       \
    do {                                                                                           \
        g_clear_pointer(&(v)->items, g_free);                                                      \
        (v)->len = (v)->room = 0;                                                                  \
    } while (0)
