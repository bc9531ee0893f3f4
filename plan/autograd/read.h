/* plan/autograd/read.h - numbers that the training loop reads from the device within a step. Inside
 * plan/ only.
 *
 * PyTorch's tensor.item() copies the number on the current stream and waits for that stream
 * (_local_scalar_dense: memcpy_and_sync): so for all that compute was given before, and for what
 * compute itself waits for, but for nothing that runs on another lane. Meanwhile the host issues
 * nothing, and then the device waits for it.
 *
 * Loss and norm are read where the strategy's host_reads says so.
 */
#pragma once

#include "plan/autograd/tensor.h"

void plan_run_read_loss(PlanRun *run, PlanTensor loss);  /* after backward */
void plan_run_read_norm(PlanRun *run, PlanTensor norm);  /* of all gradients, after clipping */
void plan_run_read_count(PlanRun *run, uint32_t buffer); /* of a parameter's steps */
/* Copies to the host how many rows go to each rank, or, if the host waits, how many come from each:
 * the first copy is over then, too. */
void plan_run_read_splits(PlanRun *run, PlanOperand splits, bool waits);
/* Whether a gradient is not finite; where it is, the host leaves out the optimizer's step. */
void plan_run_ask_to_step(PlanRun *run, PlanTensor found);
