/* plots/lanes.c - the tables of the picture of lanes. */
#include <string.h>

#include "plots/lane-boxes.h"
#include "plots/lanes-cells.h"
#include "trace/summary.h"

GArray *plot_lane_classes(const PlotPanel *panels, guint n_panels, int32_t first_step,
                          int32_t last_step) {
    const Trace *trace = panels[0].trace;
    g_autofree bool *phases = g_new0(bool, MAX(1, trace->phases->len));
    g_autofree bool *kinds = g_new0(bool, MAX(1, trace->kinds->len));
    for (guint p = 0; p < n_panels; p++) {
        uint32_t role = trace_role_of_rank(panels[p].trace, panels[p].rank);
        for (guint i = 0; i < panels[p].trace->ops->len; i++) {
            const TraceOpRow *row = trace_op(panels[p].trace, i);
            if (plot_lanes_show(&panels[p], row, first_step, last_step)) {
                const TraceInstruction *instruction = plot_instruction_of(&panels[p], role, row);
                bool collective = trace_kind(panels[p].trace, instruction->kind)->kind_class ==
                                  TRACE_KIND_COLLECTIVE;
                *(collective ? &kinds[instruction->kind] : &phases[instruction->phase]) = true;
            }
        }
    }
    GArray *classes = g_array_new(FALSE, FALSE, sizeof(PlotLaneClass));
    for (guint i = 0; i < trace->phases->len; i++) {
        PlotLaneClass lane_class = {trace->phases->pdata[i], false, i};
        if (phases[i]) {
            g_array_append_val(classes, lane_class);
        }
    }
    for (guint i = 0; i < trace->kinds->len; i++) {
        PlotLaneClass lane_class = {trace_kind(trace, i)->name, true, i};
        if (kinds[i]) {
            g_array_append_val(classes, lane_class);
        }
    }
    return classes;
}

GString *plot_lane_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                         const PlotLaneClass *lane_class, int64_t origin_ns, int64_t join_ns) {
    g_autoptr(GArray) boxes =
        plot_lane_boxes(panel, first_step, last_step, lane_class, origin_ns, join_ns);
    GString *table = g_string_new("start_ns\tend_ns\tlane\n");
    for (guint i = 0; i < boxes->len; i++) {
        const PlotBox *box = &g_array_index(boxes, PlotBox, i);
        g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\t%u\n",
                               (gint64)box->start_ns, (gint64)box->end_ns, box->lane);
    }
    return table;
}

GString *plot_exposed_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                            int64_t origin_ns, int64_t join_ns) {
    g_autoptr(GArray) exposed =
        plot_exposed_boxes(panel, first_step, last_step, origin_ns, join_ns);
    GString *table = g_string_new("start_ns\tend_ns\n");
    for (guint i = 0; i < exposed->len; i++) {
        const PlotBox *box = &g_array_index(exposed, PlotBox, i);
        g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%" G_GINT64_FORMAT "\n",
                               (gint64)box->start_ns, (gint64)box->end_ns);
    }
    return table;
}

static int compare_moments(gconstpointer a, gconstpointer b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

GString *plot_host_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                         int64_t origin_ns, int64_t apart_ns) {
    g_autoptr(GArray) moments = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint i = 0; i < panel->trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(panel->trace, i);
        if (plot_lanes_show(panel, row, first_step, last_step)) {
            int64_t issue_ns = row->host_issue_ns - origin_ns;
            g_array_append_val(moments, issue_ns);
        }
    }
    g_array_sort(moments, compare_moments);
    GString *table = g_string_new("issue_ns\n");
    for (guint i = 0; i < moments->len; i++) {
        static const int64_t never = INT64_MIN / 2;
        int64_t at_ns = g_array_index(moments, int64_t, i);
        int64_t last_ns = i > 0 ? g_array_index(moments, int64_t, i - 1) : never;
        if (at_ns - last_ns >= apart_ns) {
            g_string_append_printf(table, "%" G_GINT64_FORMAT "\n", (gint64)at_ns);
        } else {
            g_array_index(moments, int64_t, i) = last_ns; /* the next is held against what stands */
        }
    }
    return table;
}

/* The start of the first step shown, by the rule of trace/summary.h; and the end of what is shown.
 * */
static int64_t find_origin(const PlotPanel *panel, const PlotOptions *options, PlotExtent *extent) {
    int64_t origin_ns = 0, end_ns = 0;
    bool found = false;
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (!found && step->step >= options->first_step) {
            origin_ns = step->start_ns;
            end_ns = origin_ns;
            found = true;
        }
    }
    for (guint i = 0; i < panel->trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(panel->trace, i);
        if (plot_lanes_show(panel, row, options->first_step, options->last_step)) {
            extent->first_ns = MIN(extent->first_ns, row->start_ns - origin_ns);
            end_ns = MAX(end_ns, row->end_ns);
        }
    }
    extent->last_ns = MAX(extent->last_ns, end_ns - origin_ns);
    return origin_ns;
}

/* For text: the first letter of each class's name that no class before it has; collectives in upper
 * case. "!" is exposed communication. */
