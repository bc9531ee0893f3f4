/* plan/vector.h - arrays that grow, typed and inline, where a plan is built.
 *
 * Half a million things are appended to the arrays of a large plan, and a GArray's append is a call
 * that copies an unknown size: a quarter of the time of building, once. Inside plan/ only.
 *
 * Owns: its items, until plan_vector_take().
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define PLAN_VECTOR(type)                                                                          \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t len, room;                                                                        \
    }

/* Moves an array of which so many bytes are used to where there is room for more. */
gpointer plan_vector_grow(gpointer items, gsize used_bytes, gsize bytes);

/* Room for n items at least. */
#define plan_vector_reserve(v, n)                                                                  \
    do {                                                                                           \
        if ((n) > (v)->room) {                                                                     \
            (v)->room = MAX(MAX(64, (uint32_t)(n)), (v)->room * 2);                                \
            (v)->items = plan_vector_grow((v)->items, (v)->len * sizeof *(v)->items,               \
                                          (v)->room * sizeof *(v)->items);                         \
        }                                                                                          \
    } while (0)

#define plan_vector_push(v, ...)                                                                   \
    do {                                                                                           \
        plan_vector_reserve(v, (v)->len + 1);                                                      \
        (v)->items[(v)->len++] = (__VA_ARGS__);                                                    \
    } while (0)

/* Room for n more. */
#define plan_vector_more(v, n) plan_vector_reserve(v, (v)->len + (n))

/* n more items at the end, which the caller writes. */
#define plan_vector_extend(v, n, ret_items)                                                        \
    do {                                                                                           \
        plan_vector_more(v, n);                                                                    \
        *(ret_items) = (v)->items + (v)->len;                                                      \
        (v)->len += (n);                                                                           \
    } while (0)

#define plan_vector_last(v) (&(v)->items[(v)->len - 1])

#define plan_vector_clear(v)                                                                       \
    do {                                                                                           \
        g_clear_pointer(&(v)->items, g_free);                                                      \
        (v)->len = (v)->room = 0;                                                                  \
    } while (0)

/* Moves the items out. */
#define plan_vector_take(v, ret_items, ret_n)                                                      \
    do {                                                                                           \
        *(ret_n) = (v)->len;                                                                       \
        *(ret_items) = g_steal_pointer(&(v)->items);                                               \
        (v)->len = (v)->room = 0;                                                                  \
    } while (0)
