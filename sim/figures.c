#include "sim/figures.h"

#include "plan/mesh.h"
#include "plan/strategy/strategy.h"
#include "trace/quantile.h"

double sim_mean_step_ns(const SimPrediction *prediction) {
    double sum = 0;
    for (unsigned cause = 0; cause < SIM_N_CAUSES; cause++) {
        sum += (double)prediction->cause_ns[cause];
    }
    return sum;
}

/* Judgement of ours: of a step that is all issuing but for a twentieth, no more than that can be
 * saved elsewhere. */
#define LEAST_SHARE_ISSUING 0.95

bool sim_is_host_bound(const SimPrediction *prediction) {
    return (double)prediction->host_ns >= LEAST_SHARE_ISSUING * sim_mean_step_ns(prediction) &&
           prediction->host_ns > prediction->compute_ns;
}

SimTime sim_p95_step_ns(const SimPrediction *prediction) {
    uint32_t n = prediction->n_steady;
    const SimTime *steady = prediction->step_ns + (prediction->n_steps - n);
    g_autofree double *times = g_new(double, MAX(1, n));
    for (uint32_t i = 0; i < n; i++) {
        times[i] = (double)steady[i]; /* exact: below 2^53 ns, a quarter of a year */
    }
    return (SimTime)trace_quantile(times, n, 0.95);
}

double sim_a_second(const SimPrediction *prediction, double amount) {
    SimTime step = prediction->median_step_ns;
    return step > 0 ? amount / ((double)step / 1e9) : 0;
}

uint64_t sim_category_bytes(const uint64_t *by_sub, unsigned category) {
    uint64_t sum = 0;
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        sum += plan_subcategory_category(sub) == category ? by_sub[sub] : 0;
    }
    return sum;
}

double sim_schedule_bubble_ns(const Plan *plan, const SimPrediction *prediction) {
    PlanStrategy strategy;
    if (!plan_strategy_of_text(&strategy, plan->strategy, NULL)) {
        return 0; /* a plan written by hand */
    }
    double turns = (double)plan_stages_of_rank(plan) * (double)strategy.accumulate;
    return (double)prediction->compute_ns * (plan->axes[PLAN_AXIS_PIPELINE] - 1) / turns;
}
