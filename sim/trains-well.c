#include "sim/trains-well.h"

#include "sim/figures.h"

const double SIM_WORKS_WELL = 0.8;

double sim_working_share(const SimPrediction *prediction) {
    double all = sim_mean_step_ns(prediction);
    double works = (double)(prediction->cause_ns[SIM_CAUSE_ARITHMETIC] +
                            prediction->cause_ns[SIM_CAUSE_MEMORY]);
    return all > 0 ? works / all : 0;
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
    return sim_prediction_largest_cause(prediction, SIM_CAUSE_OVERHEAD);
}
