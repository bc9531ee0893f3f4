/* cli/plot/plot-points.h - the part of foreshard plot that draws points: predictions with knobs
 * turned.
 */
#pragma once

#include "cli/source/plan-source.h"
#include "plots/points.h"

typedef struct {
    char *output, *cluster, *published;
    char **knobs, **where;
    gboolean json, csv; /* instead of a picture; beside one that goes to a file */
} CliPointsPlot;

/* words: tables of published runs. What the source was given has no place there. Returns the exit
 * status. */
int cli_plot_validation(int n_words, char **words, const char *output, const CliPlanSource *source);

/* words: a network, then traces of it; or traces alone. Returns the exit status. */
int cli_plot_points(PlotPointsPicture picture, int n_words, char **words,
                    const CliPointsPlot *options, CliPlanSource *source);
