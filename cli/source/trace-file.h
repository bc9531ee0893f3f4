/* cli/source/trace-file.h - a trace by its file, and what to do with one that PyTorch recorded.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include "trace/trace.h"

/* trace_read_file(), which of a file that PyTorch recorded says what reads that. Transfer full. */
Trace *cli_trace_read(const char *path, GError **error);
/* Refuses a snapshot, or what gzip packed, where a plan or network may stand as well. */
bool cli_trace_is_no_snapshot(const char *path, GError **error);
