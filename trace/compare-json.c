#include <math.h>

#include "trace/compare-private.h"

static void set_number_or_null(JsonBuilder *builder, const char *key, double value) {
    json_builder_set_member_name(builder, key);
    if (isnan(value)) {
        json_builder_add_null_value(builder);
    } else if (value == floor(value) && fabs(value) < 0x1p53) {
        json_builder_add_int_value(builder, (gint64)value);
    } else {
        json_builder_add_double_value(builder, value);
    }
}

static void set_text(JsonBuilder *builder, const char *key, const char *value) {
    json_builder_set_member_name(builder, key);
    if (value != NULL) {
        json_builder_add_string_value(builder, value);
    } else {
        json_builder_add_null_value(builder);
    }
}

/* Memory at every instruction: one object a statistic. */
static void build_memory(JsonBuilder *builder, const TraceComparison *comparison) {
    json_builder_set_member_name(builder, "memory");
    json_builder_begin_object(builder);
    set_number_or_null(builder, "instructions_compared", comparison->n_compared);
    set_number_or_null(builder, "instructions_unpaired", comparison->n_unpaired);
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        const TraceCompareMemory *memory = &comparison->memory[i];
        json_builder_set_member_name(builder, trace_statistic_name(i));
        json_builder_begin_object(builder);
        set_number_or_null(builder, "differing", memory->differing);
        set_number_or_null(builder, "largest_error_bytes", memory->largest_bytes);
        set_number_or_null(builder, "mean_error_bytes", memory->mean_bytes);
        json_builder_set_member_name(builder, "first_difference");
        if (memory->differing == 0) {
            json_builder_add_null_value(builder);
        } else {
            json_builder_begin_object(builder);
            set_number_or_null(builder, "rank", memory->rank);
            set_number_or_null(builder, "step", memory->step);
            set_number_or_null(builder, "instruction", memory->instruction);
            set_number_or_null(builder, "first_bytes", (double)memory->value[0]);
            set_number_or_null(builder, "second_bytes", (double)memory->value[1]);
            json_builder_end_object(builder);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_object(builder);
}

static void build_sides(JsonBuilder *builder, const TraceComparison *comparison) {
    static const char *const facts[] = {"side", "device", "cluster", "paced", "rehearsed"};
    json_builder_set_member_name(builder, "sides");
    json_builder_begin_array(builder);
    for (guint side = 0; side < 2; side++) {
        json_builder_begin_object(builder);
        for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
            set_text(builder, facts[i], trace_get(comparison->traces[side], facts[i]));
        }
        set_number_or_null(builder, "rank", comparison->summaries[side]->rank);
        set_number_or_null(builder, "steady_steps", comparison->n_steps[side]);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void build_worst(JsonBuilder *builder, const TraceComparison *comparison, bool ops) {
    const GArray *worst = ops ? comparison->worst_ops : comparison->worst_units;
    json_builder_set_member_name(builder, ops ? "worst_ops" : "worst_units");
    json_builder_begin_array(builder);
    for (guint i = 0; i < worst->len; i++) {
        const TraceCompareWorst *entry = &g_array_index(worst, TraceCompareWorst, i);
        g_autofree char *op = ops ? trace_compare_op_name(comparison, entry->number) : NULL;
        json_builder_begin_object(builder);
        set_text(builder, "name",
                 ops ? op : (const char *)comparison->traces[0]->units->pdata[entry->number]);
        set_number_or_null(builder, ops ? "instruction" : "number", entry->number);
        set_number_or_null(builder, "first_ns", entry->value[0]);
        set_number_or_null(builder, "second_ns", entry->value[1]);
        set_number_or_null(builder, "error", entry->error);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void build_kept(JsonBuilder *builder, const TraceComparison *comparison) {
    json_builder_set_member_name(builder, "kept_by_one_side");
    json_builder_begin_array(builder);
    for (guint i = 0; i < comparison->kept->len; i++) {
        const TraceCompareKept *kept = &g_array_index(comparison->kept, TraceCompareKept, i);
        g_autofree char *name = trace_compare_buffer_name(comparison, kept->instruction);
        json_builder_begin_object(builder);
        set_text(builder, "side", kept->side == 0 ? "first" : "second");
        set_text(builder, "buffer", name);
        set_number_or_null(builder, "instruction", kept->instruction);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* Moment and owner of each side's peak of each statistic. */
static void build_peaks(JsonBuilder *builder, const TraceComparison *comparison) {
    json_builder_set_member_name(builder, "peaks");
    json_builder_begin_array(builder);
    for (guint side = 0; side < 2; side++) {
        const Trace *trace = comparison->traces[side];
        json_builder_begin_object(builder);
        for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
            const TracePeak *peak = &comparison->summaries[side]->peaks[i];
            if (!peak->known) {
                continue;
            }
            json_builder_set_member_name(builder, trace_statistic_name(i));
            json_builder_begin_object(builder);
            set_number_or_null(builder, "bytes", (double)peak->bytes);
            set_number_or_null(builder, "step", peak->step);
            set_number_or_null(builder, "host_ns", (double)peak->host_ns);
            set_number_or_null(builder, "instruction", peak->instruction);
            set_text(builder, "phase", trace->phases->pdata[peak->phase]);
            set_text(builder, "unit", trace_name(trace->units, peak->unit, NULL));
            json_builder_end_object(builder);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

JsonNode *trace_comparison_json(const TraceComparison *comparison) {
    g_autoptr(JsonBuilder) builder = json_builder_new();
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    json_builder_begin_object(builder);
    set_text(builder, "digest", trace_get(comparison->traces[1], "digest"));
    set_text(builder, "title", trace_get(comparison->traces[1], "title"));
    set_text(builder, "verdict", verdict);
    build_sides(builder, comparison);
    json_builder_set_member_name(builder, "rows");
    json_builder_begin_array(builder);
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        json_builder_begin_object(builder);
        set_text(builder, "group", trace_compare_group_key(row->group));
        set_text(builder, "name", row->name);
        set_text(builder, "unit", trace_compare_is_bytes(row->group) ? "bytes" : "ns");
        set_number_or_null(builder, "first", row->value[0]);
        set_number_or_null(builder, "second", row->value[1]);
        set_number_or_null(builder, "error", row->error);
        if (!trace_compare_is_bytes(row->group)) {
            set_number_or_null(builder, "first_least", row->low[0]);
            set_number_or_null(builder, "first_most", row->high[0]);
            set_number_or_null(builder, "second_least", row->low[1]);
            set_number_or_null(builder, "second_most", row->high[1]);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    build_worst(builder, comparison, true);
    build_worst(builder, comparison, false);
    build_peaks(builder, comparison);
    build_memory(builder, comparison);
    build_kept(builder, comparison);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}
