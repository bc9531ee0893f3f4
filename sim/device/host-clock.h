/* sim/device/host-clock.h - the host thread of a rank: its time, what it pays and what it waits
 * for.
 *
 * The lanes' clock stays behind the host's until somebody looks at the lanes. When the host waits,
 * the lanes' clock runs ahead, and then the host catches up.
 */
#pragma once

#include "sim/device/engine.h"

typedef struct {
    SimTime busy_ns, blocked_ns;
    uint64_t n_retries; /* of the allocator */
} SimHostBook;

typedef struct {
    SimEngine *engine; /* of the lanes */
    SimHostBook *book; /* of the step at hand */
    SimTime now_ns;
    bool has_peers; /* every-rank play: it may be given up, and then waits end early */
} SimHostClock;

static inline void sim_host_pay(SimHostClock *host, SimTime cost) {
    host->now_ns += cost;
    host->book->busy_ns += cost;
}

/* Lets the lanes' clock catch up with the host's. */
static inline void sim_host_let_pass(SimHostClock *host) {
    sim_engine_advance(host->engine, host->now_ns);
}

void sim_host_spend(SimHostClock *host, SimTime cost); /* both */

void sim_host_wait_for(SimHostClock *host, uint32_t recording); /* one that was issued */
void sim_host_wait_until_idle(SimHostClock *host);
/* Until the lane has fewer than `most` ops before it. */
void sim_host_wait_for_room(SimHostClock *host, uint32_t lane, uint64_t most);
