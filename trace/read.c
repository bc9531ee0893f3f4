#include <stdio.h>
#include <string.h>

#include "trace/check-private.h"
#include "trace/text-private.h"
#include "trace/text.h"

/* Reads only what trace_text() would write: whatever is accepted is written again as the same
 * bytes. The reader trusts no count; each line is looked for, and none there means a file cut
 * short.
 */
typedef struct {
    const char *file_name;
    const char *next, *end; /* of the text that is left */
    const char *line;       /* the line at hand, and how far it is read */
    const char *line_end;
    guint line_number;
    Trace *trace;
    GError **error;
} Reader;

static bool complain(Reader *reader, TraceError code, const char *format, ...) G_GNUC_PRINTF(3, 4);
static bool complain(Reader *reader, TraceError code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(reader->error, TRACE_ERROR, code, "%s:%u: %s", reader->file_name,
                reader->line_number, message);
    return false;
}

/* A fault that trace_check would find too, now with its line. */
static bool place_fault(Reader *reader, GError *fault) {
    g_autoptr(GError) owned = fault;
    return complain(reader, TRACE_ERROR_SYNTAX, "%s", owned->message);
}

static bool next_line(Reader *reader) {
    reader->line_number++;
    const char *newline = NULL;
    if (reader->next < reader->end) {
        newline = memchr(reader->next, '\n', (gsize)(reader->end - reader->next));
    }
    if (newline == NULL) {
        return complain(reader, TRACE_ERROR_CUT,
                        "the trace is cut short: its end line is missing; record it again");
    }
    reader->line = reader->next;
    reader->line_end = newline;
    reader->next = newline + 1;
    return true;
}

/* The word is there and is followed by a space (which is taken too) or by the end of the line. */
static bool take_word(Reader *reader, const char *word) {
    gsize length = strlen(word);
    if ((gsize)(reader->line_end - reader->line) < length ||
        memcmp(reader->line, word, length) != 0) {
        return false;
    }
    const char *after = reader->line + length;
    if (after < reader->line_end && *after != ' ') {
        return false;
    }
    reader->line = after < reader->line_end ? after + 1 : after;
    return true;
}

static bool expect_word(Reader *reader, const char *word) {
    return take_word(reader, word) ||
           complain(reader, TRACE_ERROR_SYNTAX, "\"%s\" should stand here", word);
}

static bool expect_end_of_line(Reader *reader) {
    /* A number's space is taken with it, so a space before the newline shows here. */
    return (reader->line == reader->line_end && reader->line_end[-1] != ' ') ||
           complain(reader, TRACE_ERROR_SYNTAX, "the line should end here");
}

/* A number as append_int() writes it, from min to max. */
static bool take_int(Reader *reader, int64_t min, int64_t max, int64_t *ret_value) {
    const char *at = reader->line;
    bool negative = at < reader->line_end && *at == '-';
    at += negative;
    const char *digits = at;
    int64_t value = 0;
    while (at < reader->line_end && g_ascii_isdigit(*at)) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value)) {
            return complain(reader, TRACE_ERROR_SYNTAX, "a number is too large");
        }
        at++;
    }
    if (at == digits || (*digits == '0' && (at - digits > 1 || negative)) ||
        (at < reader->line_end && *at != ' ')) {
        return complain(reader, TRACE_ERROR_SYNTAX, "a whole number should stand here");
    }
    value = negative ? -value : value;
    if (value < min || value > max) {
        return complain(reader, TRACE_ERROR_SYNTAX,
                        "%" G_GINT64_FORMAT " stands where %" G_GINT64_FORMAT
                        " to %" G_GINT64_FORMAT " is possible",
                        (gint64)value, (gint64)min, (gint64)max);
    }
    reader->line = at < reader->line_end ? at + 1 : at;
    *ret_value = value;
    return true;
}

