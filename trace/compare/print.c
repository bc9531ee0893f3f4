/* trace/compare/print.c - a comparison as a table, and its verdict in one line. */
#include <math.h>

#include "trace/compare/private.h"
#include "trace/ended.h"
#include "trace/scale.h"

enum {
    LONGEST_NAME = 46 /* letters: leaves a row of 100 its figures, 15 letters the last of them */
};

bool trace_compare_is_bytes(TraceCompareGroup group) {
    switch (group) {
    case TRACE_COMPARE_STEP:
    case TRACE_COMPARE_PHASE:
    case TRACE_COMPARE_LANE:
    case TRACE_COMPARE_COMMUNICATION:
    case TRACE_COMPARE_COLLECTIVE:
    case TRACE_COMPARE_COLLECTIVE_EXPOSED:
    case TRACE_COMPARE_COLLECTIVE_HIDDEN:
    case TRACE_COMPARE_OP:
        return false;
    case TRACE_COMPARE_PEAK:
    case TRACE_COMPARE_CATEGORY_PEAK:
        return true;
    case TRACE_COMPARE_N_GROUPS:
        break;
    }
    g_assert_not_reached();
}

/* Before the name in text, and the key in JSON. */
static const struct {
    const char *before, *after, *key;
} group_words[TRACE_COMPARE_N_GROUPS] = {
    [TRACE_COMPARE_STEP] = {"", " time", "step"},
    [TRACE_COMPARE_PHASE] = {"phase ", "", "phase"},
    [TRACE_COMPARE_LANE] = {"lane ", " busy", "lane"},
    [TRACE_COMPARE_COMMUNICATION] = {"communication ", "", "communication"},
    [TRACE_COMPARE_COLLECTIVE] = {"", " total", "collective"},
    [TRACE_COMPARE_COLLECTIVE_EXPOSED] = {"", " exposed", "collective_exposed"},
    [TRACE_COMPARE_COLLECTIVE_HIDDEN] = {"", " hidden", "collective_hidden"},
    [TRACE_COMPARE_OP] = {"op ", "", "op"},
    [TRACE_COMPARE_PEAK] = {"peak ", "", "peak"},
    [TRACE_COMPARE_CATEGORY_PEAK] = {"peak of ", "", "category_peak"},
};

char *trace_compare_row_name(const TraceCompareRow *row) {
    return g_strconcat(group_words[row->group].before, row->name, group_words[row->group].after,
                       NULL);
}

const char *trace_compare_group_key(TraceCompareGroup group) {
    return group_words[group].key;
}

char *trace_compare_op_name(const TraceComparison *comparison, uint32_t number) {
    const Trace *trace = comparison->traces[0];
    const TraceInstruction *op = trace_instruction(trace, comparison->summaries[0]->role, number);
    g_autofree char *place = trace_place_name(trace, op->phase, op->unit);
    const char *module = trace_name(trace->modules, op->module, NULL);
    bool named = module != NULL && module[0] != '\0';
    return g_strconcat(trace_kind(trace, op->kind)->name, ", ", place, named ? ", module " : "",
                       named ? module : "", NULL);
}

char *trace_compare_buffer_name(const TraceComparison *comparison, uint32_t number) {
    const Trace *trace = comparison->traces[0];
    const TraceInstruction *op = trace_instruction(trace, comparison->summaries[0]->role, number);
    g_autofree char *place = trace_place_name(trace, op->phase, op->unit);
    return g_strdup_printf("%s, %" G_GUINT64_FORMAT " B, allocated in %s (instruction %u)",
                           (const char *)trace->categories->pdata[op->category], (guint64)op->bytes,
                           place, number);
}

/* "+1.2 %", or "-" where nothing was to be met. Never "-0.0 %". */
static char *percent(double error) {
    if (isnan(error)) {
        return g_strdup("-");
    }
    double rounded = round(error * 1000) / 10;
    if (rounded == 0) {
        return g_strdup(error == 0 ? "equal" : "0.0 %");
    }
    return g_strdup_printf("%+.1f %%", rounded);
}

