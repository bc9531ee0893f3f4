/* trace/export/chrome.c - a trace as Chrome's JSON, which Perfetto opens (export.h). */
#include "trace/by-rank.h"
#include "trace/export/export.h"
#include "trace/moments.h"
#include "trace/summary.h"

/* Threads of a process: steps at the top, then the host, then the lanes. */
enum {
    STEPS_THREAD = 0,
    HOST_THREAD = 1,
    FIRST_LANE_THREAD = 2,
};

typedef struct {
    const Trace *trace;
    GString *text;
    int64_t origin_ns;
    bool any; /* an event stands already */
} Writer;

static void append_quoted(GString *text, const char *value) {
    g_string_append_c(text, '"');
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            g_string_append_c(text, '\\');
        }
        if (g_ascii_iscntrl(*c)) {
            g_string_append_printf(text, "\\u%04x", (unsigned char)*c);
        } else {
            g_string_append_c(text, *c);
        }
    }
    g_string_append_c(text, '"');
}

static void append_us(GString *text, int64_t ns) {
    g_string_append_printf(text, "%s%" G_GINT64_FORMAT ".%03d", ns < 0 ? "-" : "",
                           (gint64)ABS(ns / 1000), (int)ABS(ns % 1000));
}

/* {"ph": PHASE, "pid": RANK, "name": NAME; the caller goes on and ends with "}". */
static void open_event(Writer *writer, char phase, uint32_t rank, const char *name) {
    g_string_append(writer->text, writer->any ? ",\n" : "\n");
    writer->any = true;
    g_string_append_printf(writer->text, "{\"ph\":\"%c\",\"pid\":%u,\"name\":", phase, rank);
    append_quoted(writer->text, name);
}

static void append_time(Writer *writer, const char *key, int64_t ns) {
    g_string_append_printf(writer->text, ",\"%s\":", key);
    append_us(writer->text, ns);
}

static void name_thread(Writer *writer, uint32_t rank, uint32_t thread, const char *name) {
    open_event(writer, 'M', rank, "thread_name");
    g_string_append_printf(writer->text, ",\"tid\":%u,\"args\":{\"name\":", thread);
    append_quoted(writer->text, name);
    g_string_append(writer->text, "}}");
    open_event(writer, 'M', rank, "thread_sort_index");
    g_string_append_printf(writer->text, ",\"tid\":%u,\"args\":{\"sort_index\":%u}}", thread,
                           thread);
}

/* That of a rank none of whose ops the host does itself would stay empty. */
static bool has_host_ops(const Trace *alone, uint32_t role) {
    bool has = false;
    for (guint i = 0; i < alone->ops->len && !has; i++) {
        has =
            trace_instruction(alone, role, trace_op(alone, i)->instruction)->what == TRACE_HOST_OP;
    }
    return has;
}

static void name_rank(Writer *writer, const Trace *alone, uint32_t rank, uint32_t role) {
    g_autofree char *text = trace_rank_text(writer->trace, rank);
    g_autofree char *name = g_strdup_printf("%s (%s)", text, trace_get(writer->trace, "side"));
    open_event(writer, 'M', rank, "process_name");
    g_string_append(writer->text, ",\"tid\":0,\"args\":{\"name\":");
    append_quoted(writer->text, name);
    g_string_append(writer->text, "}}");
    name_thread(writer, rank, STEPS_THREAD, "steps");
    if (has_host_ops(alone, role)) {
        name_thread(writer, rank, HOST_THREAD, "host");
    }
    for (guint i = 0; i < writer->trace->lanes->len; i++) {
        name_thread(writer, rank, FIRST_LANE_THREAD + i, writer->trace->lanes->pdata[i]);
    }
}

static void append_steps(Writer *writer, const Trace *alone, uint32_t rank) {
    g_autoptr(TraceSummary) summary = trace_summary_new(alone, rank);
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        g_autofree char *name = trace_step_name(step->step);
        open_event(writer, 'X', rank, name);
        g_string_append_printf(writer->text, ",\"tid\":%d", STEPS_THREAD);
        append_time(writer, "ts", step->start_ns - writer->origin_ns);
        append_time(writer, "dur", trace_step_time_ns(step));
        g_string_append_c(writer->text, '}');
    }
}

static void append_name_argument(Writer *writer, const char *key, const GPtrArray *table,
                                 uint32_t index) {
    if (index != TRACE_NONE) {
        g_string_append_printf(writer->text, ",\"%s\":", key);
        append_quoted(writer->text, table->pdata[index]);
    }
}

