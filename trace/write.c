/* trace/write.c - a trace as text: rows in order of rank and step, numbers as differences. */
#include "trace/text.h"

#include <string.h>

#include "trace/files.h"
#include "trace/text-private.h"

static const char *const known_keys[] = {
    "side",  "digest", "title",       "network", "strategy", "device", "cluster",  "allocator",
    "world", "stages", "stages_each", "steps",   "seed",     "paced",  "rehearsed"};

const char *const trace_text_table_names[TRACE_TEXT_N_TABLES] = {
    "lanes", "units", "phases", "categories", "modules", "kinds", "roles", "ranks"};

/* Of a free fact, their number. */
static guint place_of(const char *key) {
    guint place = 0;
    while (place < G_N_ELEMENTS(known_keys) && !g_str_equal(known_keys[place], key)) {
        place++;
    }
    return place;
}

int trace_text_compare_keys(const char *a, const char *b) {
    guint place_a = place_of(a), place_b = place_of(b);
    return place_a != place_b ? (place_a < place_b ? -1 : 1) : strcmp(a, b);
}

/* A name to the end of the line: empty is "", and what would end or confuse a line is escaped. */
static void append_name(GString *text, const char *name) {
    if (name[0] == '\0') {
        g_string_append(text, "\"\"");
        return;
    }
    for (const char *c = name; *c != '\0'; c++) {
        switch (*c) {
        case '\n':
            g_string_append(text, "\\n");
            break;
        case '\r':
            g_string_append(text, "\\r");
            break;
        case '\\':
        case '"':
            g_string_append_c(text, '\\');
            g_string_append_c(text, *c);
            break;
        default:
            g_string_append_c(text, *c);
        }
    }
}

/* Much faster than printf, and a trace is mostly numbers. */
static void append_int(GString *text, int64_t value) {
    char digits[24];
    gsize at = sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    g_string_append_len(text, digits + at, (gssize)(sizeof digits - at));
}

static void append_field(GString *text, int64_t value) {
    g_string_append_c(text, ' ');
    append_int(text, value);
}

static void append_index(GString *text, uint32_t index) {
    if (index == TRACE_NONE) {
        g_string_append(text, " -");
    } else {
        append_field(text, index);
    }
}

static int compare_key_places(gconstpointer a, gconstpointer b, gpointer data) {
    const Trace *trace = data;
    return trace_text_compare_keys(trace->keys->pdata[*(const guint *)a],
                                   trace->keys->pdata[*(const guint *)b]);
}

static void append_header(GString *text, const Trace *trace) {
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < trace->keys->len; i++) {
        g_array_append_val(order, i);
    }
    g_array_sort_with_data(order, compare_key_places, (gpointer)trace);
    for (guint i = 0; i < order->len; i++) {
        guint place = g_array_index(order, guint, i);
        g_string_append_printf(text, "%s ", (char *)trace->keys->pdata[place]);
        append_name(text, trace->values->pdata[place]);
        g_string_append_c(text, '\n');
    }
}

static void append_table(GString *text, const char *entry, const GPtrArray *table) {
    for (guint i = 0; i < table->len; i++) {
        g_string_append(text, entry);
        append_name(text, table->pdata[i]);
        g_string_append_c(text, '\n');
    }
}

static void append_role(GString *text, const Trace *trace, uint32_t role) {
    GArray *table = trace_instructions(trace, role);
    g_string_append_printf(text, "role %u %u\n", role, table->len);
    for (guint i = 0; i < table->len;) {
        uint8_t section = trace_instruction(trace, role, i)->section;
        guint end = i;
        while (end < table->len && trace_instruction(trace, role, end)->section == section) {
            end++;
        }
        g_string_append_printf(text, "section %s %u\n", trace_section_name(section), end - i);
        for (; i < end; i++) {
            const TraceInstruction *instruction = trace_instruction(trace, role, i);
            g_string_append(text, trace_what_name(instruction->what));
            append_field(text, instruction->lane);
            append_field(text, instruction->phase);
            append_index(text, instruction->unit);
            append_index(text, instruction->module);
            if (instruction->kind != TRACE_NONE || instruction->category != TRACE_NONE) {
                append_index(text, instruction->kind != TRACE_NONE ? instruction->kind
                                                                   : instruction->category);
                append_field(text, (int64_t)instruction->bytes);
            }
            if (instruction->buffer != TRACE_NONE) {
                append_index(text, instruction->buffer);
            }
            g_string_append_c(text, '\n');
        }
    }
}

static int compare_ranks(gconstpointer a, gconstpointer b) {
    uint32_t x = ((const TraceRank *)a)->rank, y = ((const TraceRank *)b)->rank;
    return (x > y) - (x < y);
}

/* Of a row. Rows stand in order of rank, those of one rank as they came. */
typedef struct {
    uint32_t rank;
    int32_t step;
    guint row;
} Place;

static const Place *place_at(const GArray *places, guint i) {
    return &g_array_index(places, Place, i);
}

static int compare_places(gconstpointer a, gconstpointer b) {
    const Place *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->row > y->row) - (x->row < y->row);
}

static void sort_places(GArray *places) {
    bool sorted = true;
    for (guint i = 1; i < places->len && sorted; i++) {
        sorted = place_at(places, i - 1)->rank <= place_at(places, i)->rank;
    }
    if (!sorted) {
        g_array_sort(places, compare_places);
    }
}

/* The line before the rows of one rank in one step, of which the first is at a place. Returns the
 * place behind the last. */
