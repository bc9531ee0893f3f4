#include "plan/files/ini.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "plan/files/file.h"
#include "plan/plan.h"

void plan_ini_free(PlanIni *ini) {
    if (ini) {
        g_free(ini->entries);
        g_string_chunk_free(ini->strings);
        g_free(ini);
    }
}

static bool refuse_line(const PlanIni *ini, unsigned line, GError **error, const char *message) {
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s:%u: %s", ini->file_name, line, message);
    return false;
}

const PlanIniEntry *plan_ini_first(const PlanIni *ini, const char *section) {
    for (unsigned i = 0; i < ini->n_entries; i++) {
        if (g_str_equal(ini->entries[i].section, section)) {
            return &ini->entries[i];
        }
    }
    return NULL;
}

bool plan_ini_refuse(const PlanIni *ini, const PlanIniEntry *entry, GError **error,
                     const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    if (entry && entry->line > 0) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s:%u: %s", ini->file_name, entry->line,
                    message);
    } else {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: %s", ini->file_name, message);
    }
    return false;
}

/* Cuts a comment off: '#' or ';' at the start or after white space. */
static void cut_comment(char *line) {
    for (char *c = line; *c; c++) {
        if ((*c == '#' || *c == ';') && (c == line || g_ascii_isspace(c[-1]))) {
            *c = 0;
            return;
        }
    }
}

bool plan_ini_can_hold(const char *value) {
    g_autofree char *line = g_strconcat(" ", value, NULL); /* as behind the '=' */
    cut_comment(line);
    return !strchr(value, '\n') && g_str_equal(g_strstrip(line), value);
}

/* As it is read. */
typedef struct {
    PlanIni *ini;
    GArray *entries;     /* PlanIniEntry */
    GHashTable *seen;    /* "section]key" */
    const char *section; /* that the line is in */
} Reader;

static bool read_line(Reader *r, char *line, unsigned number, GError **error) {
    cut_comment(line);
    g_strstrip(line);
    if (!*line) {
        return true;
    }
    if (*line == '[') {
        char *end = strchr(line, ']');
        if (!end || end[1] || end == line + 1) {
            return refuse_line(r->ini, number, error, "a section is written [name]");
        }
        *end = 0;
        r->section = g_string_chunk_insert_const(r->ini->strings, line + 1);
        return true;
    }
    char *equals = strchr(line, '=');
    if (!equals || equals == line) {
        return refuse_line(r->ini, number, error, "expected a [section] or a line 'key = value'");
    }
    *equals = 0;
    PlanIniEntry entry = {
        .section = r->section,
        .key = g_string_chunk_insert(r->ini->strings, g_strstrip(line)),
        .value = g_string_chunk_insert(r->ini->strings, g_strstrip(equals + 1)),
        .line = number,
    };
    g_autofree char *id = g_strconcat(entry.section, "]", entry.key, NULL);
    if (g_hash_table_contains(r->seen, id)) {
        g_autofree char *message = g_strdup_printf("'%s' stands twice; keep one", entry.key);
        return refuse_line(r->ini, number, error, message);
    }
    g_hash_table_add(r->seen, g_steal_pointer(&id));
    g_array_append_val(r->entries, entry);
    return true;
}

/* What foreshard writes begins with its name, "foreshard-plan 1", and is not known by it behind a
 * byte order mark. */
static bool is_another_kind(const PlanIni *ini, const char *text, bool is_marked, GError **error) {
    if (!g_str_has_prefix(text, "foreshard-")) {
        return false;
    }
    g_autofree char *kind = g_strndup(text, strcspn(text, " \n"));
    g_autofree char *message =
        is_marked ? g_strdup_printf("a byte order mark (U+FEFF) stands before %s, which some "
                                    "program put there; save it without one",
                                    kind)
                  : g_strdup_printf("this is a %s, where an ini file is wanted: [section]s with "
                                    "lines 'key = value'",
                                    kind);
    refuse_line(ini, 1, error, message);
    return true;
}

