#include "trace/import/unpickle.h"

#include <string.h>

#include "trace/import/unpickle-private.h"
#include "trace/trace.h"

enum {
    PROTOCOL_LEAST = 2, /* older ones write numbers as text */
    PROTOCOL_MOST = 5
};

typedef struct {
    const uint8_t *at, *begin, *end;
    const char *file_name;
    Unpickled *unpickled;
    GArray *stack; /* UnpickledValue */
    GArray *marks; /* guint: how high the stack stood */
    GArray *memo;  /* UnpickledValue, by place */
    GError **error;
} Reader;

/* ---- what is wrong --------------------------------------------------------------------------- */

static bool fail(const Reader *reader, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool fail(const Reader *reader, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(reader->error, TRACE_ERROR, TRACE_ERROR_SYNTAX, "%s: byte %" G_GSIZE_FORMAT ": %s",
                reader->file_name, (gsize)(reader->at - reader->begin), what);
    return false;
}

static bool fail_cut(const Reader *reader) {
    g_set_error(reader->error, TRACE_ERROR, TRACE_ERROR_CUT,
                "%s: byte %" G_GSIZE_FORMAT ": the pickle ends here, and is not complete; was it "
                "copied while it was written?",
                reader->file_name, (gsize)(reader->end - reader->begin));
    return false;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The next n bytes; NULL: there are fewer, and the error is set. */
static const uint8_t *bytes(Reader *reader, uint64_t n) {
    if (n > (uint64_t)(reader->end - reader->at)) {
        fail_cut(reader);
        return NULL;
    }
    const uint8_t *begin = reader->at;
    reader->at += n;
    return begin;
}

static bool read_unsigned(Reader *reader, unsigned n, uint64_t *ret_value) {
    const uint8_t *read = bytes(reader, n);
    uint64_t value = 0;
    for (unsigned i = 0; read && i < n; i++) {
        value |= (uint64_t)read[i] << (8 * i);
    }
    *ret_value = value;
    return read != NULL;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool push(Reader *reader, UnpickledValue value) {
    g_array_append_val(reader->stack, value);
    return true;
}

static bool push_int(Reader *reader, int64_t value) {
    return push(reader, (UnpickledValue){.kind = UNPICKLED_INT, .integer = value});
}

/* The lowest place of the stack that belongs to what was begun last. */
static guint floor_of(const Reader *reader) {
    guint n = reader->marks->len;
    return n > 0 ? g_array_index(reader->marks, guint, n - 1) : 0;
}

/* The uppermost n values, above the last mark; NULL: there are fewer, and the error is set. */
static UnpickledValue *top(const Reader *reader, guint n) {
    if (reader->stack->len < n || reader->stack->len - n < floor_of(reader)) {
        fail(reader, "the pickle takes a value where there is none");
        return NULL;
    }
    return &g_array_index(reader->stack, UnpickledValue, reader->stack->len - n);
}

static bool drop(Reader *reader, guint n) {
    g_array_set_size(reader->stack, reader->stack->len - n);
    return true;
}

/* How many values lie above the last mark, which goes. */
static bool pop_mark(Reader *reader, guint *ret_n) {
    if (reader->marks->len == 0) {
        return fail(reader, "the pickle ends a group that was not begun");
    }
    *ret_n = reader->stack->len - floor_of(reader);
    g_array_set_size(reader->marks, reader->marks->len - 1);
    return true;
}

/* ---- opcodes --------------------------------------------------------------------------------- */

static bool read_int(Reader *reader, unsigned n, bool is_signed) {
    uint64_t value;
    if (!read_unsigned(reader, n, &value)) {
        return false;
    }
    return push_int(reader, is_signed && n == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

/* Two's complement of as many bytes as it takes. */
static bool read_long(Reader *reader, unsigned length_bytes) {
    uint64_t n, value = 0;
    if (!read_unsigned(reader, length_bytes, &n)) {
        return false;
    }
    const uint8_t *read = bytes(reader, n);
    if (!read) {
        return false;
    }
    bool negative = n > 0 && read[n - 1] >= 0x80;
    for (uint64_t i = 0; i < MAX(n, 8); i++) {
        uint8_t byte = i < n ? read[i] : negative ? 0xff : 0;
        if (i < 8) {
            value |= (uint64_t)byte << (8 * i);
        } else if (byte != (negative ? 0xff : 0)) {
            return fail(reader, "a number of more than 64 bits, which no memory snapshot has; "
                                "torch.save() writes one");
        }
    }
    if (negative != (value >> 63 != 0)) {
        return fail(reader, "a number of more than 63 bits, which no memory snapshot has");
    }
    return push_int(reader, (int64_t)value);
}

static bool read_real(Reader *reader) {
    const uint8_t *read = bytes(reader, 8);
    uint64_t bits = 0;
    for (unsigned i = 0; read && i < 8; i++) {
        bits = bits << 8 | read[i]; /* the one number whose first byte is the highest */
    }
    UnpickledValue value = {.kind = UNPICKLED_REAL};
    memcpy(&value.real, &bits, sizeof bits);
    return read && push(reader, value);
}

static bool read_text(Reader *reader, unsigned length_bytes) {
    uint64_t n;
    const uint8_t *read = read_unsigned(reader, length_bytes, &n) ? bytes(reader, n) : NULL;
    if (read && n > INT32_MAX) {
        return fail(reader, "a text of %" G_GUINT64_FORMAT " bytes", (guint64)n);
    }
    return read && push(reader, (UnpickledValue){.kind = UNPICKLED_TEXT,
                                                 .length = (uint32_t)n,
                                                 .text = (const char *)read});
}

static bool push_empty(Reader *reader, UnpickledKind kind) {
    return push(reader,
                (UnpickledValue){.kind = kind, .items = unpickled_new_items(reader->unpickled)});
}

/* The uppermost n values become one. */
static bool make_tuple(Reader *reader, guint n) {
    const UnpickledValue *values = top(reader, n);
    if (!values) {
        return false;
    }
    UnpickledValue tuple = {.kind = UNPICKLED_LIST,
                            .items = unpickled_new_items(reader->unpickled)};
    unpickled_append(reader->unpickled, tuple.items, values, n);
    return drop(reader, n) && push(reader, tuple);
}

/* The uppermost n values go into the list or dict below them. */
static bool put_into(Reader *reader, UnpickledKind kind, guint n) {
    const UnpickledValue *values = top(reader, n + 1);
    if (!values) {
        return false;
    }
    if (values->kind != kind) {
        return fail(reader, "the pickle fills a %s that is none",
                    kind == UNPICKLED_LIST ? "list" : "dict");
    }
    if (kind == UNPICKLED_DICT && n % 2 != 0) {
        return fail(reader, "a dict with a name and no value");
    }
    unpickled_append(reader->unpickled, values->items, values + 1, n);
    return drop(reader, n);
}

static bool put_group(Reader *reader, UnpickledKind kind) {
    guint n = 0;
    return pop_mark(reader, &n) && put_into(reader, kind, n);
}

/* A memo's place must be the next or one before: Python numbers them as they come. */
static bool remember(Reader *reader, uint64_t place) {
    const UnpickledValue *value = top(reader, 1);
    if (!value) {
        return false;
    }
    if (place > reader->memo->len) {
        return fail(reader, "the pickle keeps value %" G_GUINT64_FORMAT ", having kept %u",
                    (guint64)place, reader->memo->len);
    }
    if (place == reader->memo->len) {
        g_array_append_val(reader->memo, *value);
    } else {
        g_array_index(reader->memo, UnpickledValue, place) = *value;
    }
    return true;
}

static bool remember_at(Reader *reader, unsigned n) {
    uint64_t place;
    return read_unsigned(reader, n, &place) && remember(reader, place);
}

static bool recall(Reader *reader, unsigned n) {
    uint64_t place;
    if (!read_unsigned(reader, n, &place)) {
        return false;
    }
    if (place >= reader->memo->len) {
        return fail(reader, "the pickle asks for value %" G_GUINT64_FORMAT " and has kept %u",
                    (guint64)place, reader->memo->len);
    }
    return push(reader, g_array_index(reader->memo, UnpickledValue, place));
}

static bool read_protocol(Reader *reader) {
    uint64_t protocol;
    if (!read_unsigned(reader, 1, &protocol)) {
        return false;
    }
    return (protocol >= PROTOCOL_LEAST && protocol <= PROTOCOL_MOST) ||
           fail(reader, "a pickle of protocol %u; %d to %d can be read", (unsigned)protocol,
                PROTOCOL_LEAST, PROTOCOL_MOST);
}

static bool begin_group(Reader *reader) {
    guint height = reader->stack->len;
    g_array_append_val(reader->marks, height);
    return true;
}

static bool refuse(Reader *reader, uint8_t opcode) {
    static const char callers[] = "cioRbQP\x81\x82\x83\x84\x92\x93"; /* name or call Python's own */
    reader->at--;
    if (strchr(callers, opcode) && opcode != 0) {
        return fail(reader,
                    "opcode 0x%02x would have Python make an object; a memory snapshot is "
                    "of dicts, lists, texts and numbers alone "
                    "(torch.cuda.memory._dump_snapshot() writes one)",
                    opcode);
    }
    return fail(reader, "opcode 0x%02x, which is none of dicts, lists, texts and numbers", opcode);
}

/* The names of opcodes stand in Python's pickletools. Those that make one value of bytes: */
static bool obey_value(Reader *reader, uint8_t opcode) {
    switch (opcode) {
    case 'N': /* NONE */
        return push(reader, (UnpickledValue){.kind = UNPICKLED_NONE});
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push(reader, (UnpickledValue){.kind = UNPICKLED_BOOL, .integer = opcode == 0x88});
    case 'K': /* BININT1 */
        return read_int(reader, 1, false);
    case 'M': /* BININT2 */
        return read_int(reader, 2, false);
    case 'J': /* BININT */
        return read_int(reader, 4, true);
    case 0x8a: /* LONG1 */
        return read_long(reader, 1);
    case 0x8b: /* LONG4 */
        return read_long(reader, 4);
    case 'G': /* BINFLOAT */
        return read_real(reader);
    case 0x8c: /* SHORT_BINUNICODE */
        return read_text(reader, 1);
    case 'X': /* BINUNICODE */
        return read_text(reader, 4);
    case 0x8d: /* BINUNICODE8 */
        return read_text(reader, 8);
    default:
        return refuse(reader, opcode);
    }
}

/* Those that put values together: */
static bool obey_group(Reader *reader, uint8_t opcode) {
    guint n = 0;
    switch (opcode) {
    case '(': /* MARK */
        return begin_group(reader);
    case '1': /* POP_MARK */
        return pop_mark(reader, &n) && drop(reader, n);
    case ']': /* EMPTY_LIST */
        return push_empty(reader, UNPICKLED_LIST);
    case 'a': /* APPEND */
        return put_into(reader, UNPICKLED_LIST, 1);
    case 'e': /* APPENDS */
        return put_group(reader, UNPICKLED_LIST);
    case ')': /* EMPTY_TUPLE */
        return push_empty(reader, UNPICKLED_LIST);
    case 0x85: /* TUPLE1 to TUPLE3 */
    case 0x86:
    case 0x87:
        return make_tuple(reader, opcode - 0x84u);
    case 't': /* TUPLE */
        return pop_mark(reader, &n) && make_tuple(reader, n);
    case '}': /* EMPTY_DICT */
        return push_empty(reader, UNPICKLED_DICT);
    case 's': /* SETITEM */
        return put_into(reader, UNPICKLED_DICT, 2);
    case 'u': /* SETITEMS */
        return put_group(reader, UNPICKLED_DICT);
    default:
        return obey_value(reader, opcode);
    }
}

/* And those of the stack, the memo and the file: */
static bool obey(Reader *reader, uint8_t opcode) {
    switch (opcode) {
    case 0x80: /* PROTO */
        return read_protocol(reader);
    case 0x95: /* FRAME: how much could be read at once */
        return bytes(reader, 8) != NULL;
    case '0': /* POP */
        return top(reader, 1) && drop(reader, 1);
    case 0x94: /* MEMOIZE */
        return remember(reader, reader->memo->len);
    case 'q': /* BINPUT */
        return remember_at(reader, 1);
    case 'r': /* LONG_BINPUT */
        return remember_at(reader, 4);
    case 'h': /* BINGET */
        return recall(reader, 1);
    case 'j': /* LONG_BINGET */
        return recall(reader, 4);
    default:
        return obey_group(reader, opcode);
    }
}

static bool read_all(Reader *reader) {
    enum {
        STOP = '.'
    };
    const uint8_t *opcode;
    while ((opcode = bytes(reader, 1)) && *opcode != STOP) {
        if (!obey(reader, *opcode)) {
            return false;
        }
    }
    return opcode && (reader->stack->len == 1 && reader->marks->len == 0
                          ? true
                          : fail(reader, "the pickle ends with %u values; one is wanted",
                                 reader->stack->len));
}

Unpickled *unpickle(const char *text, gsize length, const char *file_name, GError **error) {
    g_autoptr(Unpickled) unpickled = unpickled_new();
    Reader reader = {.at = (const uint8_t *)text,
                     .begin = (const uint8_t *)text,
                     .end = (const uint8_t *)text + length,
                     .file_name = file_name,
                     .unpickled = unpickled,
                     .stack = g_array_new(FALSE, FALSE, sizeof(UnpickledValue)),
                     .marks = g_array_new(FALSE, FALSE, sizeof(guint)),
                     .memo = g_array_new(FALSE, FALSE, sizeof(UnpickledValue)),
                     .error = error};
    bool ok = read_all(&reader);
    if (ok) {
        unpickled->root = g_array_index(reader.stack, UnpickledValue, 0);
    }
    g_array_unref(reader.stack);
    g_array_unref(reader.marks);
    g_array_unref(reader.memo);
    return ok ? g_steal_pointer(&unpickled) : NULL;
}
