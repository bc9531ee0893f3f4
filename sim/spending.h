/* sim/spending.h - what tokens cost in energy and money, where the cluster file says what its GPUs
 * draw and what an hour of one costs.
 *
 * Energy: every GPU at its full power for the whole step, so it is the most that GPUs draw; hosts,
 * switches and cooling are not in it. Money: every GPU's price for the time of the step, in the
 * file's own currency.
 */
#pragma once

#include "sim/prediction.h"

typedef struct {
    double kwh_per_million, price_per_million; /* tokens; 0: some GPU's number is unknown */
} SimSpending;

SimSpending sim_spending(const Plan *plan, const ModelCluster *cluster,
                         const SimPrediction *prediction);
