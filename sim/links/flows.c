#include "sim/links/flows.h"

#include "sim/links/fair.h"
#include "sim/queue.h"

/* left_bytes were left at since_ns; since then it goes at rate. */
typedef struct {
    double left_bytes, rate;
    SimTime since_ns;
    uint64_t tag;
} Flow;

struct _SimFlows {
    SimFair *fair;
    SimQueue *ends; /* a slot a flow; flows have fair's numbers */
    GArray *flows;  /* Flow */
    SimTime now;
    bool changed; /* at now, and rates have not been worked out since */
};

SimFlows *sim_flows_new(const double *capacities, uint32_t n_links) {
    SimFlows *flows = g_new0(SimFlows, 1);
    flows->fair = sim_fair_new(capacities, n_links);
    flows->ends = sim_queue_new(0);
    flows->flows = g_array_new(FALSE, FALSE, sizeof(Flow));
    return flows;
}

void sim_flows_free(SimFlows *flows) {
    if (flows) {
        sim_fair_free(flows->fair);
        sim_queue_free(flows->ends);
        g_array_unref(flows->flows);
        g_free(flows);
    }
}

static void set_rates(SimFlows *flows) {
    const uint32_t *changed;
    uint32_t n = sim_fair_solve(flows->fair, &changed);
    for (uint32_t i = 0; i < n; i++) {
        Flow *flow = &g_array_index(flows->flows, Flow, changed[i]);
        flow->left_bytes -= (double)(flows->now - flow->since_ns) * flow->rate;
        flow->since_ns = flows->now;
        flow->rate = sim_fair_rate(flows->fair, changed[i]);
        SimTime left = sim_time_from_ns(MAX(0, flow->left_bytes) / flow->rate);
        sim_queue_set(flows->ends, changed[i], flows->now + left);
    }
    flows->changed = false;
}

void sim_flows_start(SimFlows *flows, const uint32_t *path, uint32_t n, double bytes, uint64_t tag,
                     SimTime at) {
    g_assert(bytes >= 0 && at >= flows->now);
    if (flows->changed && at > flows->now) {
        set_rates(flows);
    }
    g_assert(at <= sim_queue_next(flows->ends));
    flows->now = at;
    flows->changed = true;
    uint32_t number = sim_fair_add(flows->fair, path, n);
    if (number == flows->flows->len) {
        g_array_set_size(flows->flows, number + 1);
        sim_queue_grow(flows->ends, number + 1);
    }
    g_array_index(flows->flows, Flow, number) =
        (Flow){.left_bytes = bytes, .since_ns = at, .tag = tag};
}

/* What ends at this very moment ends whatever the rates become, so it need not wait for them. */
SimTime sim_flows_next(SimFlows *flows) {
    if (flows->changed && sim_queue_next(flows->ends) > flows->now) {
        set_rates(flows);
    }
    return sim_queue_next(flows->ends);
}

bool sim_flows_pop(SimFlows *flows, uint64_t *ret_tag, SimTime *ret_at) {
    uint32_t number;
    SimTime at;
    sim_flows_next(flows);
    if (!sim_queue_pop(flows->ends, &number, &at)) {
        return false;
    }
    sim_fair_remove(flows->fair, number);
    flows->now = at;
    flows->changed = true;
    *ret_tag = g_array_index(flows->flows, Flow, number).tag;
    *ret_at = at;
    return true;
}
