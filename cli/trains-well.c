#include "cli/trains-well.h"

const double CLI_WORKS_WELL = 0.8;

double cli_mean_step_ns(const SimPrediction *prediction) {
    double sum = 0;
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        sum += (double)prediction->shares_ns[share];
    }
    return sum;
}

double cli_working_share(const SimPrediction *prediction) {
    double all = cli_mean_step_ns(prediction);
    double works = (double)(prediction->shares_ns[SIM_SHARE_ARITHMETIC] +
                            prediction->shares_ns[SIM_SHARE_MEMORY]);
    return all > 0 ? works / all : 0;
}

bool cli_trains_well(const SimPrediction *prediction) {
    return prediction->fits && !prediction->unsupported_dtype && prediction->alloc_retries == 0 &&
           cli_working_share(prediction) >= CLI_WORKS_WELL;
}

unsigned cli_worst_share(const SimPrediction *prediction) {
    return sim_prediction_largest_share(prediction, SIM_SHARE_OVERHEAD);
}
