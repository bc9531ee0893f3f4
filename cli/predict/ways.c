/* cli/predict/ways.c - what would make a plan fit, or do without retries: see predict.h. */
#include "cli/predict/predict.h"

#include "cli/what-if/ways-to-fit.h"
#include "sim/settings.h"
#include "sim/trains-well.h"
#include "trace/from-plan.h"

GArray *cli_predict_ways(const CliPredictReport *report) {
    g_autoptr(Trace) header = trace_new();
    trace_name_plan(header, report->plan);
    sim_settings_write(header, report->cluster, report->asked);
    g_autoptr(CliWhatIf) what_if = cli_what_if_on(header, report->cluster, NULL);
    return cli_ways(what_if, report->prediction->fits);
}

bool cli_predict_needs_calm(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    return prediction->fits && sim_keeps_retrying(prediction) && prediction->n_ranks == 0;
}
