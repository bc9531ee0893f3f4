/* What a picture of points shows, in words. */
#include <math.h>

#include "plots/points.h"
#include "trace/quantile.h"
#include "trace/scale.h"

/* "wrap=block, checkpointing=full": x, then the series. */
static void append_name(GString *text, const PlotPoint *point, PlotPointsPicture picture,
                        const PlotPointsOptions *options) {
    if (picture == PLOT_POINTS_PARETO) { /* a point's label is all of it */
        g_string_append(text, point->label);
        return;
    }
    g_string_append_printf(text, "%s=%s%s%s", options->x_name, point->label,
                           point->series[0] != '\0' ? ", " : "", point->series);
}

enum {
    FEW = 4 /* settings, of which the slowest is named for contrast too */
};

static bool counts(const PlotPoint *point) {
    return !point->measured && point->fits && !isnan(point->cost_ns) &&
           !isnan(point->reserved_bytes);
}

/* Among equals in the first the less in the second counts, so that the best lie on the front. */
static bool less(double first, double than_first, double second, double than_second) {
    return first < than_first || (first == than_first && second < than_second);
}

static bool is_quicker(const PlotPoint *a, const PlotPoint *b) {
    return less(a->cost_ns, b->cost_ns, a->reserved_bytes, b->reserved_bytes);
}

static bool is_smaller(const PlotPoint *a, const PlotPoint *b) {
    return less(a->reserved_bytes, b->reserved_bytes, a->cost_ns, b->cost_ns);
}

/* Which of the predicted settings that fit is quickest, slowest, smallest. */
static void append_best(GString *text, const GArray *points, PlotPointsPicture picture,
                        const PlotPointsOptions *options) {
    const PlotPoint *quickest = NULL, *slowest = NULL, *smallest = NULL;
    guint n = 0, n_unfit = 0;
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        n += !point->measured;
        n_unfit += !point->measured && !point->fits;
        if (counts(point)) {
            quickest = !quickest || is_quicker(point, quickest) ? point : quickest;
            slowest = !slowest || point->cost_ns > slowest->cost_ns ? point : slowest;
            smallest = !smallest || is_smaller(point, smallest) ? point : smallest;
        }
    }
    if (quickest == NULL) {
        g_string_append(text, n > 0 ? "none of them fits" : "");
        return;
    }
    TraceScale time = trace_scale_time(quickest->cost_ns);
    TraceScale size = trace_scale_bytes(smallest->reserved_bytes);
    g_string_append_printf(text, "least %s: ", options->cost_name);
    append_name(text, quickest, picture, options);
    g_string_append_printf(text, " (%.2f %s", quickest->cost_ns / time.per_unit, time.unit);
    if (slowest != quickest && n <= FEW) {
        g_string_append_printf(text, "; the slowest %+.1f %%",
                               100 * (slowest->cost_ns / quickest->cost_ns - 1));
    }
    g_string_append(text, "); least memory: ");
    append_name(text, smallest, picture, options);
    g_string_append_printf(text, " (%.2f %s)", smallest->reserved_bytes / size.per_unit, size.unit);
    if (n_unfit > 0) {
        g_string_append_printf(text, "; %u of %u do not fit", n_unfit, n);
    }
}

/* What a GPU loses from the fewest to the most, series by series. */
static void append_scaling(GString *text, const GArray *points, const PlotPointsOptions *options) {
    g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *first = plot_point(points, i), *last = first;
        if (first->measured || !g_hash_table_add(done, (gpointer)first->series)) {
            continue;
        }
        for (guint k = i; k < points->len; k++) {
            const PlotPoint *point = plot_point(points, k);
            if (!point->measured && g_str_equal(point->series, first->series)) {
                first = point->x < first->x ? point : first;
                last = point->x > last->x ? point : last;
            }
        }
        if (last != first && first->flops_per_s > 0) {
            g_string_append_printf(text, "%s%s%s%+.1f %% from %s=%s to %s",
                                   text->len > 0 ? "; " : "", first->series,
                                   first->series[0] != '\0' ? ": " : "",
                                   100 * (last->flops_per_s / first->flops_per_s - 1),
                                   options->x_name, first->label, last->label);
        }
    }
}

/* Nearest ranks, as foreshard validate has them. Takes the errors. */
static void append_errors(GString *text, const char *what, GArray *errors) {
    double *sizes = (double *)(gpointer)errors->data;
    if (errors->len > 0) {
        g_string_append_printf(text, "%s%u %s, median error %.1f %%, nine of ten within %.1f %%",
                               text->len > 0 ? "; " : "", errors->len, what,
                               100 * trace_quantile(sizes, errors->len, 0.5),
                               100 * trace_quantile(sizes, errors->len, 0.9));
    }
    g_array_unref(errors);
}

static void add_error(GArray *errors, double predicted, double measured) {
    double error = fabs(predicted / measured - 1);
    if (measured > 0 && !isnan(error)) {
        g_array_append_val(errors, error);
    }
}

static void append_misses(GString *text, const GArray *points) {
    GArray *times = g_array_new(FALSE, FALSE, sizeof(double));
    GArray *peaks = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        add_error(times, point->step_ns, point->x);
        add_error(peaks, point->reserved_bytes, point->published_bytes);
    }
    append_errors(text, "runs", times);
    append_errors(text, "peaks of memory", peaks);
}

char *plot_points_lesson(PlotPointsPicture picture, const GArray *points,
                         const PlotPointsOptions *options) {
    GString *text = g_string_new(NULL);
    switch (picture) {
    case PLOT_POINTS_SWEEP:
    case PLOT_POINTS_PARETO:
        append_best(text, points, picture, options);
        break;
    case PLOT_POINTS_SCALE:
        append_scaling(text, points, options);
        break;
    case PLOT_POINTS_VALIDATION:
        append_misses(text, points);
        break;
    }
    return g_string_free(text, FALSE);
}
