/* cli/predict/trace-source.h - a trace by its file; or that of a plan or network, predicted on the
 * spot.
 */
#pragma once

#include "cli/source/plan-source.h"
#include "trace/trace.h"

/* Strategy options are for what is predicted: refuses them where every name is a trace. */
bool cli_trace_check_settings(const CliPlanSource *source, int n_names, char **names,
                              GError **error);

/* cluster: where to predict what is no trace; NULL: a trace is meant. Transfer full. */
Trace *cli_trace_load(CliPlanSource *source, const char *name, const char *cluster, GError **error);
