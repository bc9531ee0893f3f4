/* plan/optimizer/scaler.h - a loss that is scaled, so that fp16 holds its small gradients. Inside
 * plan/ only. Without loss_scale each function does nothing, or hands back what it was given.
 */
#pragma once

#include "plan/optimizer/over.h"

/* The loss times the scale, which the first pass makes; PLAN_NO_TENSOR: it is not scaled. */
PlanTensor plan_scaler_scale(PlanRun *run, PlanTensor loss, PlanDtype loss_dtype);
/* What the scaled loss comes in. */
PlanDtype plan_scaler_result_dtype(const PlanRun *run, PlanDtype loss_dtype);
/* The gradient of the loss, given that of the scaled one; a new reference. */
PlanTensor plan_scaler_differentiate(PlanRun *run, PlanTensor gradient, PlanDtype loss_dtype);

/* Before clipping. */
void plan_scaler_unscale(PlanRun *run);
/* What was not unscaled yet is now, and the host asks whether to step. Fused Adam finds in `all`
 * what it has to know. */
void plan_scaler_begin_step(PlanOver *all);
void plan_scaler_end_step(PlanOver *all); /* and the next scale */
