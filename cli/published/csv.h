/* cli/published/csv.h - tables of published measurements: comma-separated text with a header line.
 *
 * Fields may stand in double quotes, hold commas and line ends there, and say "" for a quote. A
 * whole number outside of quotes loses its ".0". Every row keeps the line it begins on, for
 * messages.
 *
 * Owns: all strings. Threads: const after reading, so any number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define CLI_CSV_ERROR (cli_csv_error_quark())
GQuark cli_csv_error_quark(void);

typedef enum {
    CLI_CSV_ERROR_FORMAT, /* "FILE:LINE: what is wrong; what to do" */
} CliCsvError;

typedef struct {
    unsigned line;
    guint hash;    /* of the line's text */
    char **fields; /* as many as there are columns */
} CliCsvRow;

typedef struct {
    char *path;
    char *name; /* the path's last part */
    char **columns;
    CliCsvRow *rows;
    unsigned n_rows;
} CliCsv;

CliCsv *cli_csv_read(const char *path, GError **error);
void cli_csv_free(CliCsv *csv); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliCsv, cli_csv_free)

bool cli_csv_has(const CliCsv *csv, const char *column);
/* The field's text; "" where there is no such column. */
const char *cli_csv_text(const CliCsv *csv, const CliCsvRow *row, const char *column);
/* An empty field is NAN; other text than a number, or one below 0, is an error. */
bool cli_csv_number(const CliCsv *csv, const CliCsvRow *row, const char *column, double *ret_value,
                    GError **error);
/* NAN where that is empty, or no number. */
double cli_csv_known(const CliCsv *csv, const CliCsvRow *row, const char *column);
/* Columns that are known ones but for blanks, dashes and capitals get their names; refuses two that
 * become one. */
bool cli_csv_spell_columns(CliCsv *csv, const char *const *known, GError **error);
/* Refuses a column that is not among the known ones, and the lack of one that is needed (each list
 * with a NULL at its end). */
bool cli_csv_check_columns(const CliCsv *csv, const char *const *known, const char *const *needed,
                           GError **error);

/* Adds those of these columns (a list with a NULL at its end) that it lacks, with empty fields. */
void cli_csv_add_columns(CliCsv *csv, const char *const *columns);

/* Sets "FILE:LINE: message" and returns false. */
bool cli_csv_refuse(const CliCsv *csv, unsigned line, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
