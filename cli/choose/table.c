#include "cli/choose/table.h"

#include <string.h>

#include "cli/say/prose.h"

enum {
    NOTE_BELOW = 5 /* columns */
};

void cli_table_add_cell(CliTable *table, char *cell) {
    g_ptr_array_add(table->cells, cell);
}

void cli_table_add_head(CliTable *table, const char *name, bool is_words) {
    if (table->n_columns < CLI_TABLE_MOST_COLUMNS) {
        g_auto(GStrv) lines = g_strsplit(name, "\n", 2);
        bool has_second = lines[0] != NULL && lines[1] != NULL;
        g_ptr_array_insert(table->cells, (gint)table->n_columns,
                           g_strdup(lines[0] != NULL ? lines[0] : ""));
        table->left[table->n_columns++] = is_words;
        cli_table_add_cell(table, g_strdup(has_second ? lines[1] : ""));
    }
}

static guint width_of(const CliTable *table, guint column) {
    gsize width = 0;
    for (guint i = column; i < table->cells->len; i += table->n_columns) {
        width = MAX(width, strlen(table->cells->pdata[i]));
    }
    return (guint)width;
}

bool cli_table_is_too_wide(const CliTable *table, guint gap) {
    guint width = 2;
    for (guint column = 0; column + 1 < table->n_columns; column++) {
        width += (column > 0 ? gap : 0) + width_of(table, column);
    }
    return width > table->width;
}

static void append_note(GString *text, gsize row, const CliTable *table, const char *note,
                        guint gap) {
    bool has_room = text->len - row + gap + strlen(note) <= table->width;
    if (*note != '\0' && (table->notes_below || !has_room)) {
        g_string_append_printf(text, "\n%*s%s", NOTE_BELOW, "", note);
    } else if (*note != '\0') {
        g_string_append_printf(text, "%*s%s", (int)gap, "", note);
    }
    while (text->str[text->len - 1] == ' ') {
        g_string_truncate(text, text->len - 1);
    }
    g_string_append_c(text, '\n');
}

void cli_table_append(GString *text, const CliTable *table) {
    guint n = table->n_columns, gap = cli_table_is_too_wide(table, 2) ? 1 : 2;
    gsize row = text->len;
    for (guint i = 0; i < table->cells->len; i++) {
        guint column = i % n;
        const char *cell = table->cells->pdata[i];
        if (column + 1 == n) {
            append_note(text, row, table, cell, gap);
            row = text->len;
            continue;
        }
        int width = (int)width_of(table, column);
        g_string_append_printf(text, "%*s%*s", (int)(column > 0 ? gap : 2), "",
                               table->left[column] ? -width : width, cell);
    }
}
