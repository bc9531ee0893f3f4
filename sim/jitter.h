/* sim/jitter.h - random factors on durations.
 *
 * A factor is a function of seed, kind, who, step and a number within the step, so each thing takes
 * the same time in whatever order things are played. Factors are log-normal with mean 1: times stay
 * positive, and the mean over many is the cost model's.
 */
#pragma once

#include <stdint.h>

typedef enum {
    SIM_JITTER_KERNEL, /* each kernel; who: the rank */
    SIM_JITTER_GPU,    /* all kernels of a GPU alike, all along; who: the rank */
    SIM_JITTER_HOST,   /* the host's cost of each instruction; who: the rank */
    SIM_JITTER_LINK,   /* each collective; who: the communicator */
    SIM_N_JITTERS
} SimJitterKind;

typedef struct {
    uint64_t seed;
    double shares[SIM_N_JITTERS]; /* standard deviation over the mean, 0 or more; 0: factor 1 */
} SimJitter;

double sim_jitter_draw(const SimJitter *jitter, SimJitterKind kind, uint32_t who, int32_t step,
                       uint32_t number); /* its share is not 0 */

/* step: -1 for construction. */
static inline double sim_jitter_factor(const SimJitter *jitter, SimJitterKind kind, uint32_t who,
                                       int32_t step, uint32_t number) {
    return jitter->shares[kind] == 0 ? 1 : sim_jitter_draw(jitter, kind, who, step, number);
}

/* How many times as long as the mean the slowest of n takes, expected: the mean of the largest of n
 * factors of such a share. */
double sim_jitter_slowest(double share, uint32_t n);
