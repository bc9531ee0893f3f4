/* sim/time.h - the simulator's clock: nanoseconds in 64 bits, so that sums are exact.
 *
 * Cost models think in double and round once, here; a duration is never less than zero.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef int64_t SimTime; /* ns */

#define SIM_NEVER INT64_MAX

static inline SimTime sim_time_from_ns(double ns) {
    g_assert(ns >= 0 && ns < 9e18);
    SimTime whole = (SimTime)ns;
    return whole + (ns - (double)whole >= 0.5); /* llround(), which is a call */
}

static inline SimTime sim_time_from_us(double us) {
    return sim_time_from_ns(us * 1e3);
}
