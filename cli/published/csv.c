#include "cli/published/csv.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "plan/files/file.h"
#include "plan/files/ini.h"
#include "plan/files/nearest.h"

G_DEFINE_QUARK(foreshard_cli_csv_error, cli_csv_error)

bool cli_csv_refuse(const CliCsv *csv, unsigned line, GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, CLI_CSV_ERROR, CLI_CSV_ERROR_FORMAT, "%s:%u: %s", csv->path, line, message);
    return false;
}

enum {
    SHOWN_MOST = 60 /* characters of a field that a message repeats */
};

/* A field in one line of a message. */
static char *shown(const char *field) {
    char *text = g_utf8_make_valid(field, -1);
    if (g_utf8_strlen(text, -1) > SHOWN_MOST) {
        g_autofree char *whole = text;
        g_autofree char *part = g_utf8_substring(whole, 0, SHOWN_MOST);
        text = g_strconcat(part, "...", NULL);
    }
    for (char *c = text; *c; c++) {
        *c = g_ascii_iscntrl(*c) ? ' ' : *c;
    }
    return text;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct {
    const char *at;
    unsigned line;
} Cursor;

/* Reads up to the quote that closes; false when there is none. */
static bool read_quoted(Cursor *cursor, GString *field) {
    for (cursor->at++; *cursor->at; cursor->at++) {
        if (cursor->at[0] == '"' && cursor->at[1] != '"') {
            cursor->at++;
            return true;
        }
        cursor->at += cursor->at[0] == '"';
        cursor->line += *cursor->at == '\n';
        g_string_append_c(field, *cursor->at);
    }
    return false;
}

/* "8.0" is 8: data frames write a column's whole numbers so when any of its fields is empty. */
static void make_whole(GString *field) {
    char *dot = strchr(field->str, '.');
    bool zeros = dot && dot > field->str && dot[1] && !dot[1 + strspn(dot + 1, "0")];
    if (zeros && strspn(field->str, "0123456789") == (gsize)(dot - field->str)) {
        g_string_truncate(field, (gsize)(dot - field->str));
    }
}

static bool ends_field(char c) {
    return c == '\0' || c == ',' || c == '\n' || c == '\r';
}

static bool read_field(const CliCsv *csv, Cursor *cursor, GPtrArray *fields, GError **error) {
    g_autoptr(GString) field = g_string_new(NULL);
    unsigned line = cursor->line;
    if (*cursor->at == '"') {
        if (!read_quoted(cursor, field)) {
            return cli_csv_refuse(csv, line, error,
                                  "a quotation mark opens here and never closes; close it, or "
                                  "write it twice to mean itself");
        }
        if (!ends_field(*cursor->at)) {
            return cli_csv_refuse(csv, cursor->line, error,
                                  "text follows a closing quotation mark; put the whole field in "
                                  "quotation marks");
        }
    } else {
        for (; !ends_field(*cursor->at); cursor->at++) {
            g_string_append_c(field, *cursor->at);
        }
        g_strstrip(field->str);
        field->len = strlen(field->str);
        make_whole(field);
    }
    g_ptr_array_add(fields, g_string_free(g_steal_pointer(&field), FALSE));
    return true;
}

/* Fields up to the end of the line, with a NULL behind them; leaves the cursor on the next line. */
static char **read_line(const CliCsv *csv, Cursor *cursor, GError **error) {
    g_autoptr(GPtrArray) fields = g_ptr_array_new_with_free_func(g_free);
    do {
        cursor->at += fields->len > 0; /* the comma */
        if (!read_field(csv, cursor, fields, error)) {
            return NULL;
        }
    } while (*cursor->at == ',');
    cursor->at += *cursor->at == '\r';
    if (*cursor->at == '\n') {
        cursor->at++;
        cursor->line++;
    }
    g_ptr_array_add(fields, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&fields), FALSE);
}

static bool is_blank(char **fields) {
    return !fields[1] && !*fields[0];
}

static bool read_rows(CliCsv *csv, Cursor *cursor, GError **error) {
    guint n_columns = g_strv_length(csv->columns);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CliCsvRow));
    bool good = true;
    while (good && *cursor->at) {
        unsigned line = cursor->line;
        const char *start = cursor->at;
        g_auto(GStrv) fields = read_line(csv, cursor, error);
        g_autofree char *text = g_strndup(start, (gsize)(cursor->at - start));
        g_strchomp(text);
        if (!fields) {
            good = false;
        } else if (!is_blank(fields) && g_strv_length(fields) != n_columns) {
            good = cli_csv_refuse(csv, line, error,
                                  "%u fields, but the header has %u; a field that holds a comma "
                                  "stands in quotation marks",
                                  g_strv_length(fields), n_columns);
        } else if (!is_blank(fields)) {
            CliCsvRow row = {line, g_str_hash(text), g_steal_pointer(&fields)};
            g_array_append_val(rows, row);
        }
    }
    csv->n_rows = rows->len;
    csv->rows = (CliCsvRow *)(void *)g_array_free(g_steal_pointer(&rows), FALSE);
    return good;
}

