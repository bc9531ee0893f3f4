/* cli/plot/points.h - points for pictures: a network predicted with knobs turned, traces, published
 * rows.
 *
 * Owns: a list owns its strings.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/options/knob.h"
#include "cli/source/plan-source.h"
#include "models/cluster.h"
#include "plots/points.h"

typedef struct {
    GArray *knobs;      /* CliKnob; the first is the x axis */
    GArray *points;     /* PlotPoint */
    GPtrArray *values;  /* of each point, the knobs' (char **) */
    GPtrArray *refused; /* settings that cannot be, each with its reason */
    GStringChunk *strings;
    char *title;        /* of the first plan predicted */
    double limit_bytes; /* NAN: nothing was predicted */
    uint64_t tokens;    /* a rank's and step's, of the last plan predicted */
    bool tokens_differ;
    bool one_series; /* a point has a label of all its knobs */
} CliPoints;

CliPoints *cli_points_new(bool one_series);
void cli_points_free(CliPoints *points);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliPoints, cli_points_free)

bool cli_points_add_knob(CliPoints *points, const char *text, GError **error);
/* What Pareto's cost is: a step's time, or a token's where settings differ in tokens. */
const char *cli_points_cost_name(const CliPoints *points);
bool cli_points_x_is_number(const CliPoints *points);

/* Predicts every combination of the knobs' values. One that PyTorch would refuse is an error when
 * there is one knob, and is left out and noted when there are more. */
bool cli_points_predict(CliPoints *points, CliPlanSource *source, const char *network,
                        const ModelCluster *cluster, GError **error);
/* A trace's point: the knobs' values stand in its header. */
bool cli_points_add_trace(CliPoints *points, const Trace *trace, GError **error);
/* Rows of a table that foreshard validate takes, for which all of where ("model=T5-11B") holds; x
 * is "gpus", a series is a value of the second knob's column. Operations are counted as for the
 * predictions, whatever the source counts: what is taken from it is the time of a step. */
bool cli_points_add_published(CliPoints *points, const char *path, char **where, GError **error);

/* A complete object: title, points and what was refused. Transfer full. */
JsonBuilder *cli_points_json(const CliPoints *points);
