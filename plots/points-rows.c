/* plots/points-rows.c - points as a table of numbers, for people: what foreshard plot prints. */
#include <math.h>
#include <string.h>

#include "plots/points.h"
#include "trace/scale.h"

/* Letters, not bytes. */
static glong letters_of(const char *text) {
    return g_utf8_strlen(text, (gssize)strlen(text));
}

/* As wide as the longest of the texts, so that columns stand below each other. */
static glong width_of(const GArray *points, const char *head, gsize offset) {
    glong width = letters_of(head);
    for (guint i = 0; i < points->len; i++) {
        const char *text = *(const char *const *)((const char *)plot_point(points, i) + offset);
        width = MAX(width, letters_of(text));
    }
    return width;
}

static void append_padded(GString *text, const char *label, glong width) {
    g_string_append_printf(text, "%s%*s", label, (int)(width - letters_of(label)), "");
}

static void append_number(GString *text, int width, double value, double per_unit) {
    if (isnan(value)) {
        g_string_append_printf(text, "  %*s", width, "-");
    } else {
        g_string_append_printf(text, "  %*.2f", width, value / per_unit);
    }
}

static double most_of(const GArray *points, double (*value)(const PlotPoint *)) {
    double most = 0;
    for (guint i = 0; i < points->len; i++) {
        double v = value(plot_point(points, i));
        most = isnan(v) ? most : MAX(most, v);
    }
    return most;
}

static double step_ns(const PlotPoint *point) {
    return point->step_ns;
}

static double reserved_bytes(const PlotPoint *point) {
    return point->reserved_bytes;
}

static void append_note(GString *text, const PlotPoint *point, const PlotPointsOptions *options) {
    if (point->measured) {
        g_string_append_printf(text, "  %s", options->marks_name);
    } else if (!point->fits) {
        g_string_append(text, "  does not fit");
    } else if (point->retries > 0) {
        g_autofree char *retries = trace_retries_text(point->retries, point->n_steps);
        g_string_append_printf(text, "  %s", retries);
    }
    g_string_append_c(text, '\n');
}

GString *plot_points_rows(const GArray *points, const PlotPointsOptions *options) {
    TraceScale time = trace_scale_time(most_of(points, step_ns));
    TraceScale size = trace_scale_bytes(most_of(points, reserved_bytes));
    glong label_width = width_of(points, options->x_name, G_STRUCT_OFFSET(PlotPoint, label));
    glong series_width = width_of(points, "", G_STRUCT_OFFSET(PlotPoint, series));
    g_autofree char *step_head = g_strdup_printf("step (%s)", time.unit);
    g_autofree char *allocated_head = g_strdup_printf("allocated (%s)", size.unit);
    g_autofree char *reserved_head = g_strdup_printf("reserved (%s)", size.unit);
    GString *text = g_string_new(NULL);
    append_padded(text, options->x_name, label_width);
    g_string_append_printf(text, "  %*s  %10s  %15s  %14s  %12s\n", (int)series_width, "",
                           step_head, allocated_head, reserved_head, "TFLOP/s/GPU");
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        append_padded(text, point->label, label_width);
        g_string_append(text, "  ");
        append_padded(text, point->series, series_width);
        append_number(text, 10, point->step_ns, time.per_unit);
        append_number(text, 15, point->allocated_bytes, size.per_unit);
        append_number(text, 14, point->reserved_bytes, size.per_unit);
        append_number(text, 12, point->flops_per_s, 1e12);
        append_note(text, point, options);
    }
    return text;
}