static double largest(const TraceComparison *comparison, bool bytes) {
    double most = 0;
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        if (trace_compare_is_bytes(row->group) == bytes) {
            most = MAX(most, MAX(row->value[0], row->value[1]));
        }
    }
    return most;
}

static void append_side(GString *text, const TraceComparison *comparison, guint side) {
    const Trace *trace = comparison->traces[side];
    static const char *const facts[] = {"side", "device", "cluster"};
    g_string_append_printf(text, "%-10s", comparison->sides[side]);
    for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
        const char *value = trace_get(trace, facts[i]);
        bool said = value != NULL && g_str_equal(value, comparison->sides[side]);
        if (value != NULL && !said) {
            g_string_append_printf(text, " %s %s,", facts[i], value);
        }
    }
    if (trace_manner(trace)) {
        g_string_append_printf(text, " %s,", trace_manner(trace));
    }
    g_autofree char *rank = trace_rank_text(trace, comparison->summaries[side]->rank);
    g_string_append_printf(text, " %s, %u steady step%s\n", rank, comparison->n_steps[side],
                           comparison->n_steps[side] == 1 ? "" : "s");
}

static void append_settings(GString *text, const TraceComparison *comparison) {
    g_autofree char *first = trace_compare_settings(comparison, 0);
    g_autofree char *second = trace_compare_settings(comparison, 1);
    if (first != NULL || second != NULL) {
        g_string_append_printf(text, "settings differ that change no instruction: %s %s; %s %s\n",
                               comparison->sides[0], first != NULL ? first : "has none",
                               comparison->sides[1], second != NULL ? second : "has none");
    }
}

/* Two predictions, or two measurements, differ; neither is the other's error. */
static const char *error_name(const TraceComparison *comparison) {
    const char *first = trace_get(comparison->traces[0], "side");
    return g_str_equal(first, trace_get(comparison->traces[1], "side")) ? "differ by" : "error";
}

static void append_table(GString *text, const TraceComparison *comparison, bool bytes) {
    double most = largest(comparison, bytes);
    TraceScale scale = bytes ? trace_scale_bytes(most) : trace_scale_time(most);
    g_autofree char *head = g_strdup_printf(
        bytes ? "memory (%s)" : "time (%s), median of the steady steps", scale.unit);
    g_string_append_printf(text, "\n%-40s %12s %12s %9s", head, comparison->sides[0],
                           comparison->sides[1], error_name(comparison));
    g_string_append_printf(text, bytes ? "\n" : "   %s range\n", comparison->sides[1]);
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        if (trace_compare_is_bytes(row->group) != bytes) {
            continue;
        }
        g_autofree char *name = trace_compare_row_name(row);
        g_autofree char *error = percent(row->error);
        g_string_append_printf(text, "%-40s %12.3f %12.3f %9s", name,
                               row->value[0] / scale.per_unit, row->value[1] / scale.per_unit,
                               error);
        if (!bytes) {
            g_string_append_printf(text, "   %.3f to %.3f", row->low[1] / scale.per_unit,
                                   row->high[1] / scale.per_unit);
        }
        g_string_append_c(text, '\n');
    }
}

/* The ops or units that err most, by the time they differ by. */
static void append_worst(GString *text, const TraceComparison *comparison, bool ops) {
    const GArray *worst = ops ? comparison->worst_ops : comparison->worst_units;
    if (worst->len == 0) {
        return;
    }
    double most = 0;
    for (guint i = 0; i < worst->len; i++) {
        const TraceCompareWorst *entry = &g_array_index(worst, TraceCompareWorst, i);
        most = MAX(most, MAX(entry->value[0], entry->value[1]));
    }
    TraceScale scale = trace_scale_time(most);
    g_autofree char *head =
        g_strdup_printf("%s (%s)", ops ? "worst ops" : "worst units, all their ops", scale.unit);
    g_string_append_printf(text, "\n%-40s %12s %12s %9s   difference\n", head, comparison->sides[0],
                           comparison->sides[1], error_name(comparison));
    for (guint i = 0; i < worst->len; i++) {
        const TraceCompareWorst *entry = &g_array_index(worst, TraceCompareWorst, i);
        g_autofree char *error = percent(entry->error);
        g_autofree char *op = ops ? trace_compare_op_name(comparison, entry->number) : NULL;
        const char *name =
            ops ? op : (const char *)comparison->traces[0]->units->pdata[entry->number];
        g_autofree char *place =
            ops ? g_strdup_printf("%s (%u)", name, entry->number) : g_strdup(name);
        bool is_long = g_utf8_strlen(place, -1) > LONGEST_NAME;
        g_string_append_printf(text, is_long ? "%s\n%-40s" : "%s%-40s", is_long ? place : "",
                               is_long ? "" : place);
        g_string_append_printf(text, " %12.3f %12.3f %9s   %+.3f\n",
                               entry->value[0] / scale.per_unit, entry->value[1] / scale.per_unit,
                               error, (entry->value[0] - entry->value[1]) / scale.per_unit);
    }
}

