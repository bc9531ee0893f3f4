/* sim/trains-well.h - the second verdict: does a plan that fits train well?
 *
 * It does if its compute lane works most of a step and the allocator does not keep giving memory
 * back. Fitting says nothing of speed. Retries in the first steps alone do not count, since many
 * steps follow: published runs of mpt-1b had such retries and trained well.
 */
#pragma once

#include "sim/prediction.h"

/* The least working share of a plan that trains well; a judgement of ours. */
extern const double SIM_WORKS_WELL;

/* Of a step, the part in which the compute lane does arithmetic or moves bytes at full speed; where
 * each rank is played, the mean of all, since the slowest never waits. */
double sim_working_share(const SimPrediction *prediction);
/* In the later half of the steps; where each rank is played, in any of them. */
bool sim_keeps_retrying(const SimPrediction *prediction);
bool sim_trains_well(const SimPrediction *prediction);
/* Which cause takes most of the time in which it does neither (of a host-bound step, the host): of
 * the rank whose times are shown, or, where all ranks together lose more to each other, that. */
unsigned sim_worst_cause(const SimPrediction *prediction);
