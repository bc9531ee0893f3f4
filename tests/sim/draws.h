/* tests/sim/draws.h - settings drawn at random, to hold laws to. The draws are always the
 * same, 0 to 499; DRAWS_FROM=500 in the environment gives the next ones. */
#pragma once

#include "sim/predict.h"

/* Its cluster is the test's to change. */
typedef struct {
    const char *network, *cluster_name;
    ModelCluster *cluster;
    char *strategy;
    Plan *plan;
} Draw;

SimPrediction *draw_predict(const Draw *draw, bool every_rank); /* 5 steps */
/* Whether all ranks play one role, and the groups of each axis lie over nodes alike. */
bool draw_is_alike(const Draw *draw);
/* Fails unless at least so many of the draws were held to the law: those for which it is true. */
void draw_each(bool (*law)(Draw *draw), unsigned least);
