/* models/traced/calls.c - what a kernel computes: words that are cut into texts, counts that may
 * grow with the samples, and names of tensors. What the words mean is for who computes it. */
#include <string.h>

#include "models/traced/read.h"

enum {
    MOST_PIECES = 1 << 24 /* of a trace */
};

static void add_piece(TracedReader *r, PlanTracedPiece piece) {
    g_array_append_val(r->program->pieces, piece);
}

static void add_text(TracedReader *r, const char *from, const char *end) {
    if (end > from) {
        g_autofree char *text = g_strndup(from, (gsize)(end - from));
        add_piece(r, (PlanTracedPiece){.of = PLAN_TRACED_TEXT, .text = g_intern_string(text)});
    }
}

/* A letter and a number before a slash; its length, 0: it is no tensor. */
static gsize tensor_at(const char *at) {
    gsize digits = strspn(at + 1, "0123456789");
    return g_ascii_isalpha(*at) && digits && at[1 + digits] == '/' ? 1 + digits : 0;
}

/* A number that grows with n, such as 12n or 12n+3; its length, 0: it is none. */
static gsize count_at(const char *at) {
    gsize digits = strspn(at, "0123456789");
    if (!digits || at[digits] != 'n') {
        return 0;
    }
    gsize sign = at[digits + 1] == '+' || at[digits + 1] == '-';
    gsize more = sign ? strspn(at + digits + 2, "0123456789") : 0;
    return digits + 1 + (more ? 1 + more : 0);
}

static bool sum_ref(const TracedReader *r, const char *name, PlanTracedRef *ret_ref) {
    bool is_read = g_str_equal(name, "x0") || g_str_equal(name, "x1");
    *ret_ref =
        (PlanTracedRef){is_read ? PLAN_TRACED_INPUT : PLAN_TRACED_OUTPUT, g_str_equal(name, "x1")};
    return is_read || g_str_equal(name, "y0") || traced_refuse(r, "'%s' is not x0, x1 or y0", name);
}

static bool read_word(TracedReader *r, const char *word, bool is_sum) {
    const char *from = word, *at = word;
    while (*at) {
        bool begins = at == word || at[-1] == '[' || at[-1] == ';';
        gsize tensor = begins ? tensor_at(at) : 0;
        gsize count = at == word || !g_ascii_isalnum(at[-1]) ? count_at(at) : 0;
        if (!tensor && !count) {
            at++;
            continue;
        }
        PlanTracedPiece piece = {.of = tensor ? PLAN_TRACED_TENSOR : PLAN_TRACED_NUMBER};
        g_autofree char *own = g_strndup(at, tensor + count);
        if (tensor ? !(is_sum ? sum_ref : traced_ref)(r, own, &piece.ref)
                   : !traced_count(r, own, &piece.count)) {
            return false;
        }
        add_text(r, from, at);
        add_piece(r, piece);
        from = at += tensor + count;
    }
    add_text(r, from, at);
    return true;
}

bool traced_call_from(TracedReader *r, unsigned first_word, bool is_sum, PlanTracedCall *ret_call) {
    ret_call->first = r->program->pieces->len;
    for (unsigned i = first_word; i < r->n; i++) {
        if (i > first_word) {
            add_piece(r, (PlanTracedPiece){.of = PLAN_TRACED_TEXT, .text = " "});
        }
        if (!read_word(r, r->words[i], is_sum)) {
            return false;
        }
    }
    ret_call->n = r->program->pieces->len - ret_call->first;
    return r->program->pieces->len <= MOST_PIECES || traced_refuse(r, "its calls are too many");
}
