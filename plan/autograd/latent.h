/* plan/autograd/latent.h - latent attention, and routing beside it, as torchtitan's DeepSeek-V3
 * calls PyTorch (models/families/latent.c; recorded: tests/oracle/, deepseek-*).
 *
 * What is turned of each head is pairs of complex numbers in fp32: widened, multiplied, rounded,
 * each a kernel; backward the same, and the table's conjugate before the product. In fp32 nothing
 * is widened, but backward a gradient that lies in longer rows is copied before its pairs are seen.
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

void plan_latent_forward(PlanRun *run, const PlanGraphOp *op);
void plan_latent_view_backward(const PlanBackward *b);
/* The backward of LATENT_OPs. */
void plan_latent_backward(const PlanBackward *b);
