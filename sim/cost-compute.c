#include "sim/cost-compute.h"

#include "plan/op-work.h"

/* The share of the matrix units' peak that this class of kernel reaches; 0 for kernels that are
 * bound by the bytes they move and whose few operations hide behind them. */
static double efficiency(const ModelCluster *cluster, PlanOpClass op_class) {
    switch (op_class) {
    case PLAN_CLASS_MATMUL:
        return cluster->device_matmul_efficiency;
    case PLAN_CLASS_ATTENTION:
        return cluster->device_attention_efficiency;
    case PLAN_CLASS_MEMORY:
    case PLAN_CLASS_INPUT:
    case PLAN_CLASS_COLLECTIVE:
        break;
    }
    return 0;
}

bool sim_compute_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                      SimComputeCost *ret_cost) {
    PlanOpWork work = plan_op_work(role, op);
    double share = efficiency(cluster, plan_op_info(op->kind)->op_class);
    double peak = model_cluster_peak_flops(cluster, op->dtype);
    if (share > 0 && peak == 0) {
        return false;
    }
    *ret_cost = (SimComputeCost){
        .overhead_ns = cluster->device_launch_overhead_ns,
        .flops_ns = share > 0 ? work.flops / (peak * share) * 1e9 : 0,
        .bytes_ns =
            work.bytes / (cluster->device_memory_gb_per_s * cluster->device_memory_efficiency),
    };
    return true;
}
