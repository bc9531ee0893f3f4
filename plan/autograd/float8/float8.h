/* plan/autograd/float8/float8.h - linear layers in float8, as torchao.float8 makes them (0.18,
 * dynamic scales) and torch.compile joins their casts with what is around them (2.13; recorded:
 * tests/oracle/, *-float8-*).
 *
 * A layer casts what it is given and its weight, each by a scale that is found anew, and multiplies
 * what came of that; backward it casts the gradient, the weight and the input again. In memory:
 *   forward   casts live as long as the product needs them, those of an input as long as the layers
 *             that share it (q, k and v; gate and up)
 *   kept      the scale of the weight (tensorwise); no cast (but of a weight, in a block that is
 *             computed again, and under FSDP1), and not what a norm or SwiGLU made: that is made
 *             again, cast, from what those keep for themselves
 *   backward  the gradient as it is and turned; the weight; the input, turned. What SwiGLU made is
 *             made again in the kernel that makes its gradients.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

void plan_float8_forward(PlanRun *run, const PlanGraphOp *op);
void plan_float8_backward(const PlanBackward *b);
/* Lets go of a cast that a layer left for another, which does not run. */
void plan_float8_forget(PlanRun *run);

/* ---- layers that ranks share (shared.c) ------------------------------------------------------ */

/* Tokens, or their gradients, cast to float8 and then gathered. */
void plan_float8_gather_tokens(PlanRun *run, const PlanGraphOp *op);
void plan_float8_gather_gradient(const PlanBackward *b);
/* What a layer does in a block that is computed again, if its result was kept or backward does not
 * need it: it casts again what backward reads; in the second case it finds its scales only. */
void plan_float8_cast_again(PlanRun *run, const PlanGraphOp *op);
void plan_float8_find_again(PlanRun *run, const PlanGraphOp *op);

/* What SwiGLU's node is given: the gradient of its result, or, made already, those of gate and up.
 */
enum {
    PLAN_SWIGLU_GIVEN_RESULT,
    PLAN_SWIGLU_GIVEN_GATE,
    PLAN_SWIGLU_GIVEN_UP
};
