#include "sim/trains-well.h"

#include "sim/figures.h"

const double SIM_WORKS_WELL = 0.8;

static double works_ns(const SimPrediction *prediction) {
    double sum = 0;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        sum += (double)prediction->ranks[rank].works_ns;
    }
    return prediction->n_ranks ? sum / prediction->n_ranks
                               : (double)(prediction->cause_ns[SIM_CAUSE_ARITHMETIC] +
                                          prediction->cause_ns[SIM_CAUSE_MEMORY]);
}

double sim_working_share(const SimPrediction *prediction) {
    double all = sim_mean_step_ns(prediction);
    return all > 0 ? works_ns(prediction) / all : 0;
}

bool sim_keeps_retrying(const SimPrediction *prediction) {
    return prediction->n_ranks > 0 ? prediction->alloc_retries > 0
                                   : prediction->retries_per_step > 0;
}

bool sim_trains_well(const SimPrediction *prediction) {
    return prediction->fits && !prediction->unsupported_dtype && !sim_keeps_retrying(prediction) &&
           sim_working_share(prediction) >= SIM_WORKS_WELL;
}

unsigned sim_worst_cause(const SimPrediction *prediction) {
    unsigned worst = sim_is_host_bound(prediction)
                         ? SIM_CAUSE_HOST
                         : sim_prediction_largest_cause(prediction, SIM_CAUSE_OVERHEAD);
    SimTime lost = 0; /* to others, by all ranks */
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        lost += prediction->ranks[rank].lost_ns;
    }
    bool is_lost = lost > sim_prediction_cause_ns(prediction, worst) * prediction->n_ranks;
    return is_lost ? SIM_CAUSE_RANKS : worst;
}
