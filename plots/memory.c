/* plots/memory.c - the tables of the picture of memory over time, thinned with no peak lost. */
#include "plots/private.h"
#include "plots/thin.h"
#include "trace/ended.h"
#include "trace/moments.h"
#include "trace/summary.h"

enum {
    CREST_SLICES = 400 /* what is closer than four pixels would be a smear */
};

static void append_corner(GString *table, int64_t at_ns, uint64_t bytes) {
    g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%" G_GUINT64_FORMAT "\n", (gint64)at_ns,
                           (guint64)bytes);
}

/* The upper edge of the stack's first layers, as an area's outline: "time size" at each corner. */
static GString *outline_table(const GArray *rows, guint n_layers) {
    GString *table = g_string_new("time_ns\tbytes\n");
    uint64_t held = 0;
    const TraceMoment *last = NULL;
    for (guint i = 0; i < rows->len; i++) {
        const TraceMoment *moment = &g_array_index(rows, TraceMoment, i);
        uint64_t bytes = 0;
        for (guint k = 0; k < n_layers; k++) {
            bytes += moment->values[k];
        }
        if (last != NULL && bytes != held) {
            append_corner(table, moment->at_ns, held);
        }
        if (last == NULL || bytes != held) {
            append_corner(table, moment->at_ns, bytes);
        }
        held = bytes;
        last = moment;
    }
    if (last != NULL) {
        append_corner(table, last->at_ns, held);
    }
    return table;
}

/* NAME-NUMBER-LAYER.tsv, a layer a category. */
static bool write_outlines(const GArray *rows, guint n_layers, const char *name, guint number,
                           const char *folder, GError **error) {
    bool written = true;
    for (guint k = 1; k <= n_layers && written; k++) {
        g_autoptr(GString) table = outline_table(rows, k);
        g_autofree char *file = g_strdup_printf("%s-%u-%u.tsv", name, number, k);
        written = plot_write(folder, file, table, error);
    }
    return written;
}

/* All that comes and goes, and its crests, which stand where that is too quick to be seen. */
static bool write_areas(const TraceMoments *moments, guint number, const char *folder,
                        GError **error) {
    g_autoptr(GArray) kept = plot_thin(moments, PLOT_SLICES);
    g_autoptr(GArray) crests = plot_crests(moments, CREST_SLICES);
    guint n_layers = moments->categories->len;
    g_autofree char *name = g_strdup_printf("crests-%u.tsv", number);
    g_autoptr(GString) table = plot_moments_table(crests, moments->categories);
    return plot_write(folder, name, table, error) &&
           write_outlines(kept, n_layers, "outline", number, folder, error) &&
           write_outlines(crests, n_layers, "crest", number, folder, error);
}

/* Where steps begin, except the first shown: time, "step 3". */
static GString *step_table(const PlotPanel *panel, int32_t first_step, int32_t last_step) {
    GString *table = g_string_new("time_ns\tstep\n");
    int64_t origin_ns = trace_moments_origin_ns(panel->trace, panel->rank, first_step);
    int32_t last = INT32_MIN;
    for (guint i = 0; i < panel->trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(panel->trace, i);
        if (row->rank == panel->rank && row->step != last && row->step >= first_step &&
            row->step <= last_step) {
            int64_t at_ns = last == INT32_MIN ? 0 : row->host_ns - origin_ns;
            g_autofree char *name = trace_step_name(row->step);
            g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%s\n", (gint64)at_ns, name);
            last = row->step;
        }
    }
    return table;
}

