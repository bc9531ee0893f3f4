/* plan/autograd/float8/delayed.h - linear layers in float8 with delayed scales, as Transformer
 * Engine's Linear makes them, eagerly (0.10 to 1.13, DelayedScaling in the format HYBRID:
 * transformer_engine/pytorch/module/linear.py and base.py, fp8.py, read; nothing is recorded).
 *
 * A pass casts what a layer is given, its weight and its gradient by scales that are there already,
 * and finds their largest numbers as it goes. From those of the last 16 passes, joined over all
 * ranks, come the scales of the next one. In memory:
 *   always    of each layer those numbers and scales; a workspace for products, of all layers
 *   forward   input and weight, each as it is and turned, while the layer runs
 *   kept      input and weight, turned, and their scales: half of what bf16 keeps of an input, and
 *             a copy of each weight beside what FSDP gathers, anew in each pass
 *             (is_first_microbatch None)
 *   backward  the gradient, as it is and turned, in e5m2
 * In a block that is computed again casts go by the scales of forward, as te.checkpoint has it.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

/* Before a pass's forward: joins what the forward of the pass before has found. */
void plan_delayed_begin(PlanRun *run);
void plan_delayed_forward(PlanRun *run, const PlanGraphOp *op);
void plan_delayed_backward(const PlanBackward *b);