static bool take_uint32(Reader *reader, uint32_t *ret_value) {
    int64_t value;
    if (!take_int(reader, 0, (int64_t)TRACE_NONE - 1, &value)) {
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

static bool take_index(Reader *reader, uint32_t *ret_index) {
    if (take_word(reader, "-")) {
        *ret_index = TRACE_NONE;
        return true;
    }
    return take_uint32(reader, ret_index);
}

static bool take_name(Reader *reader, GString *ret_name) {
    g_string_truncate(ret_name, 0);
    if (reader->line_end - reader->line == 2 && memcmp(reader->line, "\"\"", 2) == 0) {
        reader->line = reader->line_end;
        return true;
    }
    if (reader->line == reader->line_end) {
        return complain(reader, TRACE_ERROR_SYNTAX, "a name is missing");
    }
    while (reader->line < reader->line_end) {
        char c = *reader->line++;
        if (c == '\\') {
            char escaped = reader->line < reader->line_end ? *reader->line++ : '\0';
            switch (escaped) {
            case 'n':
                c = '\n';
                break;
            case 'r':
                c = '\r';
                break;
            case '\\':
            case '"':
                c = escaped;
                break;
            default:
                return complain(reader, TRACE_ERROR_SYNTAX, "a \\ begins no known character");
            }
        } else if (c == '"' || c == '\r' || c == '\0') {
            return complain(reader, TRACE_ERROR_SYNTAX, "a name holds a forbidden character");
        }
        g_string_append_c(ret_name, c);
    }
    if (!g_utf8_validate(ret_name->str, (gssize)ret_name->len, NULL)) {
        return complain(reader, TRACE_ERROR_SYNTAX, "a name is not UTF-8");
    }
    return true;
}

/* "foreshard-trace 2"; another number is another version. */
static bool check_magic(Reader *reader) {
    static const char magic[] = TRACE_TEXT_MAGIC;
    gsize length = (gsize)(reader->line_end - reader->line);
    gsize name_length = strlen(magic) - 1; /* up to the number */
    if (length == strlen(magic) && memcmp(reader->line, magic, length) == 0) {
        return true;
    }
    if (length > name_length && memcmp(reader->line, magic, name_length) == 0) {
        return complain(reader, TRACE_ERROR_SYNTAX,
                        "the trace is of version %.*s, this program reads version %s; record it "
                        "again, or read it with the program that wrote it",
                        (int)MIN(length - name_length, 10), reader->line + name_length,
                        magic + name_length);
    }
    return complain(reader, TRACE_ERROR_SYNTAX, "this is no trace: it should begin with \"%s\"",
                    magic);
}

/* Reads up to and with the "tables" line, whose counts it returns. */
static bool read_header(Reader *reader, uint32_t *ret_counts) {
    if (!next_line(reader)) {
        return false;
    }
    if (!check_magic(reader)) {
        return false;
    }
    g_autoptr(GString) value = g_string_new(NULL);
    g_autofree char *last_key = NULL;
    for (;;) {
        if (!next_line(reader)) {
            return false;
        }
        if (take_word(reader, "tables")) {
            break;
        }
        const char *space = memchr(reader->line, ' ', (gsize)(reader->line_end - reader->line));
        if (space == NULL) {
            return complain(reader, TRACE_ERROR_SYNTAX, "a header line is \"key value\"");
        }
        g_autofree char *key = g_strndup(reader->line, (gsize)(space - reader->line));
        if (strlen(key) != (gsize)(space - reader->line) || !trace_is_key(key)) {
            return complain(reader, TRACE_ERROR_SYNTAX, "a header line begins with no key");
        }
        if (last_key != NULL && trace_text_compare_keys(last_key, key) >= 0) {
            return complain(reader, TRACE_ERROR_SYNTAX, "\"%s\" should not stand after \"%s\"", key,
                            last_key);
        }
        reader->line = space + 1;
        if (!take_name(reader, value)) {
            return false;
        }
        trace_set(reader->trace, key, value->str);
        g_free(last_key);
        last_key = g_steal_pointer(&key);
    }
    GError *fault = NULL;
    if (!trace_check_header(reader->trace, &fault)) {
        return place_fault(reader, fault);
    }
    for (guint i = 0; i < TRACE_TEXT_N_TABLES; i++) {
        if (!expect_word(reader, trace_text_table_names[i]) ||
            !take_uint32(reader, &ret_counts[i])) {
            return false;
        }
    }
    return expect_end_of_line(reader);
}

static bool read_table(Reader *reader, const char *entry, uint32_t count,
                       uint32_t (*add)(Trace *, const char *)) {
    g_autoptr(GString) name = g_string_new(NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (!next_line(reader) || !expect_word(reader, entry) || !take_name(reader, name)) {
            return false;
        }
        add(reader->trace, name->str);
    }
    return true;
}

static bool read_kinds(Reader *reader, uint32_t count) {
    g_autoptr(GString) name = g_string_new(NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (!next_line(reader) || !expect_word(reader, "kind")) {
            return false;
        }
        guint kind_class = 0;
        while (kind_class < TRACE_N_KIND_CLASSES &&
               !take_word(reader, trace_kind_class_name(kind_class))) {
            kind_class++;
        }
        if (kind_class == TRACE_N_KIND_CLASSES) {
            return complain(reader, TRACE_ERROR_SYNTAX,
                            "a kind is compute, collective or copy, then its name");
        }
        if (!take_name(reader, name)) {
            return false;
        }
        trace_add_kind(reader->trace, name->str, kind_class);
    }
    return true;
}

static bool read_instruction(Reader *reader, uint32_t role, uint8_t section) {
    if (!next_line(reader)) {
        return false;
    }
    TraceInstruction instruction = {
        .section = section, .kind = TRACE_NONE, .category = TRACE_NONE, .buffer = TRACE_NONE};
    while (instruction.what < TRACE_N_WHATS &&
           !take_word(reader, trace_what_name(instruction.what))) {
        instruction.what++;
    }
    if (instruction.what == TRACE_N_WHATS) {
        return complain(reader, TRACE_ERROR_SYNTAX, "an instruction should stand here");
    }
    int64_t lane, phase, bytes = 0;
    if (!take_int(reader, 0, UINT8_MAX, &lane) || !take_int(reader, 0, UINT8_MAX, &phase) ||
        !take_index(reader, &instruction.unit) || !take_index(reader, &instruction.module)) {
        return false;
    }
    bool is_op = instruction.what == TRACE_OP || instruction.what == TRACE_HOST_OP;
    bool is_memory = instruction.what == TRACE_ALLOC || instruction.what == TRACE_FREE;
    if ((is_op && !take_uint32(reader, &instruction.kind)) ||
        (is_memory && !take_uint32(reader, &instruction.category)) ||
        ((is_op || is_memory) && !take_int(reader, 0, INT64_MAX, &bytes)) ||
        (is_memory && !take_uint32(reader, &instruction.buffer)) || !expect_end_of_line(reader)) {
        return false;
    }
    instruction.lane = (uint8_t)lane;
    instruction.phase = (uint8_t)phase;
    instruction.bytes = (uint64_t)bytes;
    uint32_t number = trace_add_instruction(reader->trace, role, &instruction);
    GError *fault = NULL;
    return trace_check_instruction(reader->trace, role, number, &fault) ||
           place_fault(reader, fault);
}

static bool read_role(Reader *reader, uint32_t role) {
    uint32_t number, count;
    if (!next_line(reader) || !expect_word(reader, "role") || !take_uint32(reader, &number) ||
        !take_uint32(reader, &count) || !expect_end_of_line(reader)) {
        return false;
    }
    if (number != role) {
        return complain(reader, TRACE_ERROR_SYNTAX, "role %u should stand here", role);
    }
    trace_add_role(reader->trace);
    uint8_t section = 0;
    for (uint32_t done = 0; done < count;) {
        uint32_t length;
        if (!next_line(reader) || !expect_word(reader, "section")) {
            return false;
        }
        while (section < TRACE_N_SECTIONS && !take_word(reader, trace_section_name(section))) {
            section++;
        }
        if (section == TRACE_N_SECTIONS) {
            return complain(reader, TRACE_ERROR_SYNTAX,
                            "sections are construct, first, second, steady, in this order");
        }
        if (!take_uint32(reader, &length) || !expect_end_of_line(reader)) {
            return false;
        }
        if (length == 0 || length > count - done) {
            return complain(reader, TRACE_ERROR_SYNTAX,
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

static bool read_ranks(Reader *reader, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        TraceRank rank;
        if (!next_line(reader) || !expect_word(reader, "rank") ||
            !take_uint32(reader, &rank.rank) || !take_uint32(reader, &rank.role) ||
            !expect_end_of_line(reader)) {
            return false;
        }
        if (rank.role >= reader->trace->roles->len) {
            return complain(reader, TRACE_ERROR_SYNTAX, "there is no role %u", rank.role);
        }
        if (i > 0 && g_array_index(reader->trace->ranks, TraceRank, i - 1).rank >= rank.rank) {
            return complain(reader, TRACE_ERROR_SYNTAX, "ranks should grow");
        }
        trace_add_rank(reader->trace, rank.rank, rank.role);
    }
    return true;
}

/* A group of rows: those of one rank and one step. */
typedef struct {
    bool is_memory;
    uint32_t rank, count;
    int32_t step;
} Group;

static bool read_ops(Reader *reader, const Group *group, TraceRankState *state) {
    int64_t host_ns = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        TraceOpRow row = {.rank = group->rank, .step = group->step};
        int64_t after_host_ns, after_issue_ns, lasted_ns;
        if (!next_line(reader) || !take_uint32(reader, &row.instruction) ||
            !take_uint32(reader, &row.lane) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &after_host_ns) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &after_issue_ns) ||
            !take_int(reader, 0, INT64_MAX, &lasted_ns) || !expect_end_of_line(reader)) {
            return false;
        }
        if (__builtin_add_overflow(host_ns, after_host_ns, &row.host_issue_ns) ||
            __builtin_add_overflow(row.host_issue_ns, after_issue_ns, &row.start_ns) ||
            __builtin_add_overflow(row.start_ns, lasted_ns, &row.end_ns)) {
            return complain(reader, TRACE_ERROR_SYNTAX, "a time is out of range");
        }
        host_ns = row.host_issue_ns;
        GError *fault = NULL;
        if (!trace_check_op(reader->trace, &row, state, &fault)) {
            return place_fault(reader, fault);
        }
        trace_add_op(reader->trace, &row);
    }
    return true;
}

static bool read_memory(Reader *reader, const Group *group, TraceRankState *state) {
    int64_t host_ns = 0, reserved = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        TraceMemoryRow row = {.rank = group->rank, .step = group->step};
        int64_t after_host_ns, allocated, active_more, active, reserved_more;
        if (!next_line(reader) || !take_uint32(reader, &row.instruction) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &after_host_ns) ||
            !take_uint32(reader, &row.category) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &row.delta) ||
            !take_int(reader, 0, INT64_MAX, &allocated) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &active_more) ||
            !take_int(reader, -INT64_MAX, INT64_MAX, &reserved_more) ||
            !expect_end_of_line(reader)) {
            return false;
        }
        if (__builtin_add_overflow(host_ns, after_host_ns, &row.host_ns) ||
            __builtin_add_overflow(allocated, active_more, &active) ||
            __builtin_add_overflow(reserved, reserved_more, &reserved) || active < 0 ||
            reserved < 0) {
            return complain(reader, TRACE_ERROR_SYNTAX, "a time or a size is out of range");
        }
        row.allocated = (uint64_t)allocated;
        row.active = (uint64_t)active;
        row.reserved = (uint64_t)reserved;
        host_ns = row.host_ns;
        GError *fault = NULL;
        if (!trace_check_memory(reader->trace, &row, state, &fault)) {
            return place_fault(reader, fault);
        }
        trace_add_memory(reader->trace, &row);
    }
    return true;
}

