/* sim/jitter.h - how much longer or shorter than its mean a thing takes this time.
 *
 * The factor is a function of seed, rank, step and a number within the step, and of nothing else:
 * whatever the order in which things are played, each takes the same time. Log-normal with mean 1,
 * so that times stay positive and the mean over many is the cost model's.
 */
#pragma once

#include <stdint.h>

/* deviation: standard deviation over the mean, 0 or more; 0 gives 1. step: -1 for construction. */
double sim_jitter_factor(double deviation, uint64_t seed, uint32_t rank, int32_t step,
                         uint32_t number);
