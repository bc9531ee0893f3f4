/* cli/predict/predict.h - a plan played on a cluster, and what foreshard predict says of it, as
 * text or as JSON.
 *
 * Two verdicts are always given: whether it fits, and what a step costs (for a plan that does not
 * fit: with memory enough).
 *
 * Borrows: all that a report points to.
 */
#pragma once

#include "cli/source/plan-source.h"
#include "models/cluster.h"
#include "sim/predict.h"

typedef struct {
    const CliPlanSource *source; /* which gave the plan */
    const Plan *plan;
    const ModelCluster *cluster;
    const SimPrediction *prediction;
    const SimOptions *asked;
} CliPredictReport;

/* Of a prediction of an unsupported dtype: what to choose instead. */
const char *cli_predict_other_dtype(const SimPrediction *prediction);

/* Plays what the name means: *plan, where the source has loaded it already, or what it loads now.
 * In the end *plan is as it was played (sim/built.h). trace: NULL, or a fresh one, to be filled. */
SimPrediction *cli_predict(CliPlanSource *source, const char *name, Plan **plan,
                           const ModelCluster *cluster, const SimOptions *options, Trace *trace,
                           GError **error);

/* The same of SIM_STEPS_IT_TAKES, as all do who are asked nothing else. A dtype that the cluster
 * lacks is an error, for then nothing is predicted. */
SimPrediction *cli_predict_play(CliPlanSource *source, const char *name, Plan **plan,
                                const ModelCluster *cluster, Trace *trace, GError **error);

/* The same without a trace. Where ranks are not alike (sim_told_apart()) it is a close estimate, in
 * a fraction of the time. */
SimPrediction *cli_predict_roughly(CliPlanSource *source, const char *name, Plan **plan,
                                   const ModelCluster *cluster, GError **error);

/* What would make it fit that does not, or do without retries (CliWay of
 * cli/what-if/ways-to-fit.h); NULL: a plan made by hand has no network to plan again. Transfer
 * full. */
GArray *cli_predict_ways(const CliPredictReport *report);
/* Whether it fits by giving memory back again and again, so that ways are to be told. */
bool cli_predict_needs_calm(const CliPredictReport *report);

/* Print to standard output. */
void cli_predict_print_text(const CliPredictReport *report);
void cli_predict_print_json(const CliPredictReport *report);