static void append_kept(GString *text, const TraceComparison *comparison) {
    if (comparison->kept->len == 0) {
        return;
    }
    g_string_append(text, "\nheld after the last common step on one side only\n");
    for (guint i = 0; i < comparison->kept->len; i++) {
        const TraceCompareKept *kept = &g_array_index(comparison->kept, TraceCompareKept, i);
        g_autofree char *name = trace_compare_buffer_name(comparison, kept->instruction);
        g_string_append_printf(text, "%-10s %s\n", comparison->sides[kept->side], name);
    }
}

static void append_peak_place(GString *text, const TraceComparison *comparison, guint side) {
    const Trace *trace = comparison->traces[side];
    const TracePeak *peak = &comparison->summaries[side]->peaks[TRACE_ALLOCATED];
    if (!peak->known) {
        return;
    }
    g_autofree char *place = trace_place_name(trace, peak->phase, peak->unit);
    g_autofree char *step = trace_step_name(peak->step);
    g_string_append_printf(text, "peak allocated, %s: %s, %s, instruction %u\n",
                           comparison->sides[side], step, place, peak->instruction);
}

static void append_memory(GString *text, const TraceComparison *comparison) {
    g_string_append_printf(text, "\nmemory at every instruction (%u compared, %u rank%s%s)\n",
                           comparison->n_compared, comparison->n_ranks,
                           comparison->n_ranks == 1 ? "" : "s",
                           comparison->n_unpaired > 0 ? ", some without a counterpart" : "");
    if (comparison->n_unpaired > 0) {
        g_string_append_printf(text, "%u instructions of one side have no counterpart\n",
                               comparison->n_unpaired);
    }
    for (guint i = 0; i < TRACE_N_STATISTICS && comparison->n_compared > 0; i++) {
        const TraceCompareMemory *memory = &comparison->memory[i];
        if (memory->differing == 0) {
            g_string_append_printf(text, "%-10s equal at all of them\n", trace_statistic_name(i));
            continue;
        }
        const Trace *trace = comparison->traces[1];
        const TraceInstruction *instruction =
            trace_instruction(trace, trace_role_of_rank(trace, memory->rank), memory->instruction);
        g_autofree char *place = trace_place_name(trace, instruction->phase, instruction->unit);
        g_autofree char *step = trace_step_name(memory->step);
        g_autofree char *rank = trace_rank_text(trace, memory->rank);
        double peak = (double)comparison->summaries[1]->peaks[i].bytes;
        g_string_append_printf(
            text,
            "%-10s differs at %u; by up to %.0f B (%.2f %% of the peak), on average %.0f B\n"
            "%-10s first: %s, %s, %s, instruction %u (%s): "
            "%s %" G_GUINT64_FORMAT " B, %s %" G_GUINT64_FORMAT " B\n",
            trace_statistic_name(i), memory->differing, memory->largest_bytes,
            peak > 0 ? memory->largest_bytes / peak * 100 : 0, memory->mean_bytes, "", rank, step,
            place, memory->instruction, trace_what_name(instruction->what), comparison->sides[0],
            (guint64)memory->value[0], comparison->sides[1], (guint64)memory->value[1]);
    }
}