static void append_op(Writer *writer, const TraceOpRow *row, uint32_t role) {
    const Trace *trace = writer->trace;
    const TraceInstruction *instruction = trace_instruction(trace, role, row->instruction);
    const TraceKind *kind = trace_kind(trace, instruction->kind);
    bool by_host = instruction->what == TRACE_HOST_OP;
    open_event(writer, 'X', row->rank, kind->name);
    g_string_append_printf(writer->text, ",\"cat\":\"%s\",\"tid\":%u",
                           trace_kind_class_name(kind->kind_class),
                           by_host ? HOST_THREAD : FIRST_LANE_THREAD + row->lane);
    append_time(writer, "ts", row->start_ns - writer->origin_ns);
    append_time(writer, "dur", row->end_ns - row->start_ns);
    g_string_append_printf(writer->text, ",\"args\":{\"step\":%d,\"instruction\":%u", row->step,
                           row->instruction);
    append_name_argument(writer, "phase", trace->phases, instruction->phase);
    append_name_argument(writer, "unit", trace->units, instruction->unit);
    append_name_argument(writer, "module", trace->modules, instruction->module);
    if (instruction->bytes > 0) {
        g_string_append_printf(writer->text, ",\"bytes\":%" G_GUINT64_FORMAT,
                               (guint64)instruction->bytes);
    }
    append_time(writer, "issued_us", row->host_issue_ns - writer->origin_ns);
    g_string_append(writer->text, "}}");
}

static void open_counter(Writer *writer, uint32_t rank, const char *name, int64_t at_ns) {
    open_event(writer, 'C', rank, name);
    append_time(writer, "ts", at_ns - writer->origin_ns);
    g_string_append(writer->text, ",\"args\":{");
}

static void append_count(Writer *writer, bool first, const char *name, uint64_t value) {
    g_string_append(writer->text, first ? "" : ",");
    append_quoted(writer->text, name);
    g_string_append_printf(writer->text, ":%" G_GUINT64_FORMAT, (guint64)value);
}

/* Two counters, a pair of events a moment. */
static void append_memory(Writer *writer, const Trace *alone, uint32_t rank) {
    g_autoptr(TraceMoments) moments = trace_moments_new(alone, rank, -1, INT32_MAX);
    int64_t origin_ns = trace_moments_origin_ns(alone, rank, -1);
    const GPtrArray *categories = moments->categories;
    for (guint i = 0; i < moments->rows->len; i++) {
        const TraceMoment *moment = trace_moment(moments, i);
        open_counter(writer, rank, "allocated by category (bytes)", origin_ns + moment->at_ns);
        for (guint k = 0; k < categories->len; k++) {
            append_count(writer, k == 0, categories->pdata[k], moment->values[k]);
        }
        g_string_append(writer->text, "}}");
        open_counter(writer, rank, "allocator (bytes)", origin_ns + moment->at_ns);
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            append_count(writer, k == 0, trace_statistic_name(k),
                         moment->values[categories->len + k]);
        }
        g_string_append(writer->text, "}}");
    }
}

static int64_t earliest_ns(const Trace *trace) {
    int64_t earliest = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        earliest = MIN(earliest, MIN(row->host_issue_ns, row->start_ns));
    }
    for (guint i = 0; i < trace->memory->len; i++) {
        earliest = MIN(earliest, trace_memory(trace, i)->host_ns);
    }
    return earliest;
}

static void append_facts(Writer *writer) {
    g_string_append_printf(
        writer->text,
        "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"origin_ns\":\"%" G_GINT64_FORMAT "\"",
        (gint64)writer->origin_ns);
    for (guint i = 0; i < writer->trace->keys->len; i++) {
        g_string_append(writer->text, ",\n");
        append_quoted(writer->text, writer->trace->keys->pdata[i]);
        g_string_append_c(writer->text, ':');
        append_quoted(writer->text, writer->trace->values->pdata[i]);
    }
    g_string_append(writer->text, "}}\n");
}

GString *trace_export_chrome(const Trace *trace) {
    Writer writer = {trace, g_string_new("{\"traceEvents\":["), earliest_ns(trace), false};
    g_autoptr(TraceByRank) by_rank = trace_by_rank_new(trace);
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        const Trace *alone = trace_by_rank_alone(by_rank, i);
        name_rank(&writer, alone, rank, trace_by_rank_role(by_rank, rank));
        append_steps(&writer, alone, rank);
        append_memory(&writer, alone, rank);
    }
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        append_op(&writer, row, trace_by_rank_role(by_rank, row->rank));
    }
    append_facts(&writer);
    return writer.text;
}
