/* trace/read.c - the grammar of a trace's text, over words.h.
 *
 * Reads only what trace_text() would write: whatever is accepted is written again as the same
 * bytes. Trusts no count: each line is looked for, and none there means a file cut short.
 */
#include <string.h>

#include "plan/files/file.h"
#include "plan/files/stream.h"
#include "trace/check-private.h"
#include "trace/read-private.h"
#include "trace/text-private.h"
#include "trace/text.h"

/* A fault that trace_check would find too, now with its line. */
/* "foreshard-trace 2"; another number is another version. */
static bool check_magic(TraceReader *reader) {
    TraceWords *words = &reader->words;
    static const char magic[] = TRACE_TEXT_MAGIC;
    gsize length = (gsize)(words->line_end - words->line);
    gsize name_length = strlen(magic) - 1; /* up to the number */
    if (length == strlen(magic) && memcmp(words->line, magic, length) == 0) {
        return true;
    }
    if (length == strlen(magic) + 1 && words->line[length - 1] == '\r') {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                    "lines end in CR and LF, which some program made of LF; undo "
                                    "that (dos2unix), or copy the trace as binary");
    }
    if (length > name_length && memcmp(words->line, magic, name_length) == 0) {
        return trace_words_complain(
            words, TRACE_ERROR_SYNTAX,
            "the trace is of version %.*s, this program reads version %s; record it "
            "again, or read it with the program that wrote it",
            (int)MIN(length - name_length, 10), words->line + name_length, magic + name_length);
    }
    return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                "this is no trace: it should begin with \"%s\"", magic);
}

/* "key value"; last_key: of the line before, which this one's replaces. */
static bool read_fact(TraceReader *reader, char **last_key) {
    TraceWords *words = &reader->words;
    g_autoptr(GString) value = g_string_new(NULL);
    const char *space = memchr(words->line, ' ', (gsize)(words->line_end - words->line));
    if (space == NULL) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a header line is \"key value\"");
    }
    g_autofree char *key = g_strndup(words->line, (gsize)(space - words->line));
    if (strlen(key) != (gsize)(space - words->line) || !trace_is_key(key)) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a header line begins with no key");
    }
    if (*last_key != NULL && trace_text_compare_keys(*last_key, key) >= 0) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                    "\"%s\" should not stand after \"%s\"", key, *last_key);
    }
    words->line = space + 1;
    if (!trace_words_take_name(words, value)) {
        return false;
    }
    trace_set(reader->trace, key, value->str);
    g_free(*last_key);
    *last_key = g_steal_pointer(&key);
    return true;
}

/* Reads up to and with the "tables" line, whose counts it returns. */
static bool read_header(TraceReader *reader, uint32_t *ret_counts) {
    TraceWords *words = &reader->words;
    if (!trace_words_next_line(words) || !check_magic(reader)) {
        return false;
    }
    g_autofree char *last_key = NULL;
    for (;;) {
        if (!trace_words_next_line(words)) {
            return false;
        }
        if (trace_words_take(words, "tables")) {
            break;
        }
        if (!read_fact(reader, &last_key)) {
            return false;
        }
    }
    GError *fault = NULL;
    if (!trace_check_header(reader->trace, &fault)) {
        return trace_reader_place(reader, fault);
    }
    for (guint i = 0; i < TRACE_TEXT_N_TABLES; i++) {
        if (!trace_words_expect(words, trace_text_table_names[i]) ||
            !trace_words_take_uint32(words, &ret_counts[i])) {
            return false;
        }
    }
    return trace_words_expect_end(words);
}

static bool read_table(TraceReader *reader, const char *entry, uint32_t count,
                       uint32_t (*add)(Trace *, const char *)) {
    TraceWords *words = &reader->words;
    g_autoptr(GString) name = g_string_new(NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (!trace_words_next_line(words) || !trace_words_expect(words, entry) ||
            !trace_words_take_name(words, name)) {
            return false;
        }
        add(reader->trace, name->str);
    }
    return true;
}

static bool read_kinds(TraceReader *reader, uint32_t count) {
    TraceWords *words = &reader->words;
    g_autoptr(GString) name = g_string_new(NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (!trace_words_next_line(words) || !trace_words_expect(words, "kind")) {
            return false;
        }
        guint kind_class = 0;
        while (kind_class < TRACE_N_KIND_CLASSES &&
               !trace_words_take(words, trace_kind_class_name(kind_class))) {
            kind_class++;
        }
        if (kind_class == TRACE_N_KIND_CLASSES) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                        "a kind is compute, collective or copy, then its name");
        }
        if (!trace_words_take_name(words, name)) {
            return false;
        }
        trace_add_kind(reader->trace, name->str, kind_class);
    }
    return true;
}

