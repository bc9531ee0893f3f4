/* cli/say/rows-csv.h - rows for a spreadsheet: what --csv prints.
 *
 * The rows are the objects of one array of what --json prints, so both have the same names and
 * numbers. A column is a member, in the order in which rows first have it; a member of an object
 * within is called parent.member. A row that lacks a member has an empty cell. What is no single
 * cell is left out: arrays, and text of several lines (a strategy's file). Quoted as RFC 4180 has
 * it, but lines end as elsewhere here; numbers have a point and no thousands, whatever the locale.
 *
 * Owns: nothing.
 */
#pragma once

#include <json-glib/json-glib.h>

#define CLI_ROWS_CSV_OR_JSON "--json and --csv are two forms; leave one of them away"

/* built: an object that is complete; rows: the name of its array. Prints on standard output. */
void cli_rows_print_csv(JsonBuilder *built, const char *rows);
