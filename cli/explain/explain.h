/* cli/explain/explain.h - any number that foreshard prints, down to the rows and the formula it
 * comes from.
 *
 * Names are the keys of `foreshard predict --json` ("step_ms", "comm.all_gather.total_ms",
 * "peak_by_category.activations"), units, kinds of ops, and numbers of instructions,
 * of the trace ("17924") or of a section of its plan ("second:3323").
 *
 * Owns: the subject borrows all that it points to.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/predict.h"
#include "trace/summary.h"

typedef struct _CliSubject CliSubject;
struct _CliSubject {
    const Trace *trace;
    const TraceSummary *summary;
    /* NULL, all three: the trace's plan could not be built again, or names no cluster. */
    const Plan *plan;
    const ModelCluster *cluster;
    const SimPrediction *prediction;
    /* The rows up to where memory ran out, if those of the trace are as if it sufficed; NULL: they
     * are as they were played. */
    const CliSubject *until_oom;
};

/* NULL when the name is none of these; the message is a line that names what is near, or has what
 * there is in lines below. */
GString *cli_explain(const CliSubject *subject, const char *name, GError **error);

/* A prediction of whole steps as if memory sufficed, of one that ran out of it: of that are the
 * figures that foreshard predict prints. Transfer full. NULL without an error: it did not run
 * out. */
Trace *cli_explain_enough(const CliSubject *subject, GError **error);

/* Whether it is a setting, or what others call one. */
bool cli_explain_is_setting(const char *name);

/* Whose rows explain it where no rank is asked for: memory of the fullest, as foreshard predict
 * shows it, times of the rank that waits least, a unit of a rank that has it. prediction may be
 * NULL. */
uint32_t cli_explain_rank(const Trace *trace, const SimPrediction *prediction, const char *name);

/* What cli_explain() gave, as one JSON object. Transfer full. */
char *cli_explanation_json(const CliSubject *subject, const char *name, const GString *text);

/* Every sharding strategy of a network on so many ranks, in one table, or as one JSON object. */
typedef struct _CliPlanSource CliPlanSource;
GString *cli_explain_sharding(CliPlanSource *source, const char *network,
                              const ModelCluster *cluster, GError **error);
JsonBuilder *cli_explain_sharding_json(CliPlanSource *source, const char *network,
                                       const ModelCluster *cluster, GError **error);
