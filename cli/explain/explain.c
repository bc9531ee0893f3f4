#include "cli/explain/explain.h"

#include <string.h>

#include "cli/explain/private.h"
#include "plan/files/nearest.h"

static void explain_allocated(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_ALLOCATED);
}

static void explain_active(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_ACTIVE);
}

static void explain_reserved(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_RESERVED);
}

static void explain_all_held(GString *text, const CliSubject *subject) {
    explain_held(text, subject, NULL);
}

static void explain_collectives(GString *text, const CliSubject *subject) {
    bool any = false;
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        if (trace_summary_has_kind(subject->summary, kind) &&
            trace_kind(subject->trace, kind)->kind_class == TRACE_KIND_COLLECTIVE) {
            explain_collective(text, subject, kind);
            any = true;
        }
    }
    g_string_append(text, any ? "" : "comm: this play has no collectives\n");
}

static const struct {
    const char *key;
    void (*explain)(GString *text, const CliSubject *subject);
} keys[] = {
    {"step_ms", explain_step},
    {"step_ms_p95", explain_step},
    {"tokens_per_s_per_gpu", explain_rate},
    {"tflops_per_gpu", explain_rate},
    {"mfu", explain_rate},
    {"kwh_per_million_tokens", explain_spending},
    {"price_per_million_tokens", explain_spending},
    {"compute_ms", explain_busy},
    {"host_ms", explain_host},
    {"bound_by", explain_idle},
    {"peak_allocated_bytes", explain_allocated},
    {"peak_active_bytes", explain_active},
    {"peak_reserved_bytes", explain_reserved},
    {"peak_at_ms", explain_allocated},
    {"peak_by_category", explain_all_held},
    {"alloc_retries", explain_retries},
    {"fits", explain_fits},
    {"allocator_bytes", explain_fits},
    {"outside_allocator_bytes", explain_fits},
    {"workspace_bytes", explain_fits},
    {"oom", explain_oom},
    {"ways_to_fit", explain_ways_to_fit},
    {"trains_well", explain_trains_well},
    {"plan_digest", explain_identity},
    {"cluster", explain_identity},
    {"comm", explain_collectives},
    {"every_rank", explain_ranks},
    {"published_errors", explain_published},
};

static uint32_t find_name(const GPtrArray *table, const char *name) {
    for (guint i = 0; i < table->len; i++) {
        if (g_str_equal(table->pdata[i], name)) {
            return i;
        }
    }
    return TRACE_NONE;
}

static uint32_t find_kind(const Trace *trace, const char *name) {
    for (guint i = 0; i < trace->kinds->len; i++) {
        if (g_str_equal(trace_kind(trace, i)->name, name)) {
            return i;
        }
    }
    return TRACE_NONE;
}

/* "oom.bytes", "every_rank.seed": parts of what is explained as a whole. */
static const char *const wholes[] = {"oom", "every_rank", "published_errors"};

static char *whole_of(const char *name) {
    for (guint i = 0; i < G_N_ELEMENTS(wholes); i++) {
        gsize length = strlen(wholes[i]);
        if (strncmp(name, wholes[i], length) == 0 && name[length] == '.') {
            return g_strdup(wholes[i]);
        }
    }
    return g_strdup(name);
}

/* "comm.all_gather", "comm.all_gather.exposed_ms". */
static bool explain_comm(GString *text, const CliSubject *subject, const char *name) {
    if (!g_str_has_prefix(name, "comm.")) {
        return false;
    }
    g_auto(GStrv) parts = g_strsplit(name, ".", 3);
    uint32_t kind = find_kind(subject->trace, parts[1]);
    if (kind == TRACE_NONE ||
        trace_kind(subject->trace, kind)->kind_class != TRACE_KIND_COLLECTIVE) {
        return false;
    }
    explain_collective(text, subject, kind);
    return true;
}

/* "peak_by_category.activations", or "activations". */
static bool explain_category(GString *text, const CliSubject *subject, const char *name) {
    static const char start[] = "peak_by_category.";
    const char *wanted = g_str_has_prefix(name, start) ? name + strlen(start) : name;
    for (guint i = 0; i < subject->trace->categories->len; i++) {
        if (trace_category_is(subject->trace, i, wanted)) {
            explain_held(text, subject, wanted);
            return true;
        }
    }
    return false;
}

