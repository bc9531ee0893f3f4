#include "plots/points.h"

#include <math.h>
#include <string.h>

#include "plots/private.h"
#include "trace/files.h"

char *plot_points_script(PlotPointsPicture picture, const char *output) {
    static const char *const names[] = {
        [PLOT_POINTS_SWEEP] = "sweep",
        [PLOT_POINTS_PARETO] = "pareto",
        [PLOT_POINTS_SCALE] = "scale",
        [PLOT_POINTS_VALIDATION] = "validation",
    };
    return g_strconcat(names[picture], output == NULL ? "-text.gp" : ".gp", NULL);
}

/* ---- what a picture can show ---- */

static bool has_place(PlotPointsPicture picture, const PlotPoint *point) {
    switch (picture) {
    case PLOT_POINTS_SWEEP:
        return !isnan(point->step_ns) && !isnan(point->reserved_bytes);
    case PLOT_POINTS_PARETO:
        return !isnan(point->cost_ns) && !isnan(point->reserved_bytes);
    case PLOT_POINTS_SCALE:
        return !isnan(point->flops_per_s);
    case PLOT_POINTS_VALIDATION:
        return (point->x > 0 && point->step_ns > 0) ||
               (point->published_bytes > 0 && point->reserved_bytes > 0);
    }
    g_assert_not_reached();
}

static const char *what_it_needs(PlotPointsPicture picture) {
    switch (picture) {
    case PLOT_POINTS_SWEEP:
        return "a step time and a peak of reserved memory";
    case PLOT_POINTS_PARETO:
        return "a cost and a peak of reserved memory";
    case PLOT_POINTS_SCALE:
        return "operations a second";
    case PLOT_POINTS_VALIDATION:
        return "a published time or peak beside a predicted one";
    }
    g_assert_not_reached();
}

/* Points that lack what the picture draws are left out. */
static GArray *find_shown(PlotPointsPicture picture, const GArray *points) {
    GArray *shown = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    for (guint i = 0; i < points->len; i++) {
        if (has_place(picture, plot_point(points, i))) {
            g_array_append_vals(shown, plot_point(points, i), 1);
        }
    }
    return shown;
}

/* ---- tables ---- */

static int compare_places(gconstpointer a, gconstpointer b, gpointer data) {
    const GArray *points = data;
    guint i = *(const guint *)a, k = *(const guint *)b;
    double x = plot_point(points, i)->x, y = plot_point(points, k)->x;
    x = isnan(x) ? -INFINITY : x;
    y = isnan(y) ? -INFINITY : y;
    return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

static void append_number(GString *table, double value) {
    if (isnan(value)) {
        g_string_append(table, "\t?");
    } else {
        g_string_append_printf(table, "\t%.0f", value);
    }
}

static void append_point(GString *table, const PlotPoint *point) {
    char x[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(x, sizeof x, point->x);
    g_string_append_printf(table, "%s\t%s", isnan(point->x) ? "?" : x, point->label);
    append_number(table, point->step_ns);
    append_number(table, point->least_ns);
    append_number(table, point->most_ns);
    append_number(table, point->allocated_bytes);
    append_number(table, point->reserved_bytes);
    append_number(table, point->flops_per_s);
    g_string_append_printf(table, "\t%d", point->fits);
    append_number(table, point->cost_ns);
    append_number(table, point->published_bytes > 0 ? point->published_bytes : NAN);
    g_string_append_c(table, '\n');
}

static GString *new_table(void) {
    return g_string_new("x\tlabel\tstep_ns\tleast_ns\tmost_ns\tallocated\treserved\tflops\tfits\t"
                        "cost_ns\tpublished\n");
}

GString *plot_points_table(const GArray *points, const char *series, bool measured) {
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        if (point->measured == measured && g_str_equal(point->series, series)) {
            g_array_append_val(order, i);
        }
    }
    g_array_sort_with_data(order, compare_places, (gpointer)points);
    GString *table = new_table();
    for (guint i = 0; i < order->len; i++) {
        append_point(table, plot_point(points, g_array_index(order, guint, i)));
    }
    return table;
}

static GString *front_table(const GArray *points) {
    g_autoptr(GArray) front = plot_points_front(points);
    GString *table = new_table();
    for (guint i = 0; i < front->len; i++) {
        append_point(table, plot_point(points, g_array_index(front, guint, i)));
    }
    return table;
}

/* ---- settings ---- */

/* Series in the order in which they come; those of lines and marks share a number. */
static GPtrArray *find_series(const GArray *points) {
    GPtrArray *series = g_ptr_array_new();
    for (guint i = 0; i < points->len; i++) {
        const char *name = plot_point(points, i)->series;
        if (!g_ptr_array_find_with_equal_func(series, name, g_str_equal, NULL)) {
            g_ptr_array_add(series, (gpointer)name);
        }
    }
    return series;
}

typedef struct {
    double step_ns, cost_ns, bytes, flops_per_s; /* the most of each */
    double least_x, most_x, least_step_ns;
    double least_peak, most_peak; /* published ones, and what is predicted of those */
    guint n_lines, n_marks;       /* points of either sort */
    guint n_unfit;
} Extent;

static double most_of(double a, double b) {
    return isnan(b) ? a : MAX(a, b);
}

static double least_of(double a, double b) {
    return isnan(b) ? a : MIN(a, b);
}

static Extent find_extent(const GArray *points) {
    Extent extent = {.least_x = INFINITY,
                     .most_x = -INFINITY,
                     .least_step_ns = INFINITY,
                     .least_peak = INFINITY};
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        extent.step_ns = most_of(most_of(extent.step_ns, point->step_ns), point->most_ns);
        extent.least_step_ns = least_of(extent.least_step_ns, point->step_ns);
        extent.cost_ns = most_of(extent.cost_ns, point->cost_ns);
        extent.bytes = most_of(extent.bytes, point->reserved_bytes);
        extent.flops_per_s = most_of(extent.flops_per_s, point->flops_per_s);
        extent.least_x = least_of(extent.least_x, point->x);
        extent.most_x = most_of(extent.most_x, point->x);
        if (point->published_bytes > 0) {
            extent.least_peak = MIN(extent.least_peak, point->published_bytes);
            extent.least_peak = least_of(extent.least_peak, point->reserved_bytes);
            extent.most_peak = MAX(extent.most_peak, point->published_bytes);
            extent.most_peak = most_of(extent.most_peak, point->reserved_bytes);
        }
        extent.n_unfit += !point->fits;
        *(point->measured ? &extent.n_marks : &extent.n_lines) += 1;
    }
    if (extent.most_x < extent.least_x) { /* peaks alone */
        extent.least_x = extent.most_x = 0;
    }
    return extent;
}