static bool read_instruction(TraceReader *reader, uint32_t role, uint8_t section) {
    TraceWords *words = &reader->words;
    if (!trace_words_next_line(words)) {
        return false;
    }
    TraceInstruction instruction = {
        .section = section, .kind = TRACE_NONE, .category = TRACE_NONE, .buffer = TRACE_NONE};
    while (instruction.what < TRACE_N_WHATS &&
           !trace_words_take(words, trace_what_name(instruction.what))) {
        instruction.what++;
    }
    if (instruction.what == TRACE_N_WHATS) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "an instruction should stand here");
    }
    int64_t lane, phase, bytes = 0;
    if (!trace_words_take_int(words, 0, UINT8_MAX, &lane) ||
        !trace_words_take_int(words, 0, UINT8_MAX, &phase) ||
        !trace_words_take_index(words, &instruction.unit) ||
        !trace_words_take_index(words, &instruction.module)) {
        return false;
    }
    bool is_op = instruction.what == TRACE_OP || instruction.what == TRACE_HOST_OP;
    bool is_memory = instruction.what == TRACE_ALLOC || instruction.what == TRACE_FREE;
    if ((is_op && !trace_words_take_uint32(words, &instruction.kind)) ||
        (is_memory && !trace_words_take_uint32(words, &instruction.category)) ||
        ((is_op || is_memory) && !trace_words_take_int(words, 0, INT64_MAX, &bytes)) ||
        (is_memory && !trace_words_take_uint32(words, &instruction.buffer)) ||
        !trace_words_expect_end(words)) {
        return false;
    }
    instruction.lane = (uint8_t)lane;
    instruction.phase = (uint8_t)phase;
    instruction.bytes = (uint64_t)bytes;
    uint32_t number = trace_add_instruction(reader->trace, role, &instruction);
    GError *fault = NULL;
    return trace_check_instruction(reader->trace, role, number, &fault) ||
           trace_reader_place(reader, fault);
}

static bool read_role(TraceReader *reader, uint32_t role) {
    TraceWords *words = &reader->words;
    uint32_t number, count;
    if (!trace_words_next_line(words) || !trace_words_expect(words, "role") ||
        !trace_words_take_uint32(words, &number) || !trace_words_take_uint32(words, &count) ||
        !trace_words_expect_end(words)) {
        return false;
    }
    if (number != role) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "role %u should stand here", role);
    }
    trace_add_role(reader->trace);
    uint8_t section = 0;
    for (uint32_t done = 0; done < count;) {
        uint32_t length;
        if (!trace_words_next_line(words) || !trace_words_expect(words, "section")) {
            return false;
        }
        while (section < TRACE_N_SECTIONS &&
               !trace_words_take(words, trace_section_name(section))) {
            section++;
        }
        if (section == TRACE_N_SECTIONS) {
            return trace_words_complain(
                words, TRACE_ERROR_SYNTAX,
                "sections are construct, first, second, steady, in this order");
        }
        if (!trace_words_take_uint32(words, &length) || !trace_words_expect_end(words)) {
            return false;
        }
        if (length == 0 || length > count - done) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                        "the section's length does not agree with the role's");
        }
        for (uint32_t i = 0; i < length; i++) {
            if (!read_instruction(reader, role, section)) {
                return false;
            }
        }
        done += length;
        section++;
    }
    return true;
}

static bool read_ranks(TraceReader *reader, uint32_t count) {
    TraceWords *words = &reader->words;
    for (uint32_t i = 0; i < count; i++) {
        TraceRank rank;
        if (!trace_words_next_line(words) || !trace_words_expect(words, "rank") ||
            !trace_words_take_uint32(words, &rank.rank) ||
            !trace_words_take_uint32(words, &rank.role) || !trace_words_expect_end(words)) {
            return false;
        }
        if (rank.role >= reader->trace->roles->len) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX, "there is no role %u",
                                        rank.role);
        }
        if (i > 0 && g_array_index(reader->trace->ranks, TraceRank, i - 1).rank >= rank.rank) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX, "ranks should grow");
        }
        trace_add_rank(reader->trace, rank.rank, rank.role);
    }
    return true;
}

Trace *trace_read(const char *text, gsize length, const char *file_name, GError **error) {
    g_autoptr(Trace) trace = trace_new();
    TraceReader reader = {
        .words = {.file_name = file_name, .next = text, .end = text + length, .error = error},
        .trace = trace};
    uint32_t counts[TRACE_TEXT_N_TABLES];
    if (!read_header(&reader, counts) || !read_table(&reader, "lane", counts[0], trace_add_lane) ||
        !read_table(&reader, "unit", counts[1], trace_add_unit) ||
        !read_table(&reader, "phase", counts[2], trace_add_phase) ||
        !read_table(&reader, "category", counts[3], trace_add_category) ||
        !read_table(&reader, "module", counts[4], trace_add_module) ||
        !read_kinds(&reader, counts[5])) {
        return NULL;
    }
    for (uint32_t i = 0; i < counts[6]; i++) {
        if (!read_role(&reader, i)) {
            return NULL;
        }
    }
    if (!read_ranks(&reader, counts[7]) || !trace_reader_take_rows(&reader)) {
        return NULL;
    }
    return g_steal_pointer(&trace);
}

Trace *trace_read_file(const char *path, GError **error) {
    gsize length;
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = plan_file_text(path, &length, &cause);
    if (text == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s", cause->message);
        return NULL;
    }
    return trace_read(text, length, plan_stream_name(path), error);
}

bool trace_is_file(const char *path) {
    return plan_file_begins(path, TRACE_TEXT_NAME);
}
