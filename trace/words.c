#include "trace/words.h"

#include <string.h>

bool trace_words_complain(TraceWords *words, TraceError code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(words->error, TRACE_ERROR, code, "%s:%u: %s", words->file_name, words->line_number,
                message);
    return false;
}

bool trace_words_next_line(TraceWords *words) {
    words->line_number++;
    const char *newline = NULL;
    if (words->next < words->end) {
        newline = memchr(words->next, '\n', (gsize)(words->end - words->next));
    }
    if (newline == NULL) {
        return trace_words_complain(
            words, TRACE_ERROR_CUT,
            "the trace is cut short: its end line is missing; record it again");
    }
    words->line = words->next;
    words->line_end = newline;
    words->next = newline + 1;
    return true;
}

/* The word is there and is followed by a space (which is taken too) or by the end of the line. */
bool trace_words_take(TraceWords *words, const char *word) {
    gsize length = strlen(word);
    if ((gsize)(words->line_end - words->line) < length || memcmp(words->line, word, length) != 0) {
        return false;
    }
    const char *after = words->line + length;
    if (after < words->line_end && *after != ' ') {
        return false;
    }
    words->line = after < words->line_end ? after + 1 : after;
    return true;
}

bool trace_words_expect(TraceWords *words, const char *word) {
    return trace_words_take(words, word) ||
           trace_words_complain(words, TRACE_ERROR_SYNTAX, "\"%s\" should stand here", word);
}

bool trace_words_expect_end(TraceWords *words) {
    /* A number's space is taken with it, so a space before the newline shows here. */
    return (words->line == words->line_end && words->line_end[-1] != ' ') ||
           trace_words_complain(words, TRACE_ERROR_SYNTAX, "the line should end here");
}

/* A number as append_int() writes it, from min to max. */
bool trace_words_take_int(TraceWords *words, int64_t min, int64_t max, int64_t *ret_value) {
    const char *at = words->line;
    bool negative = at < words->line_end && *at == '-';
    at += negative;
    const char *digits = at;
    int64_t value = 0;
    while (at < words->line_end && g_ascii_isdigit(*at)) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value)) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a number is too large");
        }
        at++;
    }
    if (at == digits || (*digits == '0' && (at - digits > 1 || negative)) ||
        (at < words->line_end && *at != ' ')) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a whole number should stand here");
    }
    value = negative ? -value : value;
    if (value < min || value > max) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                    "%" G_GINT64_FORMAT " stands where %" G_GINT64_FORMAT
                                    " to %" G_GINT64_FORMAT " is possible",
                                    (gint64)value, (gint64)min, (gint64)max);
    }
    words->line = at < words->line_end ? at + 1 : at;
    *ret_value = value;
    return true;
}

bool trace_words_take_uint32(TraceWords *words, uint32_t *ret_value) {
    int64_t value;
    if (!trace_words_take_int(words, 0, (int64_t)TRACE_NONE - 1, &value)) {
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

bool trace_words_take_index(TraceWords *words, uint32_t *ret_index) {
    if (trace_words_take(words, "-")) {
        *ret_index = TRACE_NONE;
        return true;
    }
    return trace_words_take_uint32(words, ret_index);
}

bool trace_words_take_name(TraceWords *words, GString *ret_name) {
    g_string_truncate(ret_name, 0);
    if (words->line_end - words->line == 2 && memcmp(words->line, "\"\"", 2) == 0) {
        words->line = words->line_end;
        return true;
    }
    if (words->line == words->line_end) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a name is missing");
    }
    while (words->line < words->line_end) {
        char c = *words->line++;
        if (c == '\\') {
            char escaped = words->line < words->line_end ? *words->line++ : '\0';
            switch (escaped) {
            case 'n':
                c = '\n';
                break;
            case 'r':
                c = '\r';
                break;
            case '\\':
            case '"':
                c = escaped;
                break;
            default:
                return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                            "a \\ begins no known character");
            }
        } else if (c == '"' || (g_ascii_iscntrl(c) && c != '\t')) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                        "a name holds a forbidden character");
        }
        g_string_append_c(ret_name, c);
    }
    if (!g_utf8_validate(ret_name->str, (gssize)ret_name->len, NULL)) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a name is not UTF-8");
    }
    return true;
}
