/* plan/autograd/stages/stages.h - stages that share the layers, as torch.distributed.pipelining
 * plays them (PyTorch 2.13: stage.py, schedules.py; recorded: tests/oracle/, *-pipeline-*).
 *
 * A stage forwards each microbatch, keeps what autograd remembers of it until the gradient of its
 * result comes, and hands the gradient of what it was given on. FSDP2's units stay whole from the
 * first forward to the end of the last backward and add up whole gradients, which are reduced when
 * all microbatches are through, unit by unit, the root first (perform_reduce_grad).
 *
 * Who holds what where a rank has one stage, as the local variables of _step_microbatches() do:
 *   received   each microbatch has a tensor of its own for what it is given, and one for the
 *              gradient of its result; made in the first step, they stay
 *   result     until its backward, and the last one until there is another, or the step ends; so do
 *              logits, where the stage is the last one
 *   gradient   of what was given, until there is another, or the step ends
 *   losses     until the last backward
 *   what is sent by itself, until the next one is (1f1b), or the step ends (gpipe): by the list of
 *              those who are to be waited for. NCCL's work holds its tensors (WorkNCCL::outputs_ in
 *              ProcessGroupNCCL.cpp), and the recorder's does too
 *
 * Neighbours have a communicator of their own for what goes one way alone, and one for all stages
 * serves where they give and take at once (_batch_p2p()): a lane each. Of several stages a rank
 * several.c tells. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

extern const char *const plan_stage_lanes[]; /* behind the flavour's; ends with NULL */

typedef struct _PlanStages PlanStages;

/* The network and its batch have been made. */
PlanStages *plan_stages_new(PlanRun *run);
void plan_stages_free(PlanStages *stages); /* NULL is fine */

/* A step begins, the first one with tensors for what comes. */
void plan_stages_begin(PlanRun *run);
/* Its microbatches. */
void plan_stages_play(PlanRun *run);
/* The same of a rank that has several stages, in order: the first one's run has the builder then
 * and in the end. */
void plan_stages_begin_several(PlanRun *runs, uint32_t n);
void plan_stages_play_several(PlanRun *runs, uint32_t n);
