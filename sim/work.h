/* sim/work.h - how many operations the products and the attention of a step take, by the published
 * formulas of plan/op/work.h. Of a rank whose experts get more than their share of rows they are
 * those of an even share, the mean of the ranks, as rates of a machine count them.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

typedef enum {
    SIM_WORK_ASKED, /* what the model asks for, each op once */
    SIM_WORK_DONE,  /* and what checkpoints recompute. By convention this leaves out the scores that
                       attention's backward always computes again */
    SIM_WORK_ASKED_OF_ALL_PAIRS, /* as published MFU counts: attention of hidden pairs too */
    SIM_WORK_DONE_OF_ALL_PAIRS
} SimWorkKind;

typedef struct {
    double flops, least_seconds; /* of a step; the latter at the cluster's peak */
} SimWork;

SimWork sim_work_of_step(const PlanRole *role, const ModelCluster *cluster, SimWorkKind kind);
