/* cli/predict/every-rank-report.h - who waits for whom, as every-rank play found it, beside a
 * prediction.
 *
 * Nothing is said when one rank stood for all. jitter: what was asked for.
 *
 * Owns: nothing. Threads: one.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "sim/predict.h"

void cli_every_rank_print(const SimJitter *jitter, const SimPrediction *prediction,
                          const ModelCluster *cluster);
void cli_every_rank_add_json(const SimJitter *jitter, const SimPrediction *prediction,
                             const ModelCluster *cluster, JsonBuilder *json);
