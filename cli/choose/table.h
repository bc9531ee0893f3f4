/* cli/choose/table.h - a table whose last column is a note, below its row where it finds no room.
 *
 * Columns are as wide as their widest cell, and nearer to one another where they would not fit.
 * Cells are added row by row; a head is two rows.
 *
 * Borrows: the array of cells, which owns them.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum {
    CLI_TABLE_MOST_COLUMNS = 32
};

typedef struct {
    GPtrArray *cells; /* rows of n_columns; the first two are the head */
    gsize width;      /* of what it is printed on, in columns */
    guint n_columns;
    bool left[CLI_TABLE_MOST_COLUMNS]; /* a column of words */
    bool notes_below;                  /* of every row */
} CliTable;

/* name: on two lines where they are in it. Heads come before cells. */
void cli_table_add_head(CliTable *table, const char *name, bool is_words);
void cli_table_add_cell(CliTable *table, char *cell); /* takes it */
/* Without notes, which may go below their rows. gap: between columns. */
bool cli_table_is_too_wide(const CliTable *table, guint gap);
void cli_table_append(GString *text, const CliTable *table);
