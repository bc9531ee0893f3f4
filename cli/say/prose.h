/* cli/say/prose.h - sentences that fit: a line of output is at most CLI_COLUMNS wide, so that the
 * same input prints the same bytes in any file or pipe; on a narrower terminal sentences are as
 * wide as that, and rows of a table (two gaps or more) are left for the terminal to fold (those of
 * choose fit, cli/choose/table.h).
 *
 * A longer line is broken at a space and goes on further in: below what stands behind its last gap
 * in the first 40 columns, as in a row "name   what it is", else two columns behind where it began.
 * Neither a figure and its unit ("1.25 GiB", "80 %") nor an option and its value ("--spread 1") are
 * parted. A word that is longer than a line stays whole. JSON, CSV and files are not touched.
 *
 * Owns: nothing. Cost: a copy of the text.
 */
#pragma once

#include <glib.h>
#include <stdio.h>

enum {
    CLI_COLUMNS = 100 /* a longer line is hard to read, on however wide a terminal */
};

/* Of UTF-8 without wide letters: one a letter. */
gsize cli_prose_width(const char *text, gsize bytes);

/* Of the terminal that a file descriptor is, CLI_COLUMNS at most; of anything else CLI_COLUMNS. */
gsize cli_prose_columns(int terminal);

/* One line without its end, broken: its first `kept` bytes as they are, other lines from column
 * `from` on. */
void cli_prose_break(GString *fit, const char *line, gsize kept, gsize from, gsize columns);

/* Any number of lines, those that are too long broken. */
char *cli_prose_fit(const char *text);

/* Any number of lines to a file or a terminal, as wide as that. */
void cli_prose_print_to(FILE *to, const char *text);

/* The same to standard output. */
void cli_prose_print(const char *text);

/* As printf, of whole lines. */
void cli_say(const char *format, ...) G_GNUC_PRINTF(1, 2);
