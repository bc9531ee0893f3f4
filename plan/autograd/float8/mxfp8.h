/* plan/autograd/float8/mxfp8.h - linear layers in MXFP8, as torchao makes them on Blackwell (0.18,
 * MXFP8TrainingOpConfig) in compiled blocks (2.13; recorded: tests/oracle/, *-mxfp8-*).
 *
 * Each 32 numbers that a product sums share a power of two. No kernel of the compiler's casts, so
 * what is cast lies in memory first, and nothing is cast again in backward that was cast for it:
 *   forward   each layer casts its weight and its input for itself, along rows
 *   kept      what a norm or SwiGLU made, cast along columns for dw: a byte a number, and a scale
 *             for each 32. Attention's result is kept as it is, and cast in backward. Weights are
 *             cast along columns in backward.
 *   again     of a block that is computed again the norm's results are kept in 16 bits, until they
 *             are cast in backward; what SwiGLU made is made again beside its gradients.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

void plan_mxfp8_forward(PlanRun *run, const PlanGraphOp *op);
void plan_mxfp8_backward(const PlanBackward *b);
/* Whether it is a layer that keeps a cast of its input instead of the input. */
bool plan_mxfp8_keeps_cast(const PlanRun *run, const PlanGraphOp *op);