/* The first moment at which the steps shown hold the most. */
static GString *peak_table(const PlotPanel *panel, int32_t first_step, int32_t last_step) {
    const Trace *trace = panel->trace;
    GString *table = g_string_new("time_ns\tallocated\tlabel\n");
    const TraceMemoryRow *peak = NULL;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == panel->rank && row->step >= first_step && row->step <= last_step &&
            (peak == NULL || row->allocated > peak->allocated)) {
            peak = row;
        }
    }
    if (peak == NULL) {
        return table;
    }
    const TraceInstruction *instruction =
        trace_instruction(trace, trace_role_of_rank(trace, panel->rank), peak->instruction);
    TraceScale scale = trace_scale_bytes((double)peak->allocated);
    g_autofree char *step = trace_step_name(peak->step);
    g_autofree char *place = trace_place_name(trace, instruction->phase, instruction->unit);
    g_string_append_printf(
        table, "%" G_GINT64_FORMAT "\t%" G_GUINT64_FORMAT "\tpeak %.2f %s, %s, %s\n",
        (gint64)(peak->host_ns - trace_moments_origin_ns(panel->trace, panel->rank, first_step)),
        (guint64)peak->allocated, (double)peak->allocated / scale.per_unit, scale.unit, step,
        place);
    return table;
}

static void widen(PlotExtent *extent, const TraceMoments *moments) {
    for (guint i = 0; i < moments->rows->len; i++) {
        const TraceMoment *moment = trace_moment(moments, i);
        extent->last_ns = MAX(extent->last_ns, moment->at_ns);
        extent->first_ns = MIN(extent->first_ns, moment->at_ns);
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            extent->bytes = MAX(extent->bytes, moment->values[moments->categories->len + k]);
        }
    }
}

/* The limit that stands for all panels: 0 where they have none, or not the same. */
static uint64_t common_limit_bytes(const PlotPanel *panels, guint n_panels) {
    uint64_t limit = trace_limit_bytes(panels[0].trace);
    for (guint i = 1; i < n_panels; i++) {
        limit = trace_limit_bytes(panels[i].trace) == limit ? limit : 0;
    }
    return limit;
}

/* The limit is drawn where it is near. */
static void append_limit(PlotSheet *sheet) {
    PlotExtent *extent = &sheet->extent;
    uint64_t limit = common_limit_bytes(sheet->panels, sheet->n_panels);
    bool shown = limit > 0 && (double)limit < 1.3 * (double)extent->bytes;
    extent->bytes = shown ? MAX(extent->bytes, limit) : extent->bytes;
    g_string_append_printf(sheet->settings,
                           "limit_shown = %d\nlimit_bytes = %" G_GUINT64_FORMAT ".0\n", shown,
                           (guint64)limit);
}

static void append_categories(GString *settings, const GPtrArray *names) {
    g_string_append_printf(settings, "n_categories = %u\narray category[%u]\n", names->len,
                           MAX(1, names->len));
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *key = g_strdup_printf("category[%u]", i + 1);
        plot_set_text(settings, key, names->pdata[i]);
    }
}

/* number: the panel's, from 1 on. */
static bool write_panel(const PlotSheet *sheet, guint number, const TraceMoments *moments,
                        GError **error) {
    const PlotPanel *panel = &sheet->panels[number - 1];
    const PlotOptions *options = sheet->options;
    g_autoptr(GString) steps = step_table(panel, options->first_step, options->last_step);
    g_autoptr(GString) peak = peak_table(panel, options->first_step, options->last_step);
    g_autofree char *steps_name = g_strdup_printf("steps-%u.tsv", number);
    g_autofree char *peak_name = g_strdup_printf("peak-%u.tsv", number);
    return write_areas(moments, number, sheet->folder, error) &&
           plot_write(sheet->folder, steps_name, steps, error) &&
           plot_write(sheet->folder, peak_name, peak, error) &&
           (options->output != NULL ||
            plot_write_memory_cells(moments, &sheet->extent, number, sheet->folder, error));
}

bool plot_write_memory(PlotSheet *sheet, GError **error) {
    const PlotOptions *options = sheet->options;
    TraceMoments *moments[PLOT_MAX_PANELS] = {NULL};
    for (guint i = 0; i < sheet->n_panels; i++) {
        moments[i] = trace_moments_new(sheet->panels[i].trace, sheet->panels[i].rank,
                                       options->first_step, options->last_step);
        widen(&sheet->extent, moments[i]);
    }
    append_limit(sheet);
    append_categories(sheet->settings, moments[0]->categories);
    bool written = true;
    for (guint i = 0; i < sheet->n_panels; i++) {
        written = written && write_panel(sheet, i + 1, moments[i], error);
        trace_moments_free(moments[i]);
    }
    return written;
}
