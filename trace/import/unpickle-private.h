/* trace/import/unpickle-private.h - what is read of a pickle, while it is read (unpickle.c) and
 * afterwards (unpickled.c). */
#pragma once

#include "trace/import/unpickle.h"

/* A list's values, or a dict's names and values in turn. */
struct _UnpickledItems {
    UnpickledValue *values;
    guint n, room;
};

struct _Unpickled {
    GPtrArray *blocks; /* of memory */
    char *next;        /* what is left of the last one */
    gsize left;
    UnpickledValue root;
};

Unpickled *unpickled_new(void);
UnpickledItems *unpickled_new_items(Unpickled *unpickled);
/* Most lists and dicts are filled once; what grows doubles, and leaves its old room behind. */
void unpickled_append(Unpickled *unpickled, UnpickledItems *items, const UnpickledValue *values,
                      guint n);
