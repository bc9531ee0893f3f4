/* sim/settled.h - as many steps as it takes until they are like those to come.
 *
 * Four do for nearly every plan. Where memory fills up, the allocator's retries may only begin in
 * the last of them, or all be in these: then 20 are played, or fewer that have 320 passes. That is
 * so for published runs too, so whoever predicts one of them gets the step that it was judged by.
 */
#pragma once

#include "sim/predict.h"

/* As SimOptions.steps: SIM_DEFAULT_STEPS; where the allocator retries up to SIM_STEPS_SETTLED. */
#define SIM_STEPS_IT_TAKES 0

/* As sim_predict(), which alone decides if options.steps is a number; with SIM_STEPS_IT_TAKES the
 * play is repeated with more steps where that is needed (every-rank play is not). trace: NULL, or a
 * new one. */
SimPrediction *sim_predict_settled(const Plan *plan, const ModelCluster *cluster,
                                   const SimOptions *options, Trace *trace, GError **error);
