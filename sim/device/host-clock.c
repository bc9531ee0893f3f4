#include "sim/device/host-clock.h"

void sim_host_spend(SimHostClock *host, SimTime cost) {
    sim_host_pay(host, cost);
    sim_host_let_pass(host);
}

static void catch_up(SimHostClock *host) {
    SimTime now = sim_engine_now(host->engine);
    host->book->blocked_ns += now - host->now_ns;
    host->now_ns = now;
}

void sim_host_wait_for(SimHostClock *host, uint32_t recording) {
    sim_host_let_pass(host);
    bool more = true;
    while (more && !sim_engine_passed(host->engine, recording)) {
        more = sim_engine_step(host->engine);
    }
    g_assert(more || host->has_peers);
    catch_up(host);
}

void sim_host_wait_until_idle(SimHostClock *host) {
    sim_host_let_pass(host);
    while (sim_engine_step(host->engine)) {
    }
    catch_up(host);
}

void sim_host_wait_for_room(SimHostClock *host, uint32_t lane, uint64_t most) {
    if (sim_engine_queued_ops(host->engine, lane) < most) {
        return;
    }
    do {
        bool more = sim_engine_step(host->engine);
        g_assert(more);
    } while (sim_engine_queued_ops(host->engine, lane) >= most);
    catch_up(host);
}
