/* cli/predict/evaluation.h - what a prediction says of an evaluation between two steps: nothing
 * where the plan has none.
 *
 * Owns: nothing. Threads: one.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/predict/predict.h"

typedef struct {
    uint64_t passes, sequences; /* of each pass, on a rank */
    double steps;               /* it takes as long as so many */
    bool holds_the_peak;
} CliEvaluation;

/* False: there is none. */
bool cli_evaluation_of(const Plan *plan, const SimPrediction *prediction, CliEvaluation *ret);
void cli_evaluation_print(const CliPredictReport *report);
void cli_evaluation_add_json(const CliPredictReport *report, JsonBuilder *json);
