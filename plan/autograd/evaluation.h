/* plan/autograd/evaluation.h - the graph of an evaluation, in the place of training's
 * (../build/evaluate.h). Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

/* Puts the evaluation's graph in the place of training's, and back again. In between, tensors that
 * are made once, such as rotary tables, are still those of training; the evaluation's own batch is
 * made once as well. */
void plan_evaluation_begin(PlanRun *run);
void plan_evaluation_end(PlanRun *run);
