/* cli/report/report.h - one page about runs of one or more plans: it needs no network and no other
 * file.
 *
 * A plan's part has its verdicts, pictures, tables, units and settings, what foreshard diagnose
 * says, and what someone else needs to repeat it. Same traces, same bytes.
 */
#pragma once

#include "trace/trace.h"

/* Traces of whatever plans: const Trace *; of one plan at most a predicted and a measured one.
 * cluster: where the diagnosis predicts, NULL: where the trace says. */
GString *cli_report(const GPtrArray *traces, const char *cluster, GError **error);

/* The page's figures as one JSON object. */
GString *cli_report_json(const GPtrArray *traces, const char *cluster, GError **error);
