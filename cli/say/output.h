/* cli/say/output.h - what -o names: a file, or with "-" standard output.
 *
 * Where -o is given "-", the file's bytes are all that standard output gets; what a command has to
 * say beside them goes to standard error. main.c asks at the end whether standard output took all
 * of it. Options whose file comes beside what is printed (--trace, --save) take no "-", and a
 * folder or a picture, whose name says what it is, is never standard output.
 */
#pragma once

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdio.h>

bool cli_output_is_standard(const char *path); /* NULL is not */
/* Where to say what is no part of the output: stderr if that is standard output, else stdout. */
FILE *cli_output_beside(const char *path);
/* Whether it is worth working for. NULL is fine. */
bool cli_output_can_be_written(const char *path, GError **error);
/* What --json prints: all that was built, on standard output. */
void cli_output_print_json(JsonBuilder *json);
/* As trace_write_bytes(). */
bool cli_output_write(const char *path, const char *bytes, gsize length, GError **error);
