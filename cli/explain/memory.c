/* Peaks: from memory rows to what is alive at them. */
#include <string.h>

#include "cli/explain/private.h"
#include "trace/scale.h"

enum {
    MOST_BUFFERS = 12
};

static int compare_alive(gconstpointer a, gconstpointer b) {
    const ExplainAlive *x = a, *y = b;
    return x->bytes != y->bytes
               ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
               : (x->instruction > y->instruction) - (x->instruction < y->instruction);
}

/* What the rank holds right after a memory row, largest first. */
static GArray *find_alive(const CliSubject *subject, guint last_row) {
    const Trace *trace = subject->trace;
    g_autoptr(GHashTable) places = g_hash_table_new(NULL, NULL); /* buffer: index + 1 */
    GArray *alive = g_array_new(FALSE, FALSE, sizeof(ExplainAlive));
    for (guint i = 0; i <= last_row; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != subject->summary->rank) {
            continue;
        }
        const TraceInstruction *instruction =
            trace_instruction(trace, subject->summary->role, row->instruction);
        gpointer buffer = GUINT_TO_POINTER(instruction->buffer);
        guint place = GPOINTER_TO_UINT(g_hash_table_lookup(places, buffer));
        if (row->delta > 0) {
            ExplainAlive entry = {row->instruction, row->category, (uint64_t)row->delta};
            g_array_append_val(alive, entry);
            g_hash_table_replace(places, buffer, GUINT_TO_POINTER(alive->len));
        } else if (place > 0) {
            g_array_index(alive, ExplainAlive, place - 1).bytes = 0;
            g_hash_table_remove(places, buffer);
        }
    }
    g_array_sort(alive, compare_alive);
    while (alive->len > 0 && g_array_index(alive, ExplainAlive, alive->len - 1).bytes == 0) {
        g_array_set_size(alive, alive->len - 1);
    }
    return alive;
}

static void append_categories(GString *text, const CliSubject *subject, const GArray *alive,
                              const char *wanted) {
    const Trace *trace = subject->trace;
    for (guint category = 0; category < trace->categories->len; category++) {
        uint64_t bytes = 0;
        guint n = 0;
        for (guint i = 0; i < alive->len; i++) {
            const ExplainAlive *entry = &g_array_index(alive, ExplainAlive, i);
            n += entry->category == category;
            bytes += entry->category == category ? entry->bytes : 0;
        }
        if (n > 0 && explain_belongs(trace, category, wanted)) {
            g_autofree char *size = trace_bytes_text((double)bytes);
            g_string_append_printf(text, "  %-26s %16" G_GUINT64_FORMAT " B in %u buffer%s, %s\n",
                                   (const char *)trace->categories->pdata[category], (guint64)bytes,
                                   n, n == 1 ? "" : "s", size);
        }
    }
}

static void append_largest(GString *text, const CliSubject *subject, const GArray *alive,
                           const char *wanted) {
    guint shown = 0, n = 0;
    g_string_append(text, "the largest of them\n");
    for (guint i = 0; i < alive->len; i++) {
        const ExplainAlive *entry = &g_array_index(alive, ExplainAlive, i);
        if (!explain_belongs(subject->trace, entry->category, wanted)) {
            continue;
        }
        n++;
        if (shown < MOST_BUFFERS) {
            g_autofree char *place = explain_place(subject, entry->instruction);
            g_string_append_printf(
                text, "  %16" G_GUINT64_FORMAT " B %s, allocated %s\n", (guint64)entry->bytes,
                (const char *)subject->trace->categories->pdata[entry->category], place);
            shown++;
        }
    }
    if (n > shown) {
        g_string_append_printf(text, "  and %u more\n", n - shown);
    }
}

static const char *const meanings[TRACE_N_STATISTICS] = {
    [TRACE_ALLOCATED] = "allocated: what buffers hold",
    [TRACE_ACTIVE] = "active: what buffers hold, and what was freed but a lane still uses",
    [TRACE_RESERVED] = "reserved: what the allocator has taken from the device, in use or cached",
};

