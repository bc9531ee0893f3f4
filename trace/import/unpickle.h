/* trace/import/unpickle.h - Python's pickle read as data: dicts, lists, tuples, texts and numbers.
 *
 * Reads what Python writes of such values by protocols 2 to 5
 * (https://docs.python.org/3/library/pickletools.html). A pickle is a program for a stack machine,
 * and most of its other opcodes name Python functions to be called: each of those ends the reading
 * with an error, so that no file can make anything happen. Nothing is read beyond the bytes, and
 * nothing is asked for that the bytes do not fill.
 *
 * A value may stand in several places of what is read, and a list may hold itself: whoever goes
 * through it goes down by names, not by recursion.
 *
 * Owns: what is read, in one piece. Borrows: the bytes, in which texts stand; they outlive it.
 * Threads: one. Cost: 16 bytes a value, of a dict's pairs 32.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    UNPICKLED_NONE,
    UNPICKLED_BOOL,
    UNPICKLED_INT,
    UNPICKLED_REAL,
    UNPICKLED_TEXT,
    UNPICKLED_LIST, /* a tuple too */
    UNPICKLED_DICT
} UnpickledKind;

typedef struct _UnpickledItems UnpickledItems; /* shared by all places in which the value stands */

typedef struct {
    uint32_t kind;   /* UnpickledKind */
    uint32_t length; /* UNPICKLED_TEXT: bytes; no zero ends them */
    union {
        int64_t integer; /* UNPICKLED_BOOL too */
        double real;
        const char *text;
        UnpickledItems *items;
    };
} UnpickledValue;

typedef struct _Unpickled Unpickled;

/* file_name stands in messages: "FILE: byte N: what is wrong". */
Unpickled *unpickle(const char *bytes, gsize length, const char *file_name, GError **error);
void unpickled_free(Unpickled *unpickled); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Unpickled, unpickled_free)

const UnpickledValue *unpickled_root(const Unpickled *unpickled);

/* Of what is no list, 0 items; an index is below their number. */
guint unpickled_n_items(const UnpickledValue *list);
const UnpickledValue *unpickled_item(const UnpickledValue *list, guint i);

/* A dict's value of this name; NULL: there is none, or what is asked is NULL or no dict. Of equal
 * names the last holds. Cost: O(the dict's pairs). */
const UnpickledValue *unpickled_get(const UnpickledValue *dict, const char *name);
/* Likewise, of this kind alone. */
bool unpickled_get_int(const UnpickledValue *dict, const char *name, int64_t *ret_value);
const UnpickledValue *unpickled_get_list(const UnpickledValue *dict, const char *name);
const UnpickledValue *unpickled_get_text(const UnpickledValue *dict, const char *name);
bool unpickled_is_text(const UnpickledValue *value, const char *text); /* NULL is not */
