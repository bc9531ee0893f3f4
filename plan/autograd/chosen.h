/* plan/autograd/chosen.h - what selective checkpointing keeps, for whoever makes it
 * (passes/selective.c has the choice). Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

bool plan_run_selects(const PlanRun *run); /* whether checkpoints keep what was chosen */
/* Whether they keep what was scattered: in torchtitan's way of sharing; what another program's
 * policy keeps is not known. */
bool plan_keeps_scattered(const PlanRun *run);
/* Whether selective checkpointing keeps the largest magnitudes that float8 layers find in their
 * weights and inputs, so that the recomputation need not look for them again: it does in compiled
 * blocks whose layers ranks share. And: keeps the one just found. */
bool plan_run_keeps_largest(const PlanRun *run);
void plan_run_keep_largest(PlanRun *run);
/* Whether the result of the product that runs, or of one so many behind it, is kept. */
bool plan_run_keeps_product(const PlanRun *run, unsigned ahead);
/* A number that nobody reads lives until the block's backward is through; takes its reference. */
void plan_keep_number(PlanRun *run, PlanTensor number);
