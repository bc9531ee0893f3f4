#include "sim/spending.h"

static double known_sum(double sum, double more) {
    return sum < 0 || more <= 0 ? -1 : sum + more;
}

SimSpending sim_spending(const Plan *plan, const ModelCluster *cluster,
                         const SimPrediction *prediction) {
    double watts = 0, price = 0; /* of all ranks; -1: unknown */
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        const ModelCluster *kind =
            model_cluster_node(cluster, rank / cluster->topology_gpus_per_node);
        watts = known_sum(watts, kind->device_watts);
        price = known_sum(price, kind->device_price_per_hour);
    }
    double hours = (double)prediction->median_step_ns / 1e9 / 3600;
    double millions = (double)plan->tokens_per_rank * plan->world / 1e6;
    double hours_a_million = millions > 0 ? hours / millions : 0;
    return (SimSpending){
        .kwh_per_million = MAX(watts, 0) / 1e3 * hours_a_million,
        .price_per_million = MAX(price, 0) * hours_a_million,
    };
}