char *trace_comparison_text(const TraceComparison *comparison) {
    GString *text = g_string_new(NULL);
    const char *title = trace_get(comparison->traces[1], "title");
    if (title != NULL) {
        g_string_append_printf(text, "%s\n", title);
    }
    append_side(text, comparison, 0);
    append_side(text, comparison, 1);
    append_settings(text, comparison);
    append_table(text, comparison, false);
    append_worst(text, comparison, true);
    append_worst(text, comparison, false);
    append_table(text, comparison, true);
    append_peak_place(text, comparison, 0);
    append_peak_place(text, comparison, 1);
    append_memory(text, comparison);
    append_kept(text, comparison);
    return g_string_free(text, FALSE);
}

/* A side that ran out of memory says so first: what follows holds up to there. */
static void append_ends(GString *text, const TraceComparison *comparison) {
    for (guint side = 0; side < 2; side++) {
        g_autofree char *oom = trace_oom_text(comparison->traces[side]);
        if (oom != NULL) {
            g_string_append_printf(text, "%s ends %s; ", comparison->sides[side], oom);
        }
    }
}

static void append_memory_verdict(GString *text, const TraceComparison *comparison) {
    if (comparison->n_compared == 0) {
        g_string_append(text, "no memory to compare");
    }
    for (guint i = 0; i < TRACE_N_STATISTICS && comparison->n_compared > 0; i++) {
        const TraceCompareMemory *memory = &comparison->memory[i];
        g_string_append_printf(text, "%s%s ", i > 0 ? ", " : "", trace_statistic_name(i));
        if (memory->differing == 0 && comparison->n_unpaired == 0) {
            g_string_append_printf(text, "equal at all %u instructions", comparison->n_compared);
        } else if (memory->differing == 0) {
            g_string_append_printf(text, "equal where both have rows");
        } else {
            g_string_append_printf(text, "differs at %u of %u", memory->differing,
                                   comparison->n_compared);
        }
    }
    if (comparison->n_unpaired > 0) {
        g_string_append_printf(text, ", %u instruction%s without a counterpart",
                               comparison->n_unpaired, comparison->n_unpaired == 1 ? "" : "s");
    }
}

static void append_figures_verdict(GString *text, const TraceComparison *comparison) {
    const TraceCompareRow *peak = trace_comparison_find(comparison, TRACE_COMPARE_PEAK, "reserved");
    if (peak != NULL) {
        g_autofree char *error = percent(peak->error);
        g_string_append_printf(text, "; peak reserved %s", error);
    }
    const TraceCompareRow *step = trace_comparison_find(comparison, TRACE_COMPARE_STEP, "step");
    if (step != NULL) {
        g_autofree char *error = percent(step->error);
        TraceScale scale = trace_scale_time(MAX(step->value[0], step->value[1]));
        g_string_append_printf(text, "; step time %s (%s %.3f %s, %s %.3f %s)", error,
                               comparison->sides[0], step->value[0] / scale.per_unit, scale.unit,
                               comparison->sides[1], step->value[1] / scale.per_unit, scale.unit);
    }
}

static void append_kept_verdict(GString *text, const TraceComparison *comparison) {
    for (guint side = 0; side < 2; side++) {
        guint n = 0;
        for (guint i = 0; i < comparison->kept->len; i++) {
            n += g_array_index(comparison->kept, TraceCompareKept, i).side == side;
        }
        if (n > 0) {
            g_string_append_printf(text, "; %s keeps %u buffer%s that the other frees",
                                   comparison->sides[side], n, n == 1 ? "" : "s");
        }
    }
}

char *trace_comparison_verdict(const TraceComparison *comparison) {
    GString *text = g_string_new(NULL);
    append_ends(text, comparison);
    append_memory_verdict(text, comparison);
    append_figures_verdict(text, comparison);
    if (comparison->worst_ops->len > 0) {
        uint32_t worst = g_array_index(comparison->worst_ops, TraceCompareWorst, 0).number;
        g_autofree char *name = trace_compare_op_name(comparison, worst);
        g_string_append_printf(text, "; worst op: %s", name);
    }
    append_kept_verdict(text, comparison);
    return g_string_free(text, FALSE);
}
