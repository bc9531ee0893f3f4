/* plan/autograd/program.h - a backward that is one compiled program, to its caller: what it is
 * called with, and when it gives the gradients of parameters. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/run.h"

/* Whether it hands all gradients over when it is through. DDP's compiler cuts the program where a
 * bucket is full, which is as early as the bucket can be reduced. */
bool plan_program_gives_late(const PlanRun *run);
/* One of the gradients that it is called with: before PyTorch 2.12 its caller holds them until it
 * is through. */
void plan_run_call_program(PlanRun *run, PlanTensor gradient);
void plan_program_is_through(PlanRun *run);
