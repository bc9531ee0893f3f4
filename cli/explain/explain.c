#include "cli/explain/explain.h"

#include <string.h>

#include "cli/explain/private.h"
#include "plan/strategy/strategy.h"
#include "trace/ended.h"
#include "trace/fullest.h"

/* What the key's row says; "" where it has none. */
static const char *about_key(const char *name) {
    for (guint i = 0; i < explain_n_keys; i++) {
        if (g_str_equal(explain_keys[i].key, name)) {
            return explain_keys[i].about;
        }
    }
    return "";
}

static bool is_about_time(const char *name) {
    const char *about = about_key(name);
    return g_str_equal(about, "time") || g_str_equal(about, "rate, price") ||
           g_str_has_prefix(name, "comm.");
}

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
static const char *const wholes[] = {"alloc_retry_rate", "evaluation", "every_rank",
                                     "near_edge",        "oom",        "pipeline",
                                     "published_errors"};

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

/* Of what ran out of memory, whose rows these are. Verdicts tell it themselves. */
static void say_where_rows_end(GString *text, const CliSubject *subject, const char *name) {
    const char *about = about_key(name);
    const CliSubject *ended = subject->until_oom != NULL ? subject->until_oom : subject;
    g_autofree char *oom = trace_oom_text(ended->trace);
    if (oom == NULL || g_str_equal(about, "verdicts") || g_str_equal(about, "what was played")) {
        return;
    }
    g_autofree char *line =
        g_strdup_printf(subject->until_oom != NULL
                            ? "as if memory sufficed: it runs %s (foreshard explain oom shows "
                              "what is held then)\n"
                            : "the rows end %s\n",
                        oom);
    g_string_prepend(text, line);
}

static bool explain_key(GString *text, const CliSubject *subject, const char *name) {
    g_autofree char *whole = whole_of(name);
    for (guint i = 0; i < explain_n_keys; i++) {
        if (g_str_equal(explain_keys[i].key, whole)) {
            explain_keys[i].explain(text, subject);
            return true;
        }
    }
    return explain_comm(text, subject, name) || explain_category(text, subject, name);
}

/* "17924" of a trace, or "second:3323" as foreshard predict counts them, in each section anew. */
static bool read_instruction(const CliSubject *subject, const char *name, uint32_t *ret) {
    const GArray *all = trace_instructions(subject->trace, subject->summary->role);
    const char *colon = strchr(name, ':');
    guint64 number;
    if (!g_ascii_string_to_unsigned(colon != NULL ? colon + 1 : name, 10, 0, UINT32_MAX, &number,
                                    NULL)) {
        return false;
    }
    if (colon == NULL) {
        *ret = (uint32_t)number;
        return number < all->len;
    }
    g_autofree char *section = g_strndup(name, (gsize)(colon - name));
    for (guint i = 0; i < all->len; i++) {
        const TraceInstruction *row = &g_array_index(all, TraceInstruction, i);
        if (row->index == number && g_str_equal(trace_section_name(row->section), section)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

/* Stages have units of one name, as "root": that of the rank's own stage; TRACE_NONE: none. */
static uint32_t find_unit(const Trace *trace, uint32_t role, const char *name) {
    const GArray *table = trace_instructions(trace, role);
    for (guint i = 0; i < table->len; i++) {
        uint32_t unit = g_array_index(table, TraceInstruction, i).unit;
        if (unit != TRACE_NONE && g_str_equal(trace->units->pdata[unit], name)) {
            return unit;
        }
    }
    return TRACE_NONE;
}

uint32_t cli_explain_rank(const Trace *trace, const SimPrediction *prediction, const char *name) {
    if (prediction != NULL && is_about_time(name)) {
        return trace_rank_beside(trace, prediction->time_rank);
    }
    uint32_t fullest = trace_fullest_rank(trace);
    bool may_lack = fullest != TRACE_NONE && find_name(trace->units, name) != TRACE_NONE;
    if (!may_lack || find_unit(trace, trace_role_of_rank(trace, fullest), name) != TRACE_NONE) {
        return fullest;
    }
    for (guint i = 0; i < trace->ranks->len; i++) {
        const TraceRank *rank = &g_array_index(trace->ranks, TraceRank, i);
        if (find_unit(trace, rank->role, name) != TRACE_NONE) {
            return rank->rank;
        }
    }
    return fullest;
}

static bool explain_thing(GString *text, const CliSubject *subject, const char *name) {
    const Trace *trace = subject->trace;
    uint32_t unit = find_unit(trace, subject->summary->role, name), kind = find_kind(trace, name);
    unit = unit == TRACE_NONE ? find_name(trace->units, name) : unit;
    uint32_t number;
    if (unit != TRACE_NONE) {
        explain_unit(text, subject, unit);
    } else if (kind != TRACE_NONE) {
        explain_kind(text, subject, kind);
    } else if (read_instruction(subject, name, &number)) {
        explain_instruction(text, subject, number);
    } else {
        return false;
    }
    return true;
}

bool cli_explain_is_setting(const char *name) {
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    g_auto(GStrv) called = explain_settings_called(key);
    unsigned row;
    return called != NULL || plan_strategy_find_key(key, &row);
}

/* "prefetch" is two of them. */
static bool explain_settings(GString *text, const CliSubject *subject, const char *name) {
    g_auto(GStrv) called = explain_settings_called(name);
    for (char **key = called; key != NULL && *key != NULL; key++) {
        g_string_append(text, key == called ? "" : "\n");
        explain_setting(text, subject, *key);
    }
    return called != NULL || explain_setting(text, subject, name);
}

static void set_unknown(const CliSubject *subject, const char *name, GError **error) {
    g_autofree char *meant = explain_meant_by(subject, name);
    if (*meant != '\0') {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s is no number's key, category, unit or op%s", name, meant);
        return;
    }
    g_autofree char *known = explain_list_names(subject);
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "%s is no number's key, category, unit or op; there are\n%s", name, known);
}

GString *cli_explain(const CliSubject *subject, const char *name, GError **error) {
    GString *text = g_string_new(NULL);
    g_autofree char *whole = whole_of(name);
    bool is_there = explain_key(text, subject, name) || explain_thing(text, subject, name);
    if (is_there) { /* a setting has values, no rows */
        say_where_rows_end(text, subject, whole);
    }
    if (is_there && cli_explain_is_setting(name)) { /* accumulate is an op, optimizer a category */
        g_string_append_c(text, '\n');
    }
    if (explain_settings(text, subject, name) || is_there) {
        return text;
    }
    g_string_free(text, TRUE);
    set_unknown(subject, name, error);
    return NULL;
}
