/* cli/predict/evaluation.h - what a prediction says of an evaluation between two steps: nothing
 * where the plan has none.
 *
 * Owns: nothing. Threads: one.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/predict/predict.h"

void cli_evaluation_print(const CliPredictReport *report);
void cli_evaluation_add_json(const CliPredictReport *report, JsonBuilder *json);