void explain_peak(GString *text, const CliSubject *subject, TraceStatistic statistic) {
    const Trace *trace = subject->trace;
    const TracePeak *peak = &subject->summary->peaks[statistic];
    if (!peak->known) {
        g_string_append(text, "the trace has no memory rows\n");
        return;
    }
    const TraceMemoryRow *row = trace_memory(trace, peak->row);
    g_autofree char *place = explain_place(subject, peak->instruction);
    g_autofree char *step = trace_step_name(peak->step);
    g_string_append_printf(text,
                           "peak_%s_bytes = %" G_GUINT64_FORMAT
                           ": the largest of rank %u's memory rows "
                           "(%s)\n",
                           trace_statistic_name(statistic), (guint64)peak->bytes,
                           subject->summary->rank, meanings[statistic]);
    g_string_append_printf(text,
                           "at %.6f ms (host time), in %s, %s\n"
                           "allocated %" G_GUINT64_FORMAT " B, active %" G_GUINT64_FORMAT
                           " B, reserved %" G_GUINT64_FORMAT " B; held then\n",
                           (double)peak->host_ns / 1e6, step, place, (guint64)row->allocated,
                           (guint64)row->active, (guint64)row->reserved);
    g_autoptr(GArray) alive = find_alive(subject, peak->row);
    append_categories(text, subject, alive, NULL);
    explain_append_tensors(text, subject, alive, NULL);
    append_largest(text, subject, alive, NULL);
}

void explain_held(GString *text, const CliSubject *subject, const char *category) {
    const TracePeak *peak = &subject->summary->peaks[TRACE_ALLOCATED];
    if (!peak->known) {
        g_string_append(text, "the trace has no memory rows\n");
        return;
    }
    g_autoptr(GArray) alive = find_alive(subject, peak->row);
    uint64_t sum = 0;
    for (guint i = 0; i < alive->len; i++) {
        const ExplainAlive *entry = &g_array_index(alive, ExplainAlive, i);
        sum += explain_belongs(subject->trace, entry->category, category) ? entry->bytes : 0;
    }
    g_autofree char *place = explain_place(subject, peak->instruction);
    g_autofree char *step = trace_step_name(peak->step);
    g_string_append_printf(
        text,
        "peak_by_category%s%s = %" G_GUINT64_FORMAT ": bytes of the buffers held "
        "at the peak of allocated memory, in %s, %s\n",
        category != NULL ? "." : "", category != NULL ? category : "", (guint64)sum, step, place);
    append_categories(text, subject, alive, category);
    explain_append_tensors(text, subject, alive, category);
    append_largest(text, subject, alive, category);
}

void explain_held_at_end(GString *text, const CliSubject *subject) {
    const Trace *trace = subject->trace;
    const TraceMemoryRow *last = NULL;
    guint place = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        if (trace_memory(trace, i)->rank == subject->summary->rank) {
            last = trace_memory(trace, i);
            place = i;
        }
    }
    if (last == NULL) {
        g_string_append(text, "the trace has no memory rows\n");
        return;
    }
    g_autofree char *allocated = trace_bytes_text((double)last->allocated);
    g_autofree char *active = trace_bytes_text((double)last->active);
    g_autofree char *reserved = trace_bytes_text((double)last->reserved);
    g_string_append_printf(text, "allocated %s, active %s, reserved %s; held then\n", allocated,
                           active, reserved);
    g_autoptr(GArray) alive = find_alive(subject, place);
    append_categories(text, subject, alive, NULL);
    explain_append_tensors(text, subject, alive, NULL);
    append_largest(text, subject, alive, NULL);
}

static void append_retries_by_step(GString *text, const SimPrediction *prediction) {
    uint32_t n = prediction->n_steps;
    g_string_append_printf(text,
                           "alloc_retries = %" G_GUINT64_FORMAT ": predicted, in all steps\n"
                           "alloc_retry_rate.steps = %u: how many these are\n"
                           "alloc_retry_rate.per_step = %.6g: in each of the last %u of them\n",
                           (guint64)prediction->alloc_retries, n, prediction->retries_per_step,
                           n - n / 2);
}

void explain_retries(GString *text, const CliSubject *subject) {
    const Trace *trace = subject->trace;
    uint64_t reserved = 0;
    guint n = 0;
    g_string_append(text,
                    "alloc_retries: how often an allocation finds no room, so that the allocator "
                    "frees cached segments and tries again; in a trace, reserved falls\n");
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != subject->summary->rank) {
            continue;
        }
        if (row->reserved < reserved) {
            g_autofree char *place = explain_place(subject, row->instruction);
            g_autofree char *step = trace_step_name(row->step);
            g_string_append_printf(text, "  %s, %s: %" G_GUINT64_FORMAT " B freed\n", step, place,
                                   (guint64)(reserved - row->reserved));
            n++;
        }
        reserved = row->reserved;
    }
    g_string_append_printf(text, "  %u time%s in this trace\n", n, n == 1 ? "" : "s");
    if (subject->prediction != NULL) {
        append_retries_by_step(text, subject->prediction);
    }
}
