#include "plots/private.h"
#include "trace/files.h"
#include "trace/import/to-trace.h"
#include "trace/moments.h"

char *plot_script(PlotPicture picture, const char *output) {
    const char *name = NULL;
    switch (picture) {
    case PLOT_PICTURE_MEMORY:
        name = "memory";
        break;
    case PLOT_PICTURE_LANES:
        name = "lanes";
        break;
    case PLOT_PICTURE_JITTER:
        name = "jitter";
        break;
    }
    g_assert(name != NULL);
    return g_strconcat(name, output == NULL ? "-text.gp" : ".gp", NULL);
}

static char *panel_label(const PlotPanel *panel) {
    GString *label = g_string_new(trace_get(panel->trace, "side"));
    static const char *const facts[] = {"device", "cluster"};
    for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
        const char *value = trace_get(panel->trace, facts[i]);
        if (value != NULL && value[0] != '\0') {
            g_string_append_printf(label, ", %s %s", facts[i], value);
        }
    }
    if (trace_manner(panel->trace)) {
        g_string_append_printf(label, ", %s", trace_manner(panel->trace));
    }
    g_autofree char *rank = trace_rank_text(panel->trace, panel->rank);
    g_string_append_printf(label, ", %s", rank);
    return g_string_free(label, FALSE);
}

static char *plan_title(const Trace *trace) {
    const char *title = trace_get(trace, "title");
    if (title != NULL) {
        return g_strdup(title);
    }
    const char *network = trace_get(trace, "network"), *strategy = trace_get(trace, "strategy");
    const char *world = trace_get(trace, "world");
    return g_strdup_printf("%s, %s, world %s", network != NULL ? network : "unnamed network",
                           strategy != NULL ? strategy : "unnamed strategy",
                           world != NULL ? world : "?");
}

/* "step 3", "steps 2 to 5", "construction to step 3". */
static char *shown_steps(const PlotOptions *options) {
    g_autofree char *first = trace_step_name(options->first_step);
    g_autofree char *last = trace_step_name(options->last_step);
    if (options->first_step == options->last_step) {
        return g_steal_pointer(&first);
    }
    return options->first_step < 0
               ? g_strdup_printf("%s to %s", first, last)
               : g_strdup_printf("steps %d to %d", options->first_step, options->last_step);
}

static void append_settings(const PlotSheet *sheet, PlotPicture picture) {
    const PlotPanel *panels = sheet->panels;
    const PlotOptions *options = sheet->options;
    const PlotExtent *extent = &sheet->extent;
    GString *settings = sheet->settings;
    guint n_panels = sheet->n_panels;
    g_autofree char *title = plan_title(panels[0].trace);
    g_autofree char *scripts = g_canonicalize_filename(options->scripts, NULL);
    plot_set_text(settings, "scripts", scripts);
    plot_set_text(settings, "plan_title", title);
    g_string_append_printf(settings, "n_panels = %u\narray panel[%u]\narray lesson[%u]\n", n_panels,
                           n_panels, n_panels);
    for (guint i = 0; i < n_panels; i++) {
        g_autofree char *key = g_strdup_printf("panel[%u]", i + 1);
        g_autofree char *label = panel_label(&panels[i]);
        plot_set_text(settings, key, label);
        g_autofree char *lesson_key = g_strdup_printf("lesson[%u]", i + 1);
        g_autofree char *lesson = plot_lesson(picture, &panels[i], options);
        plot_set_text(settings, lesson_key, lesson);
    }
    TraceScale time = trace_scale_time((double)(extent->last_ns - extent->first_ns));
    TraceScale size = trace_scale_bytes((double)extent->bytes);
    plot_set_text(settings, "time_unit", time.unit);
    plot_set_text(settings, "size_unit", size.unit);
    g_autofree char *first = trace_step_name(options->first_step);
    g_autofree char *shown = shown_steps(options);
    plot_set_text(settings, "first_name", first);
    plot_set_text(settings, "shown_steps", shown);
    g_string_append_printf(settings,
                           "ns_per_unit = %.1f\nbytes_per_unit = %.1f\n"
                           "first_ns = %" G_GINT64_FORMAT ".0\nlast_ns = %" G_GINT64_FORMAT
                           ".0\nmost_bytes = %" G_GUINT64_FORMAT
                           ".0\nfirst_step = %d\nlast_step = %d\ncolumns = %u\nrows = %u\n",
                           time.per_unit, size.per_unit, (gint64)extent->first_ns,
                           (gint64)extent->last_ns, (guint64)extent->bytes, options->first_step,
                           options->last_step, extent->columns, extent->rows);
}

