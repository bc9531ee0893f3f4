/* sim/time.h - the simulator's clock: nanoseconds in 64 bits, so that sums are exact.
 *
 * Cost models think in double and round once, here; a duration is never less than zero, and one
 * that is longer than any play may be (sim_op_costs_check() refuses its plan) is cut.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef int64_t SimTime; /* ns */

#define SIM_NEVER   INT64_MAX
#define SIM_LONGEST INT64_C(4000000000000000) /* ns: 46 days; a thousand such are a SimTime yet */

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