static void append_letters(GString *settings, GArray *classes) {
    g_autoptr(GString) used = g_string_new("!");
    g_string_append_printf(settings, "array letter[%u]\n", classes->len + 1);
    for (guint i = 0; i < classes->len; i++) {
        const PlotLaneClass *lane_class = &g_array_index(classes, PlotLaneClass, i);
        char letter = '?';
        for (const char *c = lane_class->name; *c != '\0' && letter == '?'; c++) {
            char candidate = lane_class->is_collective ? g_ascii_toupper(*c) : g_ascii_tolower(*c);
            if (g_ascii_isalpha(candidate) && strchr(used->str, candidate) == NULL) {
                letter = candidate;
            }
        }
        g_string_append_c(used, letter);
        g_string_append_printf(settings, "letter[%u] = \"%c\"\n", i + 1, letter);
    }
    g_string_append_printf(settings, "letter[%u] = \"!\"\n", classes->len + 1);
}

static void append_classes(GString *settings, const GArray *classes) {
    g_string_append_printf(settings, "n_classes = %u\narray class[%u]\narray collective[%u]\n",
                           classes->len, MAX(1, classes->len), MAX(1, classes->len));
    for (guint i = 0; i < classes->len; i++) {
        const PlotLaneClass *lane_class = &g_array_index(classes, PlotLaneClass, i);
        g_autofree char *key = g_strdup_printf("class[%u]", i + 1);
        plot_set_text(settings, key, lane_class->name);
        g_string_append_printf(settings, "collective[%u] = %d\n", i + 1, lane_class->is_collective);
    }
}

/* The names of the lanes that do anything in the steps shown, from the top; and the row of each
 * lane of the tables, in which "exposed" comes below the last. */
static void append_lanes(const PlotSheet *sheet) {
    const PlotPanel *panels = sheet->panels;
    GString *settings = sheet->settings;
    const GPtrArray *lanes = panels[0].trace->lanes;
    g_autofree bool *used = g_new0(bool, MAX(1, lanes->len));
    for (guint p = 0; p < sheet->n_panels; p++) {
        for (guint i = 0; i < panels[p].trace->ops->len; i++) {
            const TraceOpRow *row = trace_op(panels[p].trace, i);
            if (plot_lanes_show(&panels[p], row, sheet->options->first_step,
                                sheet->options->last_step)) {
                used[row->lane] = true;
            }
        }
    }
    guint n = 0;
    g_string_append_printf(settings, "array lane[%u]\narray row[%u]\n", MAX(1, lanes->len),
                           lanes->len + 1);
    for (guint i = 0; i < lanes->len; i++) {
        g_string_append_printf(settings, "row[%u] = %u\n", i + 1, n);
        if (used[i]) {
            g_autofree char *key = g_strdup_printf("lane[%u]", ++n);
            plot_set_text(settings, key, lanes->pdata[i]);
        }
    }
    g_string_append_printf(settings, "row[%u] = %u\nn_lanes = %u\n", lanes->len + 1, n, n);
}

/* number: the panel's, from 1 on. */
static bool write_panel(const PlotSheet *sheet, guint number, const GArray *classes,
                        int64_t origin_ns, GError **error) {
    const PlotPanel *panel = &sheet->panels[number - 1];
    const PlotOptions *options = sheet->options;
    const PlotExtent *extent = &sheet->extent;
    int32_t first = options->first_step, last = options->last_step;
    int64_t shown_ns = extent->last_ns - extent->first_ns;
    int64_t join_ns = shown_ns / (4 * PLOT_SLICES);
    for (guint k = 0; k < classes->len; k++) {
        g_autoptr(GString) boxes = plot_lane_table(
            panel, first, last, &g_array_index(classes, PlotLaneClass, k), origin_ns, join_ns);
        g_autofree char *name = g_strdup_printf("boxes-%u-%u.tsv", number, k + 1);
        if (!plot_write(sheet->folder, name, boxes, error)) {
            return false;
        }
    }
    bool is_text = options->output == NULL;
    int64_t apart_ns = is_text ? shown_ns / MAX(1, extent->columns) : join_ns;
    g_autoptr(GString) exposed = plot_exposed_table(panel, first, last, origin_ns, join_ns);
    g_autoptr(GString) host = plot_host_table(panel, first, last, origin_ns, apart_ns);
    g_autofree char *exposed_name = g_strdup_printf("exposed-%u.tsv", number);
    g_autofree char *host_name = g_strdup_printf("host-%u.tsv", number);
    return plot_write(sheet->folder, exposed_name, exposed, error) &&
           plot_write(sheet->folder, host_name, host, error) &&
           (!is_text || shown_ns <= 0 ||
            plot_write_lane_cells(sheet, number, classes, origin_ns, error));
}

bool plot_write_lanes(PlotSheet *sheet, GError **error) {
    const PlotOptions *options = sheet->options;
    int64_t origins_ns[PLOT_MAX_PANELS];
    for (guint i = 0; i < sheet->n_panels; i++) {
        origins_ns[i] = find_origin(&sheet->panels[i], options, &sheet->extent);
    }
    g_autoptr(GArray) classes =
        plot_lane_classes(sheet->panels, sheet->n_panels, options->first_step, options->last_step);
    append_letters(sheet->settings, classes);
    append_classes(sheet->settings, classes);
    append_lanes(sheet);
    for (guint i = 0; i < sheet->n_panels; i++) {
        if (!write_panel(sheet, i + 1, classes, origins_ns[i], error)) {
            return false;
        }
    }
    return true;
}
