/* trace/compare/json.c - a comparison as JSON. */
#include "trace/json.h"
#include "trace/compare/private.h"

/* Memory at every instruction: one object a statistic. */
static void build_memory(JsonBuilder *builder, const TraceComparison *comparison) {
    trace_json_begin_object(builder, "memory");
    trace_json_add_number(builder, "instructions_compared", comparison->n_compared);
    trace_json_add_number(builder, "instructions_unpaired", comparison->n_unpaired);
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        const TraceCompareMemory *memory = &comparison->memory[i];
        trace_json_begin_object(builder, trace_statistic_name(i));
        trace_json_add_number(builder, "differing", memory->differing);
        trace_json_add_number(builder, "largest_error_bytes", memory->largest_bytes);
        trace_json_add_number(builder, "mean_error_bytes", memory->mean_bytes);
        json_builder_set_member_name(builder, "first_difference");
        if (memory->differing == 0) {
            json_builder_add_null_value(builder);
        } else {
            json_builder_begin_object(builder);
            trace_json_add_number(builder, "rank", memory->rank);
            trace_json_add_number(builder, "step", memory->step);
            trace_json_add_number(builder, "instruction", memory->instruction);
            trace_json_add_number(builder, "first_bytes", (double)memory->value[0]);
            trace_json_add_number(builder, "second_bytes", (double)memory->value[1]);
            json_builder_end_object(builder);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_object(builder);
}

static void build_sides(JsonBuilder *builder, const TraceComparison *comparison) {
    static const char *const facts[] = {"side", "device", "cluster", "paced", "rehearsed"};
    trace_json_begin_array(builder, "sides");
    for (guint side = 0; side < 2; side++) {
        json_builder_begin_object(builder);
        for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
            trace_json_add_text(builder, facts[i], trace_get(comparison->traces[side], facts[i]));
        }
        g_autofree char *settings = trace_compare_settings(comparison, side);
        trace_json_add_text(builder, "settings_of_its_own", settings);
        trace_json_add_number(builder, "rank", comparison->summaries[side]->rank);
        trace_json_add_number(builder, "steady_steps", comparison->n_steps[side]);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void build_worst(JsonBuilder *builder, const TraceComparison *comparison, bool ops) {
    const GArray *worst = ops ? comparison->worst_ops : comparison->worst_units;
    trace_json_begin_array(builder, ops ? "worst_ops" : "worst_units");
    for (guint i = 0; i < worst->len; i++) {
        const TraceCompareWorst *entry = &g_array_index(worst, TraceCompareWorst, i);
        g_autofree char *op = ops ? trace_compare_op_name(comparison, entry->number) : NULL;
        json_builder_begin_object(builder);
        trace_json_add_text(builder, "name",
                            ops ? op
                                : (const char *)comparison->traces[0]->units->pdata[entry->number]);
        trace_json_add_number(builder, ops ? "instruction" : "number", entry->number);
        trace_json_add_number(builder, "first_ns", entry->value[0]);
        trace_json_add_number(builder, "second_ns", entry->value[1]);
        trace_json_add_number(builder, "error", entry->error);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void build_kept(JsonBuilder *builder, const TraceComparison *comparison) {
    trace_json_begin_array(builder, "kept_by_one_side");
    for (guint i = 0; i < comparison->kept->len; i++) {
        const TraceCompareKept *kept = &g_array_index(comparison->kept, TraceCompareKept, i);
        g_autofree char *name = trace_compare_buffer_name(comparison, kept->instruction);
        json_builder_begin_object(builder);
        trace_json_add_text(builder, "side", kept->side == 0 ? "first" : "second");
        trace_json_add_text(builder, "buffer", name);
        trace_json_add_number(builder, "instruction", kept->instruction);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* Moment and owner of each side's peak of each statistic. */
static void build_peaks(JsonBuilder *builder, const TraceComparison *comparison) {
    trace_json_begin_array(builder, "peaks");
    for (guint side = 0; side < 2; side++) {
        const Trace *trace = comparison->traces[side];
        json_builder_begin_object(builder);
        for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
            const TracePeak *peak = &comparison->summaries[side]->peaks[i];
            if (!peak->known) {
                continue;
            }
            trace_json_begin_object(builder, trace_statistic_name(i));
            trace_json_add_number(builder, "bytes", (double)peak->bytes);
            trace_json_add_number(builder, "step", peak->step);
            trace_json_add_number(builder, "host_ns", (double)peak->host_ns);
            trace_json_add_number(builder, "instruction", peak->instruction);
            trace_json_add_text(builder, "phase", trace->phases->pdata[peak->phase]);
            trace_json_add_text(builder, "unit", trace_name(trace->units, peak->unit, NULL));
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
    trace_json_add_text(builder, "digest", trace_get(comparison->traces[1], "digest"));
    trace_json_add_text(builder, "title", trace_get(comparison->traces[1], "title"));
    trace_json_add_text(builder, "verdict", verdict);
    build_sides(builder, comparison);
    trace_json_begin_array(builder, "rows");
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        json_builder_begin_object(builder);
        trace_json_add_text(builder, "group", trace_compare_group_key(row->group));
        trace_json_add_text(builder, "name", row->name);
        trace_json_add_text(builder, "unit", trace_compare_is_bytes(row->group) ? "bytes" : "ns");
        trace_json_add_number(builder, "first", row->value[0]);
        trace_json_add_number(builder, "second", row->value[1]);
        trace_json_add_number(builder, "error", row->error);
        if (!trace_compare_is_bytes(row->group)) {
            trace_json_add_number(builder, "first_least", row->low[0]);
            trace_json_add_number(builder, "first_most", row->high[0]);
            trace_json_add_number(builder, "second_least", row->low[1]);
            trace_json_add_number(builder, "second_most", row->high[1]);
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
