#include "models/traced/read.h"

#include <string.h>

#define MAGIC "traced-network 1"

static const struct {
    const char *word;
    unsigned least, most; /* words; most 0: any */
    int sections;         /* bits of TracedSection */
    bool (*read)(TracedReader *r);
} lines[] = {
    {"pytorch", 2, 2, IN_HEAD, traced_read_pytorch},
    {"dtype", 2, 3, IN_HEAD, traced_read_own_dtype},
    {"tokens", 2, 2, IN_HEAD, traced_read_tokens},
    {"module", 4, 5, IN_HEAD, traced_read_module},
    {"parameter", 4, 5, IN_HEAD, traced_read_parameter},
    {"buffer", 3, 5, IN_HEAD, traced_read_buffer},
    {"kept", 3, 3, IN_HEAD, traced_read_buffer},
    {"made", 2, 0, IN_HEAD, traced_read_made},
    {"trace", 3, 3, IN_HEAD | IN_DONE, traced_read_trace},
    {"copied", 2, 0, IN_TRACE, traced_read_copied},
    {"input", 3, 4, IN_TRACE, traced_read_input},
    {"kind", 5, 5, IN_TRACE | IN_KIND | IN_GIVEN, traced_read_kind},
    {"out", 5, 6, IN_KIND, traced_read_out},
    {"save", 2, 0, IN_KIND, traced_read_save},
    {"run", 4, 0, IN_KIND | IN_BACKWARD, traced_read_run},
    {"call", 2, 0, IN_KIND | IN_BACKWARD, traced_read_call},
    {"backward", 1, 1, IN_KIND, traced_read_backward},
    {"alloc", 3, 3, IN_BACKWARD, traced_read_alloc},
    {"free", 2, 2, IN_BACKWARD, traced_read_free},
    {"drop", 2, 2, IN_BACKWARD, traced_read_free},
    {"give", 1, 0, IN_BACKWARD, traced_read_give},
    {"forward", 1, 1, IN_KIND | IN_GIVEN, traced_read_forward},
    {"op", 2, 0, IN_FORWARD, traced_read_op},
    {"enter", 2, 0, IN_FORWARD, traced_read_enter},
    {"return", 1, 2, IN_FORWARD | IN_BACKWARD, traced_read_return},
    {"leave", 2, 0, IN_FORWARD, traced_read_leave},
    {"casts", 1, 1, IN_FORWARD, traced_read_casts},
    {"let", 2, 2, IN_FORWARD | IN_END, traced_read_let},
    {"end", 1, 1, IN_FORWARD, traced_read_end},
    {"sum", 3, 0, IN_END, traced_read_sum},
    {"loss", 2, 2, IN_END, traced_read_loss},
};

static bool read_line(TracedReader *r) {
    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        if (!g_str_equal(r->words[0], lines[i].word)) {
            continue;
        }
        if (!(lines[i].sections & (int)r->section)) {
            return traced_refuse(r, "'%s' does not stand here", r->words[0]);
        }
        if (r->n < lines[i].least || (lines[i].most && r->n > lines[i].most)) {
            return traced_refuse(r, "'%s' has too %s words", r->words[0],
                                 r->n < lines[i].least ? "few" : "many");
        }
        return lines[i].read(r);
    }
    return traced_refuse(r, "'%s' begins no line", r->words[0]);
}

/* Blanks between words are single, as they are written. */
static bool read_lines(TracedReader *r, const char *text) {
    g_auto(GStrv) all = g_strsplit(text, "\n", -1);
    for (char **line = all + 1; *line; line++) {
        r->line = (unsigned)(line - all) + 1;
        g_strchomp(*line);
        if (!**line || **line == '#') {
            continue;
        }
        g_auto(GStrv) words = g_strsplit(*line, " ", -1);
        r->words = words;
        r->n = g_strv_length(words);
        if (!read_line(r)) {
            return false;
        }
    }
    return r->section == IN_DONE || traced_refuse(r, "it ends before its last trace does");
}

bool model_traced_is(const char *text, gsize length) {
    return length > strlen(MAGIC) && memcmp(text, MAGIC, strlen(MAGIC)) == 0 &&
           strchr("\r\n", text[strlen(MAGIC)]);
}

/* What a plan of it says of its modules is read again as text. */
static bool is_text(TracedReader *r, const char *text, gsize length) {
    const char *bad;
    if (g_utf8_validate_len(text, length, &bad)) {
        return true;
    }
    for (const char *c = text; c < bad; c++) {
        r->line += *c == '\n';
    }
    return traced_refuse(r, "this is not text (a byte that is not UTF-8, or a NUL)");
}

ModelTraced *model_traced_read(const char *text, gsize length, const char *file_name,
                               GError **error) {
    g_autoptr(ModelTraced) traced = g_new0(ModelTraced, 1);
    traced->modules = g_array_new(FALSE, FALSE, sizeof(ModelTracedModule));
    traced->tensors = g_array_new(FALSE, FALSE, sizeof(ModelTracedTensor));
    traced->bodies = g_array_new(FALSE, FALSE, sizeof(ModelTracedBody));
    traced->made = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    traced->strings = g_string_chunk_new(4096);
    traced->tokens = 1;
    g_autofree char *own = g_strndup(text, length);
    TracedReader r = {.traced = traced,
                      .section = IN_HEAD,
                      .file_name = file_name,
                      .line = 1,
                      .values = g_array_new(FALSE, FALSE, sizeof(TracedValue)),
                      .inside = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                      .freed = g_array_new(FALSE, TRUE, sizeof(bool)),
                      .dropped = g_array_new(FALSE, TRUE, sizeof(bool)),
                      .error = error};
    bool is_sound = is_text(&r, text, length) && read_lines(&r, own);
    g_array_unref(r.values);
    g_array_unref(r.inside);
    g_array_unref(r.freed);
    g_array_unref(r.dropped);
    return is_sound ? g_steal_pointer(&traced) : NULL;
}

void model_traced_free(ModelTraced *traced) {
    if (!traced) {
        return;
    }
    for (uint32_t i = 0; i < traced->bodies->len; i++) {
        const ModelTracedBody *body = plan_graph_at(traced->bodies, ModelTracedBody, i);
        plan_traced_free(body->program);
        g_array_unref(body->inputs);
    }
    g_array_unref(traced->modules);
    g_array_unref(traced->tensors);
    g_array_unref(traced->bodies);
    g_array_unref(traced->made);
    g_string_chunk_free(traced->strings);
    g_free(traced->pytorch);
    g_free(traced);
}
