/* sim/ranks/representative.h - a play of one rank, which stands for all: ranks are alike.
 *
 * A collective starts when the rank comes to it, and takes what the slowest group's does. What
 * repeats a step or a pass (device/repeat/) is not played, unless a trace wants its rows.
 *
 * Cost: that of the steps which are played, two and a part of the third of most plans.
 */
#pragma once

#include "sim/prediction.h"
#include "trace/trace.h"

/* Fills in the prediction (and trace, unless NULL) as sim_predict() says: with the memory that
 * there is and, where that does not do, with no limit once more, for peak and times. */
bool sim_play_representative(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options, SimPrediction *prediction, Trace *trace,
                             GError **error);
