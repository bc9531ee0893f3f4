#include "trace/import/slices.h"

#include <string.h>

#include "trace/trace.h"

#define EVENTS "traceEvents"

typedef struct {
    const char *begin, *at, *end, *file_name;
    bool into_events;
    JsonSliceEach each;
    gpointer data;
    GError **error;
} Walk;

static bool fail(const Walk *walk, const char *what) {
    g_set_error(walk->error, TRACE_ERROR, TRACE_ERROR_SYNTAX, "%s: byte %" G_GSIZE_FORMAT ": %s",
                walk->file_name, (gsize)(walk->at - walk->begin), what);
    return false;
}

static bool fail_cut(const Walk *walk) {
    g_set_error(walk->error, TRACE_ERROR, TRACE_ERROR_CUT,
                "%s: byte %" G_GSIZE_FORMAT ": the JSON ends here, and is not complete; was the "
                "run stopped while it was written?",
                walk->file_name, (gsize)(walk->end - walk->begin));
    return false;
}

static void skip_space(Walk *walk) {
    while (walk->at < walk->end && g_ascii_isspace(*walk->at)) {
        walk->at++;
    }
}

/* The next character that is no space; 0: the text ends, or has a zero, and the error is set. */
static char peek(Walk *walk) {
    skip_space(walk);
    if (walk->at == walk->end) {
        fail_cut(walk);
        return 0;
    }
    if (*walk->at == 0) {
        fail(walk, "a byte of zero");
    }
    return *walk->at;
}

static bool take(Walk *walk, char wanted, const char *what) {
    char c = peek(walk);
    if (c != 0 && c != wanted) {
        return fail(walk, what);
    }
    walk->at += c != 0;
    return c != 0;
}

/* Behind a string's closing quote. */
static bool skip_string(Walk *walk) {
    const char *at = walk->at + 1;
    while (at < walk->end && *at != '"') {
        at += *at == '\\' ? 2 : 1;
    }
    if (at >= walk->end) {
        return fail_cut(walk);
    }
    walk->at = at + 1;
    return true;
}

static bool skip_brackets(Walk *walk) {
    gsize depth = 0;
    while (walk->at < walk->end) {
        char c = *walk->at;
        if (c == '"') {
            if (!skip_string(walk)) {
                return false;
            }
            continue;
        }
        walk->at++;
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0) {
            return true;
        }
    }
    return fail_cut(walk);
}

static bool skip_value(Walk *walk) {
    char c = peek(walk);
    if (c == '{' || c == '[') {
        return skip_brackets(walk);
    }
    if (c == '"') {
        return skip_string(walk);
    }
    const char *begin = walk->at;
    while (walk->at < walk->end && !strchr(",]} \t\r\n", *walk->at)) {
        walk->at++;
    }
    return c != 0 && (walk->at > begin || c == ',' || c == '}' || fail(walk, "a value is missing"));
}

static bool hand_on(Walk *walk, const char *name, gsize name_length) {
    if (peek(walk) == 0) {
        return false;
    }
    const char *begin = walk->at;
    return skip_value(walk) &&
           walk->each(name, name_length, begin, (gsize)(walk->at - begin), walk->data, walk->error);
}

/* After an element: whether another follows. The closing bracket is taken. */
static bool goes_on(Walk *walk, char closing, bool *ret_more) {
    char c = peek(walk);
    if (c != ',' && c != closing) {
        return c != 0 && fail(walk, "a comma is missing, or a bracket");
    }
    walk->at++;
    *ret_more = c == ',';
    return true;
}

/* Events may have a comma behind the last. */
static bool walk_events(Walk *walk) {
    bool more = true;
    if (!take(walk, '[', "the events (" EVENTS ") are a list")) {
        return false;
    }
    while (more) {
        char c = peek(walk);
        if (c == 0) {
            return false;
        }
        if (c == ']') {
            walk->at++;
            return true;
        }
        if (!hand_on(walk, EVENTS, strlen(EVENTS)) || !goes_on(walk, ']', &more)) {
            return false;
        }
    }
    return true;
}

static bool walk_member(Walk *walk) {
    char c = peek(walk);
    if (c != '"') {
        return c != 0 && fail(walk, "a member's name is missing");
    }
    const char *name = walk->at + 1;
    if (!skip_string(walk)) {
        return false;
    }
    gsize length = (gsize)(walk->at - 1 - name);
    if (!take(walk, ':', "a colon is missing")) {
        return false;
    }
    return walk->into_events && json_slice_is(name, length, EVENTS) ? walk_events(walk)
                                                                    : hand_on(walk, name, length);
}

static bool walk_object(Walk *walk) {
    bool more = true;
    walk->at++;
    char c = peek(walk);
    if (c == '}' || c == 0) {
        walk->at += c != 0;
        return c != 0;
    }
    while (more) {
        if (!walk_member(walk) || !goes_on(walk, '}', &more)) {
            return false;
        }
    }
    return true;
}

bool json_slice_is(const char *name, gsize length, const char *wanted) {
    return length == strlen(wanted) && memcmp(name, wanted, length) == 0;
}

bool json_slices(const char *text, gsize length, const char *file_name, JsonSliceEach each,
                 gpointer data, GError **error) {
    Walk walk = {text, text, text + length, file_name, false, each, data, error};
    char c = peek(&walk);
    return c == '{' ? walk_object(&walk) : c != 0 && fail(&walk, "no object");
}

bool json_slices_of_events(const char *text, gsize length, const char *file_name,
                           JsonSliceEach each, gpointer data, GError **error) {
    Walk walk = {text, text, text + length, file_name, true, each, data, error};
    char c = peek(&walk);
    if (c == '[') {
        return walk_events(&walk);
    }
    return c == '{' ? walk_object(&walk) : c != 0 && fail(&walk, "neither an object nor a list");
}
