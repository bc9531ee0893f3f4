/* plan/build/batch.h - the next batch of data. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

/* Fills the input with the batch of the pass at hand. n_passes: how many passes the step has. */
void plan_next_batch(PlanRun *run, uint64_t n_passes);
