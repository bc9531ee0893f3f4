/* trace/text-private.h - the words of a trace's text form, which writer and reader share. */
#pragma once

#include "trace/trace.h"

#define TRACE_TEXT_NAME  "foreshard-trace"
#define TRACE_TEXT_MAGIC TRACE_TEXT_NAME " 2"

/* "tables lanes 2 units 3 ...": in this order, so that a reader knows what follows. */
enum {
    TRACE_TEXT_N_TABLES = 8
};
extern const char *const trace_text_table_names[TRACE_TEXT_N_TABLES];

/* The header's order: known keys as write.c lists them, then the free facts by name. */
int trace_text_compare_keys(const char *a, const char *b);
