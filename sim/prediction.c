#include "sim/prediction.h"

#include "plan/op/work.h"

static uint64_t left_beside(uint64_t shared_bytes, const ModelCluster *cluster) {
    uint64_t left = model_cluster_allocator_bytes(cluster);
    return left > shared_bytes ? left - shared_bytes : 0;
}

uint64_t sim_allocator_bytes(const Plan *plan, const ModelCluster *cluster) {
    return left_beside(plan_workspace_bytes(&plan->roles[0]), cluster);
}

void sim_prediction_set_memory(SimPrediction *prediction, const Plan *plan,
                               const ModelCluster *node) {
    uint64_t shared = plan_workspace_bytes(&plan->roles[0]);
    prediction->memory_bytes = node->device_memory_bytes;
    prediction->outside_allocator_bytes = model_cluster_outside_bytes(node) + shared;
    prediction->allocator_bytes = left_beside(shared, node);
    prediction->workspace_bytes = model_cluster_workspace_bytes(node);
}

SimPrediction *sim_prediction_new(const Plan *plan, const ModelCluster *cluster, uint32_t steps) {
    SimPrediction *prediction = g_new0(SimPrediction, 1);
    prediction->fits = true;
    sim_prediction_set_memory(prediction, plan, cluster);
    prediction->unsupported_on = cluster->model;
    prediction->n_steps = prediction->n_played = steps;
    prediction->n_steady = steps > 2 ? steps - 2 : steps;
    prediction->step_ns = g_new0(SimTime, steps);
    prediction->n_lanes = plan->n_lanes;
    prediction->lane_busy_ns = g_new0(SimTime, plan->n_lanes);
    prediction->n_units = plan->n_units;
    prediction->peak.by_unit = g_new0(uint64_t, (gsize)plan->n_units + 1);
    return prediction;
}

SimTime sim_prediction_cause_ns(const SimPrediction *prediction, unsigned cause) {
    SimTime ns = 0;
    for (unsigned other = 0; prediction->cause_ns[cause] > 0 && other < SIM_N_CAUSES; other++) {
        bool is_same = prediction->cause_ns[other] > 0 &&
                       g_str_equal(prediction->cause_names[other], prediction->cause_names[cause]);
        if (is_same && other < cause) {
            return 0;
        }
        ns += is_same ? prediction->cause_ns[other] : 0;
    }
    return ns;
}

unsigned sim_prediction_largest_cause(const SimPrediction *prediction, unsigned from) {
    unsigned largest = from;
    SimTime most = 0;
    for (unsigned cause = from; cause < SIM_N_CAUSES; cause++) {
        SimTime ns = sim_prediction_cause_ns(prediction, cause);
        if (ns > most) {
            largest = cause;
            most = ns;
        }
    }
    return largest;
}

void sim_prediction_free(SimPrediction *prediction) {
    if (prediction) {
        g_free(prediction->step_ns);
        g_free(prediction->lane_busy_ns);
        g_free(prediction->peak.by_unit);
        g_free(prediction->ranks);
        g_free(prediction);
    }
}