static bool explain_key(GString *text, const CliSubject *subject, const char *name) {
    g_autofree char *whole = whole_of(name);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (g_str_equal(keys[i].key, whole)) {
            keys[i].explain(text, subject);
            return true;
        }
    }
    return explain_comm(text, subject, name) || explain_category(text, subject, name);
}

static bool explain_thing(GString *text, const CliSubject *subject, const char *name) {
    const Trace *trace = subject->trace;
    uint32_t unit = find_name(trace->units, name), kind = find_kind(trace, name);
    guint64 number;
    if (unit != TRACE_NONE) {
        explain_unit(text, subject, unit);
    } else if (kind != TRACE_NONE) {
        explain_kind(text, subject, kind);
    } else if (g_ascii_string_to_unsigned(name, 10, 0, UINT32_MAX, &number, NULL) &&
               number < trace_instructions(trace, subject->summary->role)->len) {
        explain_instruction(text, subject, (uint32_t)number);
    } else {
        return false;
    }
    return true;
}

static char *list_categories(const Trace *trace) {
    GString *list = g_string_new(NULL);
    for (guint i = 0; i < trace->categories->len; i++) {
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "",
                               (char *)trace->categories->pdata[i]);
    }
    return g_string_free(list, FALSE);
}

/* The first few; blocks are named alike. */
static char *list_units(const Trace *trace) {
    GString *list = g_string_new(NULL);
    for (guint i = 0; i < trace->units->len && i < 4; i++) {
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", (char *)trace->units->pdata[i]);
    }
    g_string_append(list, trace->units->len > 4 ? " and so on" : "");
    return g_string_free(list, FALSE);
}

/* The kinds that a recorded step has. */
static char *list_kinds(const CliSubject *subject) {
    GString *list = g_string_new(NULL);
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        if (trace_summary_has_kind(subject->summary, kind)) {
            g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "",
                                   trace_kind(subject->trace, kind)->name);
        }
    }
    return g_string_free(list, FALSE);
}

/* What the name is near to; "" when it is near to nothing. */
static char *near_to(const CliSubject *subject, const char *name) {
    const Trace *trace = subject->trace;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GStringChunk) wholes_of_categories = g_string_chunk_new(64);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_ptr_array_add(names, (gpointer)keys[i].key);
    }
    for (guint i = 0; i < trace->units->len; i++) {
        g_ptr_array_add(names, trace->units->pdata[i]);
    }
    for (guint i = 0; i < trace->categories->len; i++) { /* "activations" of "activations/saved" */
        const char *category = trace->categories->pdata[i];
        const char *whole = g_string_chunk_insert_len(wholes_of_categories, category,
                                                      (gssize)strcspn(category, "/"));
        if (!g_str_equal(whole, names->pdata[names->len - 1])) { /* its parts lie side by side */
            g_ptr_array_add(names, (gpointer)whole);
        }
    }
    for (guint i = 0; i < trace->kinds->len; i++) { /* a trace names all that there are */
        if (trace_summary_has_kind(subject->summary, i)) {
            g_ptr_array_add(names, (gpointer)trace_kind(trace, i)->name);
        }
    }
    g_ptr_array_add(names, NULL);
    return plan_did_you_mean(name, (const char *const *)names->pdata);
}

static void set_unknown(const CliSubject *subject, const char *name, GError **error) {
    g_autofree char *near = near_to(subject, name);
    if (*near != '\0') {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s is no number's key, category, unit or op%s", name, near);
        return;
    }
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_string_append_printf(known, "%s, ", keys[i].key);
    }
    g_autofree char *categories = list_categories(subject->trace);
    g_autofree char *units = list_units(subject->trace), *kinds = list_kinds(subject);
    g_set_error(
        error, TRACE_ERROR, TRACE_ERROR_VALUE,
        "%s is no number's key, category, unit or op. Keys: %speak_by_category.CATEGORY and "
        "comm.KIND. Categories: %s. Units: %s. Ops: an instruction's number, or a kind, of which "
        "there "
        "are here %s",
        name, known->str, categories, units, kinds);
}

GString *cli_explain(const CliSubject *subject, const char *name, GError **error) {
    GString *text = g_string_new(NULL);
    if (explain_key(text, subject, name) || explain_thing(text, subject, name)) {
        return text;
    }
    g_string_free(text, TRUE);
    set_unknown(subject, name, error);
    return NULL;
}