static bool refuse_steps(const PlotPanel *panels, guint n_panels, const PlotOptions *options,
                         GError **error) {
    int32_t last = -1; /* construction */
    for (guint i = 0; i < n_panels; i++) {
        for (guint k = 0; k < panels[i].trace->memory->len; k++) {
            last = MAX(last, trace_memory(panels[i].trace, k)->step);
        }
    }
    g_autofree char *shown = shown_steps(options);
    g_autofree char *most = g_strdup_printf("; the last is step %d", last);
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE, "the traces have no rows to draw in %s%s",
                shown, last >= 0 ? most : "");
    return false;
}

static bool write_tables(PlotSheet *sheet, PlotPicture picture, GError **error) {
    switch (picture) {
    case PLOT_PICTURE_MEMORY:
        return plot_write_memory(sheet, error);
    case PLOT_PICTURE_LANES:
        return plot_write_lanes(sheet, error);
    case PLOT_PICTURE_JITTER:
        return plot_write_jitter(sheet, error);
    }
    g_assert_not_reached();
}

/* Text: what the scripts' margins leave of the width, and a height that suits a terminal. */
static PlotExtent extent_of(PlotPicture picture, const PlotOptions *options) {
    guint margins = picture == PLOT_PICTURE_MEMORY ? 15 : 21;
    return (PlotExtent){.columns = MAX(60, options->columns) - margins, .rows = 14};
}

static bool draw(PlotSheet *sheet, PlotPicture picture, char **ret_text, GError **error) {
    const PlotOptions *options = sheet->options;
    const PlotExtent *extent = &sheet->extent;
    if (!write_tables(sheet, picture, error)) {
        return false;
    }
    if (extent->last_ns <= extent->first_ns ||
        (picture == PLOT_PICTURE_MEMORY && extent->bytes == 0)) {
        return refuse_steps(sheet->panels, sheet->n_panels, options, error);
    }
    append_settings(sheet, picture);
    g_autofree char *name = plot_script(picture, options->output);
    g_autofree char *script = g_build_filename(options->scripts, name, NULL);
    const PlotRun run = {sheet->folder, script, options->output, options->characters};
    return plot_run(&run, sheet->settings, ret_text, error);
}

/* Of a run without a plan memory alone can be drawn beside a trace, in the same categories. */
static const char *differing_table(PlotPicture picture, const Trace *a, const Trace *b) {
    bool no_plan = g_str_equal(trace_get(a, "digest"), SNAPSHOT_NO_PLAN) ||
                   g_str_equal(trace_get(b, "digest"), SNAPSHOT_NO_PLAN);
    if (picture != PLOT_PICTURE_MEMORY || !no_plan) {
        return trace_differing_table(a, b);
    }
    g_autoptr(GPtrArray) of_a = trace_folded_categories(a), of_b = trace_folded_categories(b);
    bool same = of_a->len == of_b->len;
    for (guint i = 0; same && i < of_a->len; i++) {
        same = g_str_equal(of_a->pdata[i], of_b->pdata[i]);
    }
    return same ? NULL : "categories";
}

bool plot_panels(PlotPicture picture, const PlotPanel *panels, guint n_panels,
                 const PlotOptions *options, char **ret_text, GError **error) {
    g_assert(n_panels >= 1 && n_panels <= PLOT_MAX_PANELS);
    if (!plot_knows(options->output, error)) {
        return false;
    }
    for (guint i = 0; i < n_panels; i++) {
        if (trace_role_of_rank(panels[i].trace, panels[i].rank) == TRACE_NONE) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                        "the %s trace has no rank %u; choose one that it recorded",
                        trace_get(panels[i].trace, "side"), panels[i].rank);
            return false;
        }
        const char *table = differing_table(picture, panels[0].trace, panels[i].trace);
        if (table != NULL) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                        "the traces are of different plans (their %s differ); draw each alone",
                        table);
            return false;
        }
    }
    g_autofree char *folder = trace_folder_new("foreshard-plot-XXXXXX", error);
    if (folder == NULL) {
        return false;
    }
    char *text = NULL;
    g_autoptr(GString) settings = g_string_new(NULL);
    PlotSheet sheet = {panels, n_panels, options, extent_of(picture, options), folder, settings};
    bool drawn = draw(&sheet, picture, &text, error);
    trace_folder_remove(folder);
    if (drawn) {
        *ret_text = text;
    }
    return drawn;
}
