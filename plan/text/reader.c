#include "plan/text/reader-private.h"

#include <string.h>

#include "plan/files/file.h"
#include "plan/files/ini.h"

void plan_reader_init(PlanReader *r) {
    r->texts = g_hash_table_new(g_str_hash, g_str_equal);
    r->lanes = g_hash_table_new(g_str_hash, g_str_equal);
    r->buffers = g_array_new(FALSE, FALSE, sizeof(PlanBuffer));
    r->ops = g_array_new(FALSE, FALSE, sizeof(PlanOp));
    r->operands = g_array_new(FALSE, FALSE, sizeof(PlanRef));
    r->parts = g_array_new(FALSE, FALSE, sizeof(PlanOperand));
    r->dims = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r->attrs = g_array_new(FALSE, FALSE, sizeof(double));
    r->loss_ops = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

void plan_reader_clear(PlanReader *r) {
    g_hash_table_unref(r->texts);
    g_hash_table_unref(r->lanes);
    GArray *arrays[] = {r->buffers, r->ops, r->operands, r->parts, r->dims, r->attrs, r->loss_ops};
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_array_unref(arrays[i]);
    }
}

bool plan_reader_fail(PlanReader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(r->error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s:%u: %s%s", r->file_name, r->number,
                message, r->unended ? " (the file ends in this line: it is cut short)" : "");
    return false;
}

void plan_reader_next_line(PlanReader *r) {
    r->number++;
    if (!*r->rest) {
        r->line = NULL;
        return;
    }
    r->line = r->cursor = r->rest;
    char *end = strchr(r->rest, '\n');
    if (end) {
        *end = 0;
        r->rest = end + 1;
    } else {
        r->rest += strlen(r->rest);
        r->unended = true;
    }
}

/* The next word of the line, or NULL. */
char *plan_reader_word(PlanReader *r) {
    while (*r->cursor == ' ') {
        r->cursor++;
    }
    if (!*r->cursor) {
        return NULL;
    }
    char *start = r->cursor;
    while (*r->cursor && *r->cursor != ' ') {
        r->cursor++;
    }
    if (*r->cursor) {
        *r->cursor++ = 0;
    }
    return start;
}

bool plan_reader_need_line(PlanReader *r, const char *what) {
    if (!r->line) {
        r->unended = false; /* said once is enough */
        return plan_reader_fail(r, "the file ends where %s should stand; it is cut short", what);
    }
    return true;
}

bool plan_reader_end_of_line(PlanReader *r) {
    char *extra = plan_reader_word(r);
    if (extra) {
        return plan_reader_fail(r, "'%s' is too much on this line", extra);
    }
    plan_reader_next_line(r);
    return true;
}

bool plan_reader_expect(PlanReader *r, const char *keyword) {
    if (!plan_reader_need_line(r, keyword)) {
        return false;
    }
    char *w = plan_reader_word(r);
    if (!w || !g_str_equal(w, keyword)) {
        return plan_reader_fail(r, "expected '%s', not '%s'", keyword, w ? w : "");
    }
    return true;
}

bool plan_reader_skip(PlanReader *r, const char *word) {
    gsize n = strlen(word);
    r->cursor += strspn(r->cursor, " ");
    if (strncmp(r->cursor, word, n) != 0 || (r->cursor[n] && r->cursor[n] != ' ')) {
        return false;
    }
    r->cursor += n;
    return true;
}

bool plan_reader_number(PlanReader *r, const char *what, uint64_t max, uint64_t *ret) {
    char *w = plan_reader_word(r);
    if (!w || !plan_parse_u64(w, ret) || *ret > max) {
        return plan_reader_fail(r,
                                "%s must be a whole number up to %" G_GUINT64_FORMAT ", not '%s'",
                                what, max, w ? w : "");
    }
    return true;
}

bool plan_reader_rows(PlanReader *r, uint64_t most, uint64_t *ret_n) {
    return plan_reader_number(r, "their number", most, ret_n) && plan_reader_end_of_line(r);
}

bool plan_reader_table(PlanReader *r, const char *title, uint64_t most, uint64_t *ret_n) {
    return plan_reader_expect(r, title) && plan_reader_rows(r, most, ret_n);
}

/* "x12" with x the letter, below limit; "-" is PLAN_NONE where that may be. */
bool plan_reader_id(PlanReader *r, const char *w, char letter, uint32_t limit, bool may_be_none,
                    uint32_t *ret) {
    uint64_t id;
    if (w && may_be_none && g_str_equal(w, "-")) {
        *ret = PLAN_NONE;
        return true;
    }
    if (!w || *w != letter || !plan_parse_u64(w + 1, &id) || id >= limit) {
        return plan_reader_fail(r, "expected %c0 to %c%u%s, not '%s'", letter, letter,
                                limit ? limit - 1 : 0, may_be_none ? " or -" : "", w ? w : "");
    }
    *ret = (uint32_t)id;
    return true;
}

/* The number a table row begins with must be its own. */
bool plan_reader_row_id(PlanReader *r, char letter, uint32_t id) {
    uint32_t found = 0;
    if (!plan_reader_need_line(r, "a row of a table")) {
        return false;
    }
    if (!plan_reader_id(r, plan_reader_word(r), letter, PLAN_READER_MAX_IDS, false, &found)) {
        return false;
    }
    return found == id ||
           plan_reader_fail(r, "row %c%u stands where %c%u should", letter, found, letter, id);
}

const char *plan_reader_keep(PlanReader *r, const char *text) {
    const char *kept = g_hash_table_lookup(r->texts, text);
    if (!kept) {
        kept = plan_arena_text(r->plan->arena, text);
        g_hash_table_add(r->texts, (gpointer)kept);
    }
    return kept;
}

gpointer plan_reader_take(PlanReader *r, GArray *array, uint32_t *ret_n) {
    gsize bytes = (gsize)array->len * g_array_get_element_size(array);
    gpointer taken = plan_arena_copy(r->plan->arena, array->data, bytes);
    *ret_n = array->len;
    g_array_set_size(array, 0);
    return taken;
}

bool plan_reader_name(PlanReader *r, const char **ret) {
    char *w = plan_reader_word(r);
    if (!w) {
        return plan_reader_fail(r, "a name is missing");
    }
    if (plan_has_control(w)) {
        return plan_reader_fail(r, "a name has a control character; take it away");
    }
    *ret = plan_reader_keep(r, w);
    return true;
}

bool plan_reader_lane(PlanReader *r, const char *w, uint8_t *ret) {
    guint known = w ? GPOINTER_TO_UINT(g_hash_table_lookup(r->lanes, w)) : 0;
    if (!known) {
        return plan_reader_fail(r, "'%s' is no lane of this plan", w ? w : "");
    }
    *ret = (uint8_t)(known - 1);
    return true;
}

bool plan_reader_dtype(PlanReader *r, uint8_t *ret) {
    char *w = plan_reader_word(r);
    PlanDtype dtype;
    if (!w || !plan_dtype_parse(w, &dtype)) {
        g_autoptr(GString) names = g_string_new(NULL);
        for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
            g_string_append_printf(names, "%s%s", i ? ", " : "", plan_dtype_name((PlanDtype)i));
        }
        return plan_reader_fail(r, "'%s' is no dtype; they are %s", w ? w : "", names->str);
    }
    *ret = (uint8_t)dtype;
    return true;
}
