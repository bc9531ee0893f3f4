/* trace/read-private.h - what the two halves of the reader share: read.c has header and tables,
 * read-rows.c the rows. */
#pragma once

#include "trace/trace.h"
#include "trace/words.h"

typedef struct {
    TraceWords words;
    Trace *trace;
} TraceReader;

/* Complains of a fault, which it takes, with the line at hand: trace_check() would find it too. */
static inline bool trace_reader_place(TraceReader *reader, GError *fault) {
    g_autoptr(GError) owned = fault;
    return trace_words_complain(&reader->words, TRACE_ERROR_SYNTAX, "%s", owned->message);
}
/* Up to and with the end line. */
bool trace_reader_take_rows(TraceReader *reader);
