/* tests/sim/plays.h - plays on the clusters of models/clusters, held against each other. */
#pragma once

#include "sim/predict.h"

/* Its GPUs are equal, so that one can stand for all. */
ModelCluster *plays_cluster(const char *name);
SimPrediction *plays_predict(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options, Trace *trace);
/* Steps, shares, collectives and peaks, to the nanosecond and the byte. */
void plays_assert_equal(const SimPrediction *one, const SimPrediction *all);

/* 16 ranks on two nodes, compute long enough to matter. */
#define PLAYS_APART "ranks=16 sharding=full micro_batch=16"

/* Gives the cluster a host so quick that kernels decide. */
void plays_quicken(ModelCluster *cluster);
/* A cluster of models/clusters with such a host. */
ModelCluster *plays_compute_bound(const char *name);
/* A cluster of models/clusters, whose file has these lines at its end. */
ModelCluster *plays_cluster_and(const char *name, const char *lines);
/* Plays each rank by itself, four steps if options do not say how many. */
SimPrediction *plays_every_rank(const Plan *plan, const ModelCluster *cluster, SimOptions options);

/* The toy cluster (toy.h), but each thing takes its time. */
ModelCluster plays_busy_cluster(void);
/* plays_predict() of so many steps. */
SimPrediction *plays_steps(const Plan *plan, const ModelCluster *cluster, uint32_t steps,
                           Trace *trace);
