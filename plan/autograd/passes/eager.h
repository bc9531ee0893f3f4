/* plan/autograd/passes/eager.h - runs a network as eager PyTorch would, without data, and writes
 * down each instruction that PyTorch would give its device.
 *
 * Inside plan/ only. A plan is made by running the training loop once per section. As in PyTorch,
 * tensors have reference counts, an op's outputs are allocated when it is called, what its backward
 * needs is saved with it. The flavour (DDP, FSDP2, ...) is called where PyTorch's own hooks are.
 *
 * Files, each of which calls those before it: of the words, run.h what a rank has, tape.h what
 * autograd remembers, ../../flavours/flavour.h the hooks, tensor.h tensors, launch.h ops in a
 * statement, node.h questions to the tape; shared/, float8/ and others ops by theme;
 * differentiate/ what an op keeps, and one backward per op kind; of the passes, forward.c ops,
 * record.h nodes, eager.c steps and passes, recompute.c blocks that run again (checkpoint.h),
 * engine.h backward; stages/.
 */
#pragma once

#include "plan/autograd/tensor.h"

/* Runs an op of the graph forward: launches its kernels, makes its views (forward.c). */
void plan_run_op(PlanRun *run, uint32_t op_id);

/* What recomputing shares with forward. */
void plan_run_step(PlanRun *run, uint32_t step); /* all of it, but for what autograd records */
void plan_run_let_go(PlanRun *run, const PlanGraphStep *step);
void plan_run_begin_frame(PlanRun *run);
void plan_run_end_frame(PlanRun *run);

/* A forward pass; and what the training loop does with the network after backward. */
void plan_run_forward(PlanRun *run);
void plan_run_after_backward(PlanRun *run);
/* The same pass in two: up to where the root has returned (returns the step behind that), and what
 * the loop makes of its results. */
uint32_t plan_run_forward_root(PlanRun *run);
void plan_run_forward_rest(PlanRun *run, uint32_t next);
