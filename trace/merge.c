/* trace/merge.c - the traces that the ranks of one play have left, as one. */
#include "trace/trace.h"

static bool same_names(const GPtrArray *a, const GPtrArray *b) {
    if (a->len != b->len) {
        return false;
    }
    for (guint i = 0; i < a->len; i++) {
        if (!g_str_equal(a->pdata[i], b->pdata[i])) {
            return false;
        }
    }
    return true;
}

static bool same_kinds(const Trace *a, const Trace *b) {
    if (a->kinds->len != b->kinds->len) {
        return false;
    }
    for (guint i = 0; i < a->kinds->len; i++) {
        const TraceKind *x = trace_kind(a, i), *y = trace_kind(b, i);
        if (!g_str_equal(x->name, y->name) || x->kind_class != y->kind_class) {
            return false;
        }
    }
    return true;
}

static bool same_instruction(const TraceInstruction *a, const TraceInstruction *b) {
    return a->what == b->what && a->section == b->section && a->lane == b->lane &&
           a->phase == b->phase && a->index == b->index && a->kind == b->kind &&
           a->unit == b->unit && a->module == b->module && a->category == b->category &&
           a->buffer == b->buffer && a->bytes == b->bytes;
}

static bool same_roles(const Trace *a, const Trace *b) {
    if (a->roles->len != b->roles->len) {
        return false;
    }
    for (guint i = 0; i < a->roles->len; i++) {
        GArray *x = trace_instructions(a, i), *y = trace_instructions(b, i);
        bool same = x->len == y->len;
        for (guint k = 0; same && k < x->len; k++) {
            same = same_instruction(trace_instruction(a, i, k), trace_instruction(b, i, k));
        }
        if (!same) {
            return false;
        }
    }
    return true;
}

const char *trace_differing_table(const Trace *a, const Trace *b) {
    if (!same_names(a->lanes, b->lanes)) {
        return "lanes";
    }
    if (!same_names(a->units, b->units)) {
        return "units";
    }
    if (!same_names(a->phases, b->phases)) {
        return "phases";
    }
    if (!same_names(a->categories, b->categories)) {
        return "categories";
    }
    if (!same_names(a->modules, b->modules)) {
        return "modules";
    }
    if (!same_kinds(a, b)) {
        return "kinds";
    }
    return same_roles(a, b) ? NULL : "roles";
}

bool trace_merge(Trace *trace, const Trace *other, GError **error) {
    const char *digest = trace_get(trace, "digest"), *other_digest = trace_get(other, "digest");
    if (g_strcmp0(digest, other_digest) != 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "traces of different plans (%s and %s) cannot be merged",
                    digest != NULL ? digest : "no digest",
                    other_digest != NULL ? other_digest : "no digest");
        return false;
    }
    const char *table = trace_differing_table(trace, other);
    if (table != NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "traces cannot be merged: their tables of %s differ", table);
        return false;
    }
    for (guint i = 0; i < other->ranks->len; i++) {
        uint32_t rank = g_array_index(other->ranks, TraceRank, i).rank;
        if (trace_role_of_rank(trace, rank) != TRACE_NONE) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                        "traces cannot be merged: both hold rank %u", rank);
            return false;
        }
    }
    if (other->ranks->len > 0) {
        g_array_append_vals(trace->ranks, other->ranks->data, other->ranks->len);
    }
    if (other->ops->len > 0) {
        g_array_append_vals(trace->ops, other->ops->data, other->ops->len);
    }
    if (other->memory->len > 0) {
        g_array_append_vals(trace->memory, other->memory->data, other->memory->len);
    }
    for (guint i = 0; i < other->keys->len; i++) {
        if (trace_get(trace, other->keys->pdata[i]) == NULL) {
            trace_set(trace, other->keys->pdata[i], other->values->pdata[i]);
        }
    }
    return true;
}
