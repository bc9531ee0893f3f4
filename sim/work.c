#include "sim/work.h"

#include "plan/fold.h"
#include "plan/op/work.h"

static void add(SimWork *work, const PlanRole *role, const ModelCluster *cluster, SimWorkKind kind,
                uint32_t begin, uint32_t end) {
    bool is_once = kind == SIM_WORK_ASKED || kind == SIM_WORK_ASKED_OF_ALL_PAIRS;
    bool of_all = kind == SIM_WORK_ASKED_OF_ALL_PAIRS || kind == SIM_WORK_DONE_OF_ALL_PAIRS;
    for (uint32_t i = begin; i < end; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        bool again = instr->phase == PLAN_PHASE_RECOMPUTE && is_once;
        if (instr->kind != PLAN_LAUNCH || again) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        double flops =
            of_all ? plan_op_model_flops_of_all_pairs(role, op) : plan_op_model_flops(role, op);
        if (flops > 0) {
            work->flops += flops;
            work->least_seconds += flops / model_cluster_peak_flops(cluster, op->dtype);
        }
    }
}

/* Passes that are not written out count, too. They are added one after the other, so that the sum
 * is rounded as if they were written. */
SimWork sim_work_of_step(const PlanRole *role, const ModelCluster *cluster, SimWorkKind kind) {
    SimWork work = {0};
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY];
    PlanFold fold = {n, n};
    bool folds = plan_fold_find(role, PLAN_SECTION_STEADY, &fold);
    add(&work, role, cluster, kind, 0, fold.end);
    for (uint32_t pass = 0; folds && pass < role->n_folded; pass++) {
        add(&work, role, cluster, kind, fold.begin, fold.end);
    }
    add(&work, role, cluster, kind, fold.end, n);
    return work;
}
