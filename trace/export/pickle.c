#include "trace/export/pickle.h"

#include <string.h>

enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    BININT1 = 'K', /* one byte, unsigned */
    BININT2 = 'M', /* two */
    BININT = 'J',  /* four, signed */
    LONG1 = 0x8a,  /* a byte says how many follow; signed */
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    BINUNICODE = 'X', /* four bytes say how many follow */
    MEMOIZE = 0x94,   /* the text just written gets the next number */
    BINGET = 'h',     /* one byte: the text of that number */
    LONG_BINGET = 'j' /* four */
};

enum {
    BATCH = 1000 /* items; Python's own pickler hands over as many */
};

static void put(Pickle *pickle, uint8_t byte) {
    g_string_append_c(pickle->bytes, (char)byte);
}

static void put_little_endian(Pickle *pickle, uint64_t value, unsigned n_bytes) {
    for (unsigned i = 0; i < n_bytes; i++) {
        put(pickle, (uint8_t)(value >> (8 * i)));
    }
}

void pickle_begin(Pickle *pickle) {
    pickle->bytes = g_string_new(NULL);
    pickle->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    pickle->lists = g_array_new(FALSE, FALSE, sizeof(unsigned));
    put(pickle, PROTO);
    put(pickle, 4);
}

GString *pickle_end(Pickle *pickle) {
    put(pickle, STOP);
    g_hash_table_unref(pickle->texts);
    g_array_unref(pickle->lists);
    return pickle->bytes;
}

void pickle_int(Pickle *pickle, int64_t value) {
    if (value >= 0 && value <= UINT8_MAX) {
        put(pickle, BININT1);
        put_little_endian(pickle, (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put(pickle, BININT2);
        put_little_endian(pickle, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put(pickle, BININT);
        put_little_endian(pickle, (uint64_t)value, 4);
    } else {
        put(pickle, LONG1);
        put(pickle, 8);
        put_little_endian(pickle, (uint64_t)value, 8);
    }
}

void pickle_bool(Pickle *pickle, bool value) {
    put(pickle, value ? NEWTRUE : NEWFALSE);
}

void pickle_text(Pickle *pickle, const char *text) {
    gpointer found;
    if (!g_hash_table_lookup_extended(pickle->texts, text, NULL, &found)) {
        guint number = g_hash_table_size(pickle->texts);
        g_hash_table_insert(pickle->texts, g_strdup(text), GUINT_TO_POINTER(number));
        put(pickle, BINUNICODE);
        put_little_endian(pickle, strlen(text), 4);
        g_string_append(pickle->bytes, text);
        put(pickle, MEMOIZE);
        return;
    }
    guint number = GPOINTER_TO_UINT(found);
    put(pickle, number <= UINT8_MAX ? BINGET : LONG_BINGET);
    put_little_endian(pickle, number, number <= UINT8_MAX ? 1 : 4);
}

void pickle_open_dict(Pickle *pickle) {
    put(pickle, EMPTY_DICT);
    put(pickle, MARK);
}

void pickle_close_dict(Pickle *pickle) {
    put(pickle, SETITEMS);
}

void pickle_open_list(Pickle *pickle) {
    unsigned none = 0;
    g_array_append_val(pickle->lists, none);
    put(pickle, EMPTY_LIST);
    put(pickle, MARK);
}

void pickle_item(Pickle *pickle) {
    unsigned *held = &g_array_index(pickle->lists, unsigned, pickle->lists->len - 1);
    if (*held == BATCH) {
        put(pickle, APPENDS);
        put(pickle, MARK);
        *held = 0;
    }
    ++*held;
}

void pickle_close_list(Pickle *pickle) {
    put(pickle, APPENDS);
    g_array_set_size(pickle->lists, pickle->lists->len - 1);
}