PlanIni *plan_ini_read(const char *text, gsize length, const char *file_name, GError **error) {
    g_autoptr(PlanIni) ini = g_new0(PlanIni, 1);
    ini->strings = g_string_chunk_new(4096);
    ini->file_name = g_string_chunk_insert(ini->strings, file_name);
    const char *bad;
    if (!g_utf8_validate_len(text, length, &bad)) {
        unsigned line = 1;
        for (const char *c = text; c < bad; c++) {
            line += *c == '\n';
        }
        refuse_line(ini, line, error, "not text (a byte that is not UTF-8, or a NUL)");
        return NULL;
    }
    g_autofree char *copy = g_strndup(text, length);
    static const char mark[] = "\xEF\xBB\xBF"; /* that editors on Windows put before UTF-8 */
    bool is_marked = g_str_has_prefix(copy, mark);
    const char *behind = copy + (is_marked ? strlen(mark) : 0);
    if (is_another_kind(ini, behind, is_marked, error)) {
        return NULL;
    }
    g_auto(GStrv) lines = g_strsplit(behind, "\n", -1);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Reader r = {ini, g_array_new(FALSE, FALSE, sizeof(PlanIniEntry)), seen, ""};
    bool ok = true;
    for (unsigned i = 0; ok && lines[i]; i++) {
        ok = read_line(&r, lines[i], i + 1, error);
    }
    ini->n_entries = r.entries->len;
    ini->entries = (PlanIniEntry *)(gpointer)g_array_free(r.entries, FALSE);
    return ok ? g_steal_pointer(&ini) : NULL;
}

PlanIni *plan_ini_read_file(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    return text ? plan_ini_read(text, length, path, error) : NULL;
}

const PlanIniEntry *plan_ini_find(const PlanIni *ini, const char *section, const char *key) {
    for (unsigned i = 0; i < ini->n_entries; i++) {
        if (g_str_equal(ini->entries[i].section, section) &&
            g_str_equal(ini->entries[i].key, key)) {
            return &ini->entries[i];
        }
    }
    return NULL;
}

bool plan_parse_u64(const char *text, uint64_t *ret_value) {
    guint64 value;
    if (!g_ascii_string_to_unsigned(text, 10, 0, UINT64_MAX, &value, NULL)) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool plan_parse_double(const char *text, double *ret_value) {
    char *end;
    errno = 0;
    double value = g_ascii_strtod(text, &end);
    if (end == text || *end || errno == ERANGE || !isfinite(value)) {
        return false;
    }
    *ret_value = value;
    return true;
}

char *plan_written_out(const char *text, double least, double most) {
    static const struct {
        char unit;
        double thousands, powers;
    } units[] = {{'k', 1e3, 0x1p10}, {'m', 1e6, 0x1p20}, {'g', 1e9, 0x1p30}, {'t', 1e12, 0x1p40}};
    uint64_t is_whole;
    char *end;
    double value = g_ascii_strtod(text, &end);
    if (end == text || plan_parse_u64(text, &is_whole) || value < least) {
        return g_strdup("");
    }
    if (*end == '\0') {
        return value == floor(value) && value <= most
                   ? g_strdup_printf("; write it out: %.0f", value)
                   : g_strdup("");
    }
    end += *end == ' ' && end[1];
    bool is_power = g_str_equal(end + 1, "iB"), is_unit = g_str_equal(end + 1, "B") || !end[1];
    for (unsigned i = 0; i < G_N_ELEMENTS(units) && (is_power || is_unit); i++) {
        if (g_ascii_tolower(*end) != units[i].unit || value * units[i].powers > most) {
            continue;
        }
        return is_power ? g_strdup_printf("; write it out: %.0f", value * units[i].powers)
                        : g_strdup_printf("; write it out: %.0f, or %.0f (%s may be either)",
                                          value * units[i].thousands, value * units[i].powers, end);
    }
    return g_strdup("");
}

const char *plan_double_text(char *buffer, double value) {
    /* 17 digits tell any two apart. */
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
    for (unsigned i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, formats[i], value);
        if (g_ascii_strtod(buffer, NULL) == value) {
            break;
        }
    }
    return buffer;
}
