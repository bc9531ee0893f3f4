/* plan/autograd/passes/engine.h - backward, node by node, in PyTorch's order (the latest node
 * first, gradients of parameters at once). Inside plan/ only.
 */
#pragma once

#include "plan/autograd/run.h"

void plan_run_backward(PlanRun *run);
/* The backward of one microbatch of a stage. gradient: that of what the stage returned;
 * PLAN_NO_TENSOR: it is the last stage, whose backward begins at its loss. Returns the gradient of
 * what the stage was given, which is no reference; PLAN_NO_TENSOR: it was given none. */
PlanTensor plan_run_stage_backward(PlanRun *run, PlanTensor gradient);