static bool group_follows(const Group *last, const Group *group) {
    if (last->rank != group->rank) {
        return last->rank < group->rank;
    }
    return last->step != group->step ? last->step < group->step
                                     : !last->is_memory && group->is_memory;
}

/* Reads up to and with the end line. */
static bool read_rows(Reader *reader) {
    Group last = {0};
    TraceRankState state = {0};
    bool any = false;
    for (;;) {
        if (!next_line(reader)) {
            return false;
        }
        if (take_word(reader, "end")) {
            break;
        }
        Group group = {.is_memory = take_word(reader, "memory")};
        int64_t step;
        if (!group.is_memory && !take_word(reader, "ops")) {
            return complain(reader, TRACE_ERROR_SYNTAX,
                            "\"ops\", \"memory\" or \"end\" should stand here");
        }
        if (!take_uint32(reader, &group.rank) || !take_int(reader, -1, INT32_MAX, &step) ||
            !take_uint32(reader, &group.count) || !expect_end_of_line(reader)) {
            return false;
        }
        group.step = (int32_t)step;
        if (group.count == 0 || (any && !group_follows(&last, &group))) {
            return complain(reader, TRACE_ERROR_SYNTAX,
                            "groups of rows come in order of rank and step, none empty");
        }
        if (!any || last.rank != group.rank) {
            state = (TraceRankState){trace_role_of_rank(reader->trace, group.rank), -1, -1, 0};
            if (state.role == TRACE_NONE) {
                return complain(reader, TRACE_ERROR_SYNTAX, "rank %u has no role", group.rank);
            }
        }
        if (group.is_memory ? !read_memory(reader, &group, &state)
                            : !read_ops(reader, &group, &state)) {
            return false;
        }
        last = group;
        any = true;
    }
    uint32_t n_ops, n_memory;
    if (!expect_word(reader, "ops") || !take_uint32(reader, &n_ops) ||
        !expect_word(reader, "memory") || !take_uint32(reader, &n_memory) ||
        !expect_end_of_line(reader)) {
        return false;
    }
    if (n_ops != reader->trace->ops->len || n_memory != reader->trace->memory->len) {
        return complain(reader, TRACE_ERROR_SYNTAX,
                        "the end line counts %u op rows and %u memory rows; there are %u and %u",
                        n_ops, n_memory, reader->trace->ops->len, reader->trace->memory->len);
    }
    if (reader->next != reader->end) {
        reader->line_number++;
        return complain(reader, TRACE_ERROR_SYNTAX, "text follows the end line");
    }
    return true;
}

Trace *trace_read(const char *text, gsize length, const char *file_name, GError **error) {
    g_autoptr(Trace) trace = trace_new();
    Reader reader = {
        .file_name = file_name, .next = text, .end = text + length, .trace = trace, .error = error};
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
    if (!read_ranks(&reader, counts[7]) || !read_rows(&reader)) {
        return NULL;
    }
    return g_steal_pointer(&trace);
}

Trace *trace_read_file(const char *path, GError **error) {
    g_autofree char *text = NULL;
    gsize length;
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents(path, &text, &length, &cause)) {
        const char *why = strrchr(cause->message, ':'); /* before it, GLib names the file again */
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be read%s", path,
                    why != NULL ? why : "");
        return NULL;
    }
    return trace_read(text, length, path, error);
}

bool trace_is_file(const char *path) {
    static const char magic[] = "foreshard-trace";
    char start[sizeof magic] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    gsize n = fread(start, 1, sizeof magic - 1, file);
    fclose(file);
    return n == sizeof magic - 1 && memcmp(start, magic, n) == 0;
}
