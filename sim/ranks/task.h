/* sim/ranks/task.h - what is to be played, and how often: with the memory that there is and, where
 * that does not do, once more without a limit, so that peak and step time are known too.
 */
#pragma once

#include "plan/player.h"
#include "sim/prediction.h"
#include "trace/trace.h"

typedef struct {
    const Plan *plan;
    const ModelCluster *cluster;
    const SimOptions *options;
    SimPrediction *prediction; /* to fill in */
    const bool *played;        /* by rank, whether it is played; NULL: all are */
} SimTask;

/* One play; limited: by the memory that there is. PLAN_STOPPED: that was too little, or the device
 * lacks a dtype, which the prediction then names. */
typedef PlanAnswer SimPlayOnce(const SimTask *task, bool limited, Trace *trace, GError **error);

/* Rows go to the trace from the limited play, whether it fits or not, unless no limit is asked for
 * (SimOptions.boundless). */
bool sim_task_play(const SimTask *task, SimPlayOnce *play_once, Trace *trace, GError **error);

/* A rank that stands for others computes as slowly as the slowest of all is expected to: a factor
 * on what its kernels take. */
double sim_task_slowdown(const SimTask *task);
