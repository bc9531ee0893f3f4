/* sim/device/host-clock.h - a rank's host thread: where it is in time, what it pays and waits for.
 *
 * The lanes stay behind the host until somebody looks at them; when it waits they go ahead of it.
 */
#pragma once

#include "sim/device/engine.h"

typedef struct {
    SimTime busy_ns, blocked_ns;
} SimHostBook;

typedef struct {
    SimEngine *engine; /* of the lanes */
    SimHostBook *book; /* of the step at hand */
    SimTime now_ns;
    bool has_peers; /* a play of many may be given up, and then waits end with nothing passed */
} SimHostClock;

static inline void sim_host_pay(SimHostClock *host, SimTime cost) {
    host->now_ns += cost;
    host->book->busy_ns += cost;
}

/* The lanes come to where the host is. */
static inline void sim_host_let_pass(SimHostClock *host) {
    sim_engine_advance(host->engine, host->now_ns);
}

void sim_host_spend(SimHostClock *host, SimTime cost); /* both */

void sim_host_wait_for(SimHostClock *host, uint32_t recording); /* one that was issued */
void sim_host_wait_until_idle(SimHostClock *host);
/* Until the lane has fewer than `most` ops before it. */
void sim_host_wait_for_room(SimHostClock *host, uint32_t lane, uint64_t most);
