#include "sim/trains-well.h"

#include "sim/figures.h"

const double SIM_WORKS_WELL = 0.8;

double sim_working_share(const SimPrediction *prediction) {
    double all = sim_mean_step_ns(prediction);
    double works = (double)(prediction->shares_ns[SIM_SHARE_ARITHMETIC] +
                            prediction->shares_ns[SIM_SHARE_MEMORY]);
    return all > 0 ? works / all : 0;
}

bool sim_trains_well(const SimPrediction *prediction) {
    return prediction->fits && !prediction->unsupported_dtype && prediction->alloc_retries == 0 &&
           sim_working_share(prediction) >= SIM_WORKS_WELL;
}

unsigned sim_worst_share(const SimPrediction *prediction) {
    return sim_prediction_largest_share(prediction, SIM_SHARE_OVERHEAD);
}
