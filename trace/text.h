/* trace/text.h - the text form of a trace: written, read back.
 *
 * Canonical: the same content gives the same bytes, whatever the order in which ranks, rows of
 * different ranks and header keys were added. The form itself is described in trace/README.md.
 */
#pragma once

#include "trace/trace.h"

/* The whole file; NULL when trace_check() finds a fault. */
GString *trace_text(const Trace *trace, GError **error);
bool trace_write_file(const Trace *trace, const char *path, GError **error);

/* file_name stands in messages: "FILE:LINE: what is wrong; what to do". */
Trace *trace_read(const char *text, gsize length, const char *file_name, GError **error);
Trace *trace_read_file(const char *path, GError **error);
/* Whether a file can be read and its first line says that it is a trace, of whatever version. */
bool trace_is_file(const char *path);