static guint begin_group(GString *text, const char *word, const GArray *places, guint at) {
    const Place *first = place_at(places, at);
    guint end = at;
    while (end < places->len && place_at(places, end)->rank == first->rank &&
           place_at(places, end)->step == first->step) {
        end++;
    }
    g_string_append_printf(text, "%s %u %d %u\n", word, first->rank, first->step, end - at);
    return end;
}

static void append_ops(GString *text, const Trace *trace, const GArray *places, guint *at) {
    guint end = begin_group(text, "ops", places, *at);
    int64_t host_ns = 0;
    for (; *at < end; (*at)++) {
        const TraceOpRow *row = trace_op(trace, place_at(places, *at)->row);
        append_int(text, row->instruction);
        append_field(text, row->lane);
        append_field(text, row->host_issue_ns - host_ns);
        append_field(text, row->start_ns - row->host_issue_ns);
        append_field(text, row->end_ns - row->start_ns);
        g_string_append_c(text, '\n');
        host_ns = row->host_issue_ns;
    }
}

static void append_memory(GString *text, const Trace *trace, const GArray *places, guint *at) {
    guint end = begin_group(text, "memory", places, *at);
    int64_t host_ns = 0;
    uint64_t reserved = 0;
    for (; *at < end; (*at)++) {
        const TraceMemoryRow *row = trace_memory(trace, place_at(places, *at)->row);
        append_int(text, row->instruction);
        append_field(text, row->host_ns - host_ns);
        append_field(text, row->category);
        append_field(text, row->delta);
        append_field(text, (int64_t)row->allocated);
        append_field(text, (int64_t)row->active - (int64_t)row->allocated);
        append_field(text, (int64_t)row->reserved - (int64_t)reserved);
        g_string_append_c(text, '\n');
        host_ns = row->host_ns;
        reserved = row->reserved;
    }
}

static GArray *places_of_ops(const Trace *trace) {
    GArray *places = g_array_sized_new(FALSE, FALSE, sizeof(Place), trace->ops->len);
    for (guint i = 0; i < trace->ops->len; i++) {
        Place place = {trace_op(trace, i)->rank, trace_op(trace, i)->step, i};
        g_array_append_val(places, place);
    }
    sort_places(places);
    return places;
}

static GArray *places_of_memory(const Trace *trace) {
    GArray *places = g_array_sized_new(FALSE, FALSE, sizeof(Place), trace->memory->len);
    for (guint i = 0; i < trace->memory->len; i++) {
        Place place = {trace_memory(trace, i)->rank, trace_memory(trace, i)->step, i};
        g_array_append_val(places, place);
    }
    sort_places(places);
    return places;
}

/* Of a step the ops come first. */
static bool comes_first(const Place *op, const Place *memory) {
    return op->rank != memory->rank ? op->rank < memory->rank : op->step <= memory->step;
}

static void append_rows(GString *text, const Trace *trace) {
    g_autoptr(GArray) ops = places_of_ops(trace);
    g_autoptr(GArray) memory = places_of_memory(trace);
    guint op_at = 0, memory_at = 0;
    while (op_at < ops->len || memory_at < memory->len) {
        if (memory_at == memory->len ||
            (op_at < ops->len && comes_first(place_at(ops, op_at), place_at(memory, memory_at)))) {
            append_ops(text, trace, ops, &op_at);
        } else {
            append_memory(text, trace, memory, &memory_at);
        }
    }
}

static void append_tables(GString *text, const Trace *trace) {
    const guint counts[TRACE_TEXT_N_TABLES] = {
        trace->lanes->len,   trace->units->len, trace->phases->len, trace->categories->len,
        trace->modules->len, trace->kinds->len, trace->roles->len,  trace->ranks->len};
    g_string_append(text, "tables");
    for (guint i = 0; i < TRACE_TEXT_N_TABLES; i++) {
        g_string_append_printf(text, " %s %u", trace_text_table_names[i], counts[i]);
    }
    g_string_append_c(text, '\n');
    append_table(text, "lane ", trace->lanes);
    append_table(text, "unit ", trace->units);
    append_table(text, "phase ", trace->phases);
    append_table(text, "category ", trace->categories);
    append_table(text, "module ", trace->modules);
    for (guint i = 0; i < trace->kinds->len; i++) {
        const TraceKind *kind = trace_kind(trace, i);
        g_string_append_printf(text, "kind %s ", trace_kind_class_name(kind->kind_class));
        append_name(text, kind->name);
        g_string_append_c(text, '\n');
    }
    for (guint i = 0; i < trace->roles->len; i++) {
        append_role(text, trace, i);
    }
}

static void append_ranks(GString *text, const Trace *trace) {
    g_autoptr(GArray) ranks = g_array_copy(trace->ranks);
    g_array_sort(ranks, compare_ranks);
    for (guint i = 0; i < ranks->len; i++) {
        const TraceRank *entry = &g_array_index(ranks, TraceRank, i);
        g_string_append_printf(text, "rank %u %u\n", entry->rank, entry->role);
    }
}

GString *trace_text(const Trace *trace, GError **error) {
    if (!trace_check(trace, error)) {
        return NULL;
    }
    GString *text =
        g_string_sized_new(4096 + 32 * (gsize)trace->ops->len + 48 * (gsize)trace->memory->len);
    g_string_append(text, TRACE_TEXT_MAGIC "\n");
    append_header(text, trace);
    append_tables(text, trace);
    append_ranks(text, trace);
    append_rows(text, trace);
    g_string_append_printf(text, "end ops %u memory %u\n", trace->ops->len, trace->memory->len);
    return text;
}

bool trace_write_file(const Trace *trace, const char *path, GError **error) {
    g_autoptr(GString) text = trace_text(trace, error);
    return text != NULL && trace_write_bytes(path, text->str, text->len, error);
}
