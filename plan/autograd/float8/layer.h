/* plan/autograd/float8/layer.h - what is asked of a linear layer in float8, of its place in the
 * graph above all. Inside autograd/ only. */
#pragma once

#include "plan/autograd/run.h"

/* Whether the layer takes what SwiGLU made: a block that is computed again need not make that,
 * since the kernel of SwiGLU's gradients does. */
bool plan_float8_follows_swiglu(const PlanGraph *graph, const PlanGraphOp *op);
/* Whether it is the first layer that takes its input, and so the last of these in backward. */
bool plan_float8_is_first_of_input(const PlanRun *run, const PlanGraphOp *op);
/* Whether a kernel of the compiler's makes the gradient, and looks for its largest number. */
bool plan_float8_gradient_is_searched(const PlanGraph *graph, const PlanGraphOp *op);
/* It takes all ranks' tokens and makes some columns; else o or down, whose result is added up. */
bool plan_float8_takes_gathered(const PlanGraph *graph, const PlanGraphOp *op);
/* Whether the scale of its weight is kept in a block that is computed again: a compiler repeats no
 * collective. */
bool plan_float8_keeps_scale(const PlanRun *run, const PlanGraphOp *op);
PlanTensor plan_float8_weight_scale(PlanRun *run, const PlanGraphOp *op);
PlanTensor plan_float8_input_scale(PlanRun *run, const PlanGraphOp *op);
/* With row-wise scales: whether it asks for its own input again, which no gather made. */
bool plan_float8_takes_own(const PlanGraph *graph, const PlanGraphOp *op);
