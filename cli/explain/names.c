/* cli/explain/names.c - the names that can be explained: in a list, and what another word means. */
#include <string.h>

#include "cli/explain/private.h"
#include "plan/files/nearest.h"
#include "plan/strategy/strategy.h"

/* What people call it whose name is not near. */
static const struct {
    const char *theirs, *ours; /* a blank between two */
} words[] = {
    {"memory mem vram gpu_memory", "peak_reserved_bytes peak_allocated_bytes peak_by_category"},
    {"time duration latency iteration_time", "step_ms"},
    {"throughput speed samples_per_second", "tokens_per_s_per_gpu"},
    {"utilization utilisation efficiency", "mfu trains_well"},
    {"cost dollars", "price_per_million_tokens"},
    {"energy power", "kwh_per_million_tokens"},
    {"bottleneck", "bound_by"},
    {"network bandwidth overlap exposed collectives communication_time", "comm"},
    {"fragmentation", "peak_reserved_bytes"},
    {"prefetch prefetching", "backward_prefetch forward_prefetch"},
    {"fsdp fsdp1 fsdp2 ddp", "flavour sharding"},
    {"full grad_op hybrid full_shard shard_grad_op no_shard zero zero1 zero2 zero3", "sharding"},
    {"limiter rate_limiter", "limit_all_gathers"},
    {"checkpoint recomputation remat activation_checkpointing", "checkpointing"},
    {"precision dtype mixed_precision", "param_dtype reduce_dtype"},
};

/* NULL: it is none of those words. */
static char **called(const char *word) {
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_auto(GStrv) theirs = g_strsplit(words[i].theirs, " ", -1);
        if (g_strv_contains((const char *const *)theirs, word)) {
            return g_strsplit(words[i].ours, " ", -1);
        }
    }
    return NULL;
}

char **explain_settings_called(const char *word) {
    g_autofree char *plain = g_strdelimit(g_strdup(word), "-", '_');
    g_auto(GStrv) ours = called(plain);
    unsigned row;
    return ours != NULL && plan_strategy_find_key(ours[0], &row) ? g_steal_pointer(&ours) : NULL;
}

static char *of_other_words(const char *word) {
    g_auto(GStrv) ours = called(word);
    g_autofree char *list = ours != NULL ? g_strjoinv(" or ", ours) : NULL;
    return list != NULL ? g_strdup_printf("; did you mean %s?", list) : NULL;
}

char *explain_meant_by(const CliSubject *subject, const char *word) {
    char *other = of_other_words(word);
    if (other != NULL) {
        return other;
    }
    const Trace *trace = subject->trace;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GStringChunk) wholes_of_categories = g_string_chunk_new(64);
    for (guint i = 0; i < explain_n_keys; i++) {
        g_ptr_array_add(names, (gpointer)explain_keys[i].key);
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
    return plan_did_you_mean(word, (const char *const *)names->pdata);
}

/* A line that begins with what it is about. */
static void begin_line(GString *list, const char *about) {
    enum {
        ABOUT = 17 /* columns */
    };
    g_string_append_printf(list, "%s  %-*s", list->len > 0 ? "\n" : "", ABOUT, about);
}

static void add_name(GString *list, bool is_first, const char *name) {
    g_string_append_printf(list, "%s%s", is_first ? "" : ", ", name);
}

static void list_keys(GString *list) {
    const char *about = "";
    for (guint i = 0; i < explain_n_keys; i++) {
        bool begins = !g_str_equal(explain_keys[i].about, about);
        about = explain_keys[i].about;
        if (begins) {
            begin_line(list, about);
        }
        add_name(list, begins, explain_keys[i].key);
    }
}

/* The first few; blocks are named alike. */
static void list_units(GString *list, const Trace *trace) {
    enum {
        FEW = 4
    };
    begin_line(list, "a unit");
    for (guint i = 0; i < trace->units->len && i < FEW; i++) {
        add_name(list, i == 0, trace->units->pdata[i]);
    }
    g_string_append(list, trace->units->len > FEW ? " and so on" : "");
}

static void list_categories(GString *list, const Trace *trace) {
    begin_line(list, "what is held");
    for (guint i = 0; i < trace->categories->len; i++) {
        add_name(list, i == 0, trace->categories->pdata[i]);
    }
    g_string_append(list, "; or the first word of one");
}

static bool is_collective(const CliSubject *subject, guint kind) {
    return trace_summary_has_kind(subject->summary, kind) &&
           trace_kind(subject->trace, kind)->kind_class == TRACE_KIND_COLLECTIVE;
}

/* Nothing where the step has none. */
static void list_collectives(GString *list, const CliSubject *subject) {
    bool any = false;
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        if (is_collective(subject, kind)) {
            if (!any) {
                begin_line(list, "a collective");
            }
            g_autofree char *name =
                g_strconcat("comm.", trace_kind(subject->trace, kind)->name, NULL);
            add_name(list, !any, name);
            any = true;
        }
    }
}

/* The kinds that a recorded step has. */
static void list_kinds(GString *list, const CliSubject *subject) {
    begin_line(list, "an op");
    g_string_append(list, "an instruction's number, also in a section (second:7), or a kind:");
    bool any = false;
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        if (trace_summary_has_kind(subject->summary, kind)) {
            g_string_append_printf(list, "%s %s", any ? "," : "",
                                   trace_kind(subject->trace, kind)->name);
            any = true;
        }
    }
}

char *explain_list_names(const CliSubject *subject) {
    GString *list = g_string_new(NULL);
    list_keys(list);
    list_collectives(list, subject);
    list_categories(list, subject->trace);
    list_units(list, subject->trace);
    list_kinds(list, subject);
    return g_string_free(list, FALSE);
}
