#include "sim/work.h"

#include "plan/op-work.h"

SimWork sim_work_of_step(const PlanRole *role, const ModelCluster *cluster, SimWorkKind kind) {
    SimWork work = {0};
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        bool again = instr->phase == PLAN_PHASE_RECOMPUTE && kind == SIM_WORK_ASKED;
        if (instr->kind != PLAN_LAUNCH || again) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        double flops = plan_op_model_flops(role, op);
        if (flops > 0) {
            work.flops += flops;
            work.least_seconds += flops / model_cluster_peak_flops(cluster, op->dtype);
        }
    }
    return work;
}
