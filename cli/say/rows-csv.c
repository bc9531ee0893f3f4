#include "cli/say/rows-csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Names and cells of one row, in its order; or the names of all. */
typedef struct {
    GPtrArray *names; /* char * */
    GPtrArray *cells; /* char *, of each name */
} Row;

static Row row_new(void) {
    return (Row){g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free)};
}

static void row_clear(Row *row) {
    g_ptr_array_unref(row->names);
    g_ptr_array_unref(row->cells);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Row, row_clear)

/* The fewest digits, from 15 on, that are read back as the same number. */
static char *number_text(double number) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    for (unsigned n = 15; n <= 17; n++) {
        char format[] = {'%', '.', '1', (char)('0' + n % 10), 'g', '\0'};
        g_ascii_formatd(digits, sizeof digits, format, number);
        if (g_ascii_strtod(digits, NULL) == number) {
            break;
        }
    }
    return g_strdup(digits);
}

static char *quoted(const char *text) {
    if (strpbrk(text, ",\"\r") == NULL) {
        return g_strdup(text);
    }
    g_auto(GStrv) parts = g_strsplit(text, "\"", -1);
    g_autofree char *doubled = g_strjoinv("\"\"", parts);
    return g_strdup_printf("\"%s\"", doubled);
}

/* NULL: it is no single cell. */
static char *cell_of(JsonNode *value) {
    if (JSON_NODE_HOLDS_NULL(value)) {
        return g_strdup("");
    }
    if (!JSON_NODE_HOLDS_VALUE(value)) {
        return NULL;
    }
    switch (json_node_get_value_type(value)) {
    case G_TYPE_BOOLEAN:
        return g_strdup(json_node_get_boolean(value) ? "true" : "false");
    case G_TYPE_INT64:
        return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(value));
    case G_TYPE_DOUBLE:
        return number_text(json_node_get_double(value));
    default:
        return strchr(json_node_get_string(value), '\n') == NULL
                   ? quoted(json_node_get_string(value))
                   : NULL;
    }
}

/* prefix: names of the objects around it, each with a point behind; "" of a row itself. */
static void add_members(Row *row, JsonObject *object, const char *prefix) {
    g_autoptr(GList) members = json_object_get_members(object);
    for (GList *at = members; at != NULL; at = at->next) {
        JsonNode *value = json_object_get_member(object, at->data);
        if (JSON_NODE_HOLDS_OBJECT(value)) {
            g_autofree char *inner = g_strconcat(prefix, at->data, ".", NULL);
            add_members(row, json_node_get_object(value), inner);
            continue;
        }
        char *cell = cell_of(value);
        if (cell != NULL) {
            g_ptr_array_add(row->names, g_strconcat(prefix, at->data, NULL));
            g_ptr_array_add(row->cells, cell);
        }
    }
}

static bool has_name(const GPtrArray *names, const char *name, guint *ret_at) {
    return g_ptr_array_find_with_equal_func((GPtrArray *)names, name, g_str_equal, ret_at);
}

static GPtrArray *columns_of(JsonArray *rows) {
    GPtrArray *columns = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        g_auto(Row) row = row_new();
        add_members(&row, json_array_get_object_element(rows, i), "");
        for (guint k = 0; k < row.names->len; k++) {
            if (!has_name(columns, row.names->pdata[k], NULL)) {
                g_ptr_array_add(columns, g_strdup(row.names->pdata[k]));
            }
        }
    }
    return columns;
}

static void append_row(GString *text, const GPtrArray *columns, JsonObject *object) {
    g_auto(Row) row = row_new();
    add_members(&row, object, "");
    for (guint i = 0; i < columns->len; i++) {
        guint at;
        bool has = has_name(row.names, columns->pdata[i], &at);
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "",
                               has ? (const char *)row.cells->pdata[at] : "");
    }
    g_string_append_c(text, '\n');
}

/* Text that ends in a newline; "" of no rows. Transfer full. */
static char *csv_text(JsonArray *rows) {
    g_autoptr(GPtrArray) columns = columns_of(rows);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < columns->len; i++) {
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "", (const char *)columns->pdata[i]);
    }
    if (columns->len > 0) {
        g_string_append_c(text, '\n');
    }
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        append_row(text, columns, json_array_get_object_element(rows, i));
    }
    return g_string_free(text, FALSE);
}

void cli_rows_print_csv(JsonBuilder *built, const char *rows) {
    g_autoptr(JsonNode) root = json_builder_get_root(built);
    g_autofree char *text =
        csv_text(json_object_get_array_member(json_node_get_object(root), rows));
    fputs(text, stdout);
}
