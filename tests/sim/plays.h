/* tests/sim/plays.h - plays on the clusters of models/clusters, held against each other. */
#pragma once

#include "sim/predict.h"

/* Its GPUs are equal, so that one can stand for all. */
ModelCluster *plays_cluster(const char *name);
SimPrediction *plays_predict(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options, Trace *trace);
/* Steps, shares, collectives and peaks, to the nanosecond and the byte. */
void plays_assert_equal(const SimPrediction *one, const SimPrediction *all);
