/* trace/import/unpickled.c - what was read of a pickle: its memory, and the way through it. */
#include <string.h>

#include "trace/import/unpickle-private.h"

enum {
    BLOCK_BYTES = 1 << 18 /* of which values are cut */
};

/* ---- memory: in blocks, which go all at once ------------------------------------------------- */

Unpickled *unpickled_new(void) {
    Unpickled *unpickled = g_new0(Unpickled, 1);
    unpickled->blocks = g_ptr_array_new_with_free_func(g_free);
    return unpickled;
}

void unpickled_free(Unpickled *unpickled) {
    if (unpickled != NULL) {
        g_ptr_array_unref(unpickled->blocks);
        g_free(unpickled);
    }
}

static void *take(Unpickled *unpickled, gsize bytes) {
    if (bytes > unpickled->left) {
        gsize size = MAX(bytes, (gsize)BLOCK_BYTES);
        unpickled->next = g_malloc(size);
        unpickled->left = size;
        g_ptr_array_add(unpickled->blocks, unpickled->next);
    }
    void *taken = unpickled->next;
    unpickled->next += bytes;
    unpickled->left -= bytes;
    return taken;
}

UnpickledItems *unpickled_new_items(Unpickled *unpickled) {
    UnpickledItems *items = take(unpickled, sizeof *items);
    *items = (UnpickledItems){0};
    return items;
}

void unpickled_append(Unpickled *unpickled, UnpickledItems *items, const UnpickledValue *values,
                      guint n) {
    if (items->n + n > items->room) {
        guint room = items->n == 0 ? n : MAX(2 * items->room, items->n + n);
        UnpickledValue *moved = take(unpickled, room * sizeof *moved);
        if (items->n > 0) {
            memcpy(moved, items->values, items->n * sizeof *moved);
        }
        items->values = moved;
        items->room = room;
    }
    if (n > 0) {
        memcpy(items->values + items->n, values, n * sizeof *values);
    }
    items->n += n;
}

/* ---- going through it ------------------------------------------------------------------------ */

const UnpickledValue *unpickled_root(const Unpickled *unpickled) {
    return &unpickled->root;
}

guint unpickled_n_items(const UnpickledValue *list) {
    return list && list->kind == UNPICKLED_LIST ? list->items->n : 0;
}

const UnpickledValue *unpickled_item(const UnpickledValue *list, guint i) {
    g_assert(i < unpickled_n_items(list));
    return &list->items->values[i];
}

bool unpickled_is_text(const UnpickledValue *value, const char *text) {
    return value && value->kind == UNPICKLED_TEXT && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

const UnpickledValue *unpickled_get(const UnpickledValue *dict, const char *name) {
    if (!dict || dict->kind != UNPICKLED_DICT) {
        return NULL;
    }
    for (guint i = dict->items->n; i >= 2; i -= 2) {
        if (unpickled_is_text(&dict->items->values[i - 2], name)) {
            return &dict->items->values[i - 1];
        }
    }
    return NULL;
}

static const UnpickledValue *get_kind(const UnpickledValue *dict, const char *name,
                                      UnpickledKind kind) {
    const UnpickledValue *value = unpickled_get(dict, name);
    return value && value->kind == kind ? value : NULL;
}

bool unpickled_get_int(const UnpickledValue *dict, const char *name, int64_t *ret_value) {
    const UnpickledValue *value = get_kind(dict, name, UNPICKLED_INT);
    if (value) {
        *ret_value = value->integer;
    }
    return value != NULL;
}

const UnpickledValue *unpickled_get_list(const UnpickledValue *dict, const char *name) {
    return get_kind(dict, name, UNPICKLED_LIST);
}

const UnpickledValue *unpickled_get_text(const UnpickledValue *dict, const char *name) {
    return get_kind(dict, name, UNPICKLED_TEXT);
}