static void append_real(GString *settings, const char *key, double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof text, "%.17g", value);
    g_string_append_printf(settings, "%s = %s%s\n", key, text,
                           strpbrk(text, ".en") == NULL ? ".0" : "");
}

/* As a tic's label between single quotes: two of those mean one, and a label is a format. */
static void append_quoted(GString *tics, const char *label) {
    g_string_append_c(tics, '\'');
    for (const char *c = label; *c != '\0'; c++) {
        bool is_quote = *c == '\'' || *c == '`'; /* plot_set_text() makes one of a backquote */
        g_string_append_c(tics, is_quote ? '\'' : *c);
        if (is_quote || *c == '%') {
            g_string_append_c(tics, is_quote ? '\'' : '%');
        }
    }
    g_string_append_c(tics, '\'');
}

/* "wrap" at x 0, "whole" at 1: the tics of a knob whose values are words. */
static void append_tics(GString *settings, const GArray *points, bool x_is_number) {
    g_autoptr(GString) tics = g_string_new(NULL);
    g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        if (!isnan(point->x) && g_hash_table_add(done, (gpointer)point->label)) {
            char x[G_ASCII_DTOSTR_BUF_SIZE];
            g_string_append(tics, tics->len > 0 ? ", " : "");
            append_quoted(tics, point->label);
            g_string_append_printf(tics, " %s", g_ascii_dtostr(x, sizeof x, point->x));
        }
    }
    plot_set_text(settings, "tics", tics->str);
    g_string_append_printf(settings, "n_tics = %u\nx_is_number = %d\n", g_hash_table_size(done),
                           x_is_number);
}

static void append_settings(GString *settings, const GArray *points, const GPtrArray *series,
                            const PlotPointsOptions *options) {
    Extent extent = find_extent(points);
    TraceScale time = trace_scale_time(extent.step_ns);
    TraceScale size = trace_scale_bytes(extent.bytes);
    g_autofree char *scripts = g_canonicalize_filename(options->scripts, NULL);
    plot_set_text(settings, "scripts", scripts);
    plot_set_text(settings, "plan_title", options->title);
    plot_set_text(settings, "x_name", options->x_name);
    plot_set_text(settings, "time_unit", time.unit);
    plot_set_text(settings, "size_unit", size.unit);
    append_real(settings, "ns_per_unit", time.per_unit);
    append_real(settings, "bytes_per_unit", size.per_unit);
    append_real(settings, "most_step_ns", extent.step_ns);
    TraceScale cost = trace_scale_time(extent.cost_ns);
    plot_set_text(settings, "cost_name", options->cost_name);
    plot_set_text(settings, "cost_unit", cost.unit);
    append_real(settings, "cost_per_unit", cost.per_unit);
    append_real(settings, "most_cost_ns", extent.cost_ns);
    append_real(settings, "most_bytes", extent.bytes);
    append_real(settings, "most_flops", extent.flops_per_s);
    append_real(settings, "least_x", extent.least_x);
    append_real(settings, "most_x", extent.most_x);
    append_real(settings, "least_step_ns", isinf(extent.least_step_ns) ? 0 : extent.least_step_ns);
    g_string_append_printf(settings, "published_known = %d\n", extent.most_peak > 0);
    append_real(settings, "least_peak", extent.most_peak > 0 ? extent.least_peak : 0);
    append_real(settings, "most_peak", extent.most_peak);
    g_string_append_printf(settings, "limit_known = %d\n", !isnan(options->limit_bytes));
    append_real(settings, "limit_bytes", isnan(options->limit_bytes) ? 0 : options->limit_bytes);
    g_string_append_printf(settings, "n_lines = %u\nn_marks = %u\nn_unfit = %u\ncolumns = %u\n",
                           extent.n_lines, extent.n_marks, extent.n_unfit,
                           MAX(60, options->columns));
    plot_set_text(settings, "marks_name", options->marks_name);
    append_tics(settings, points, options->x_is_number);
    g_string_append_printf(settings, "n_series = %u\narray series[%u]\n", series->len, series->len);
    for (guint i = 0; i < series->len; i++) {
        g_autofree char *key = g_strdup_printf("series[%u]", i + 1);
        plot_set_text(settings, key, series->pdata[i]);
    }
}

