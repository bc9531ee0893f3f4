/* cli/plot/json.c - points for programs: see points.h. */
#include "cli/plot/points.h"

#include <math.h>

#include "trace/json.h"

/* What is not known of a measured or published point is left out. */
static void add_known(JsonBuilder *json, const char *key, double value) {
    if (!isnan(value)) {
        trace_json_add_number(json, key, value);
    }
}

static void add_settings(JsonBuilder *json, const CliPoints *points, char **values) {
    trace_json_begin_object(json, "settings");
    for (guint i = 0; i < points->knobs->len; i++) {
        trace_json_add_text(json, g_array_index(points->knobs, CliKnob, i).key, values[i]);
    }
    json_builder_end_object(json);
}

static void add_point(JsonBuilder *json, const CliPoints *points, guint i, bool is_on_front) {
    const PlotPoint *point = &g_array_index(points->points, PlotPoint, i);
    json_builder_begin_object(json);
    add_settings(json, points, points->values->pdata[i]);
    trace_json_add_bool(json, "measured", point->measured);
    if (!point->measured) {
        trace_json_add_bool(json, "fits", point->fits);
        trace_json_add_int(json, "alloc_retries", point->retries);
    }
    add_known(json, "step_ms", point->step_ns / 1e6);
    add_known(json, "step_ms_least", point->least_ns / 1e6);
    add_known(json, "step_ms_most", point->most_ns / 1e6);
    add_known(json, "peak_allocated_bytes", point->allocated_bytes);
    add_known(json, "peak_reserved_bytes", point->reserved_bytes);
    add_known(json, "tflops_per_gpu", point->flops_per_s / 1e12);
    trace_json_add_bool(json, "unbeaten", is_on_front);
    json_builder_end_object(json);
}

JsonBuilder *cli_points_json(const CliPoints *points) {
    g_autoptr(GArray) front = plot_points_front(points->points);
    g_autofree bool *is_on_front = g_new0(bool, points->points->len + 1);
    for (guint i = 0; i < front->len; i++) {
        is_on_front[g_array_index(front, guint, i)] = true;
    }
    JsonBuilder *json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "title", points->title);
    add_known(json, "allocator_bytes", points->limit_bytes);
    trace_json_begin_array(json, "points");
    for (guint i = 0; i < points->points->len; i++) {
        add_point(json, points, i, is_on_front[i]);
    }
    json_builder_end_array(json);
    trace_json_begin_array(json, "refused");
    for (guint i = 0; i < points->refused->len; i++) {
        json_builder_add_string_value(json, points->refused->pdata[i]);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    return json;
}