static bool check_each_once(const CliCsv *csv, GError **error) {
    for (char **a = csv->columns; *a; a++) {
        if (g_strv_contains((const char *const *)a + 1, *a)) {
            g_autofree char *name = shown(*a);
            return cli_csv_refuse(csv, 1, error, "column '%s' stands twice; take one away", name);
        }
    }
    return true;
}

CliCsv *cli_csv_read(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    if (!text) {
        return NULL;
    }
    g_autoptr(CliCsv) csv = g_new0(CliCsv, 1);
    csv->path = g_strdup(path);
    csv->name = g_path_get_basename(path);
    /* Spreadsheets put a byte order mark before the header. */
    Cursor cursor = {g_str_has_prefix(text, "\xef\xbb\xbf") ? text + 3 : text, 1};
    if (strlen(text) != length) {
        cli_csv_refuse(csv, 1, error, "this is no text; give a table of comma-separated values");
        return NULL;
    }
    csv->columns = read_line(csv, &cursor, error);
    if (!csv->columns || !check_each_once(csv, error) || !read_rows(csv, &cursor, error)) {
        return NULL;
    }
    return g_steal_pointer(&csv);
}

void cli_csv_free(CliCsv *csv) {
    if (csv) {
        for (unsigned i = 0; i < csv->n_rows; i++) {
            g_strfreev(csv->rows[i].fields);
        }
        g_free(csv->rows);
        g_strfreev(csv->columns);
        g_free(csv->name);
        g_free(csv->path);
        g_free(csv);
    }
}

/* ---- looking up ----------------------------------------------------------------------------- */

bool cli_csv_has(const CliCsv *csv, const char *column) {
    return g_strv_contains((const char *const *)csv->columns, column);
}

const char *cli_csv_text(const CliCsv *csv, const CliCsvRow *row, const char *column) {
    for (unsigned i = 0; csv->columns[i]; i++) {
        if (g_str_equal(csv->columns[i], column)) {
            return row->fields[i];
        }
    }
    return "";
}

/* Also where it stands in words. */
static bool is_unsaid(const char *text) {
    static const char *const words[] = {"",    "-",    "?",    "n/a",    "na",
                                        "nan", "null", "none", "unknown"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_ascii_strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* "1,073,741" too: commas before each three digits. */
static bool parse_number(const char *text, double *ret_value) {
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    for (unsigned i = 1; parts[0] && parts[i]; i++) {
        bool are_three = strspn(parts[i], "0123456789") == 3;
        if (!are_three || (parts[i + 1] && parts[i][3]) || !g_ascii_isdigit(*parts[0])) {
            return false;
        }
    }
    g_autofree char *together = g_strjoinv("", parts);
    return plan_parse_double(together, ret_value);
}

bool cli_csv_number(const CliCsv *csv, const CliCsvRow *row, const char *column, double *ret_value,
                    GError **error) {
    const char *text = cli_csv_text(csv, row, column);
    if (is_unsaid(text)) {
        *ret_value = NAN;
        return true;
    }
    bool is_number = parse_number(text, ret_value);
    if (is_number && *ret_value >= 0) {
        return true;
    }
    g_autofree char *field = shown(text);
    return cli_csv_refuse(csv, row->line, error,
                          "%s is '%s', which is %s; give one, or leave it empty", column, field,
                          is_number ? "less than nothing" : "no number");
}

double cli_csv_known(const CliCsv *csv, const CliCsvRow *row, const char *column) {
    double value = NAN;
    cli_csv_number(csv, row, column, &value, NULL);
    return value;
}

bool cli_csv_spell_columns(CliCsv *csv, const char *const *known, GError **error) {
    for (char **column = csv->columns; *column; column++) {
        g_autofree char *name = g_strdelimit(g_strstrip(g_strdup(*column)), " -", '_');
        for (const char *const *k = known; *k; k++) {
            if (g_ascii_strcasecmp(name, *k) == 0) {
                g_free(*column);
                *column = g_strdup(*k);
                break;
            }
        }
    }
    return check_each_once(csv, error);
}

bool cli_csv_check_columns(const CliCsv *csv, const char *const *known, const char *const *needed,
                           GError **error) {
    for (char **column = csv->columns; *column; column++) {
        if (!g_strv_contains(known, *column)) {
            g_autofree char *name = shown(*column), *meant = plan_did_you_mean(*column, known);
            return cli_csv_refuse(csv, 1, error,
                                  "column '%s' is unknown; take it away, or put it into notes%s",
                                  name, *meant ? meant : "");
        }
    }
    for (; *needed; needed++) {
        if (!cli_csv_has(csv, *needed)) {
            return cli_csv_refuse(
                csv, 1, error, "column '%s' is missing; add it, its fields may be empty", *needed);
        }
    }
    return true;
}

static void append(char ***strings, const char *string) {
    guint n = g_strv_length(*strings);
    *strings = g_renew(char *, *strings, n + 2);
    (*strings)[n] = g_strdup(string);
    (*strings)[n + 1] = NULL;
}

void cli_csv_add_columns(CliCsv *csv, const char *const *columns) {
    for (; *columns; columns++) {
        if (cli_csv_has(csv, *columns)) {
            continue;
        }
        append(&csv->columns, *columns);
        for (unsigned i = 0; i < csv->n_rows; i++) {
            append(&csv->rows[i].fields, "");
        }
    }
}