static const double LIMIT_SHOWN = 2.5; /* times the highest point: plots/scripts/points.gp */

/* The number of each point of the front, or 0, and the labels of those that have one, for a key. */
static void append_front(GString *settings, const GArray *points, double limit_bytes) {
    g_autoptr(GArray) front = plot_points_front(points);
    Extent extent = find_extent(points);
    bool is_shown = limit_bytes > extent.bytes && limit_bytes < LIMIT_SHOWN * extent.bytes;
    g_autofree guint *numbers =
        plot_points_numbers(points, front, extent.cost_ns, is_shown ? limit_bytes : extent.bytes);
    guint n_numbered = 0;
    g_string_append_printf(settings, "n_front = %u\narray number[%u]\narray front[%u]\n",
                           front->len, MAX(1, front->len), MAX(1, front->len));
    for (guint i = 0; i < front->len; i++) {
        g_string_append_printf(settings, "number[%u] = %u\n", i + 1, numbers[i]);
        if (numbers[i] > 0) {
            n_numbered = numbers[i];
            g_autofree char *key = g_strdup_printf("front[%u]", n_numbered);
            plot_set_text(settings, key, plot_point(points, g_array_index(front, guint, i))->label);
        }
    }
    g_string_append_printf(settings, "n_numbered = %u\n", n_numbered);
}

static bool write_tables(const GArray *points, const GPtrArray *series, const char *folder,
                         GError **error) {
    for (guint i = 0; i < series->len; i++) {
        for (guint measured = 0; measured < 2; measured++) {
            g_autoptr(GString) table = plot_points_table(points, series->pdata[i], measured);
            g_autofree char *name =
                g_strdup_printf("%s-%u.tsv", measured ? "marks" : "line", i + 1);
            if (!plot_write(folder, name, table, error)) {
                return false;
            }
        }
    }
    g_autoptr(GString) front = front_table(points);
    return plot_write(folder, "front.tsv", front, error);
}

bool plot_points(PlotPointsPicture picture, const GArray *all, const PlotPointsOptions *options,
                 char **ret_text, GError **error) {
    if (!plot_knows(options->output, error)) {
        return false;
    }
    g_autoptr(GArray) points = find_shown(picture, all);
    if (points->len == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "no point has what this picture shows, %s; draw another picture, or name "
                    "points that have it",
                    what_it_needs(picture));
        return false;
    }
    g_autofree char *folder = trace_folder_new("foreshard-plot-XXXXXX", error);
    if (folder == NULL) {
        return false;
    }
    g_autoptr(GPtrArray) series = find_series(points);
    g_autoptr(GString) settings = g_string_new(NULL);
    append_settings(settings, points, series, options);
    g_autofree char *lesson = plot_points_lesson(picture, points, options);
    plot_set_text(settings, "lesson", lesson);
    append_front(settings, points, options->limit_bytes);
    if (picture == PLOT_POINTS_VALIDATION) {
        g_string_append(settings, "shape = 0.475\n"); /* of two squares, a title and a key */
    }
    g_autofree char *name = plot_points_script(picture, options->output);
    g_autofree char *script = g_build_filename(options->scripts, name, NULL);
    const PlotRun run = {folder, script, options->output, options->characters};
    bool drawn =
        write_tables(points, series, folder, error) && plot_run(&run, settings, ret_text, error);
    trace_folder_remove(folder);
    if (drawn && options->output == NULL && picture != PLOT_POINTS_VALIDATION) {
        g_autofree char *drawing = *ret_text;
        g_autoptr(GString) rows = plot_points_rows(points, options);
        *ret_text = g_strconcat(drawing, "\n", rows->str, NULL);
    }
    return drawn;
}
