/* sim/time.h - the simulator's clock: nanoseconds in 64 bits, so that sums are exact.
 *
 * Cost models compute in double and are rounded once, here. A duration is at least 0. One above
 * SIM_LONGEST is cut to it; sim_op_costs_check() refuses plays that would come near.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef int64_t SimTime; /* ns */

#define SIM_NEVER   INT64_MAX
#define SIM_LONGEST INT64_C(4000000000000000) /* ns: 46 days; a thousand of them fit a SimTime */

static inline SimTime sim_time_from_ns(double ns) {
    g_assert(ns >= 0);
    if (ns >= (double)SIM_LONGEST) {
        return SIM_LONGEST;
    }
    SimTime whole = (SimTime)ns;
    return whole + (ns - (double)whole >= 0.5); /* llround(), which is a call */
}

static inline SimTime sim_time_from_us(double us) {
    return sim_time_from_ns(us * 1e3);
}

static inline double sim_ms(SimTime ns) {
    return (double)ns / 1e6;
}
