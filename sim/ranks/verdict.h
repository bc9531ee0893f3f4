/* sim/ranks/verdict.h - what a played device tells, written into a prediction.
 *
 * Each function fills one part of it, from one rank's device; of many ranks the caller says whose.
 * Inside sim/ only.
 */
#pragma once

#include "sim/device/device.h"
#include "sim/prediction.h"
#include "sim/work.h"

void sim_verdict_memory(SimPrediction *prediction, const PlanRole *role, SimDevice *device);
void sim_verdict_oom(SimPrediction *prediction, const PlanRole *role, SimDevice *device);
/* A step's time is the interval between the ends of the last compute-lane op of two successive
 * steps; the first one's begins at zero. An end of SIM_NEVER: a program without compute takes no
 * time. */
void sim_verdict_steps(SimPrediction *prediction, SimTime zero, const SimTime *ends);
/* Shares, lanes, collectives and host of the steady steps. */
void sim_verdict_times(SimPrediction *prediction, SimDevice *device);

void sim_verdict_flops(SimPrediction *prediction, const SimWork *work); /* after the steps */
