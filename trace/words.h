/* trace/words.h - the text of a trace line by line, and a line word by word.
 *
 * Inside trace/ only, for read.c. A word is followed by one space, which is taken with it, or by
 * the end of the line. Takes only what the writer would write: no sign, zero, space or escape that
 * it would not.
 *
 * Borrows: text and file name. Errors name file and line.
 */
#pragma once

#include "trace/trace.h"

typedef struct {
    const char *file_name;
    const char *next, *end; /* of the text that is left */
    const char *line;       /* the line at hand, and how far it is read */
    const char *line_end;
    guint line_number;
    GError **error;
} TraceWords;

/* False, so that a reader can return it. */
bool trace_words_complain(TraceWords *words, TraceError code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Fails where the text ends: it is cut short, for an end line is looked for before that. */
bool trace_words_next_line(TraceWords *words);
bool trace_words_take(TraceWords *words, const char *word); /* false, no error: it is another */
bool trace_words_expect(TraceWords *words, const char *word);
bool trace_words_expect_end(TraceWords *words); /* of the line */
bool trace_words_take_int(TraceWords *words, int64_t min, int64_t max, int64_t *ret_value);
bool trace_words_take_uint32(TraceWords *words, uint32_t *ret_value);
bool trace_words_take_index(TraceWords *words, uint32_t *ret_index); /* "-": TRACE_NONE */
bool trace_words_take_name(TraceWords *words, GString *ret_name);    /* the rest of the line */
