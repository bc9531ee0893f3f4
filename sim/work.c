#include "sim/work.h"

#include "plan/fold.h"
#include "plan/op/names.h"
#include "plan/op/work.h"

/* How many times its even share of rows the role's experts get (expert_overload). */
static double overload_of(const PlanRole *role) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (role->ops[i].kind == PLAN_OP_UNEVEN_ALL_TO_ALL) {
            const int64_t *dims = plan_op_dims(role, &role->ops[i]);
            double sent = (double)dims[UNEVEN_COLLECTIVE_SENT];
            double received = (double)dims[UNEVEN_COLLECTIVE_RECEIVED];
            return MAX(sent, received) / MIN(sent, received);
        }
    }
    return 1;
}

static bool is_of_experts(PlanOpKind kind) {
    return kind == PLAN_OP_GROUPED_LINEAR || kind == PLAN_OP_GROUPED_LINEAR_DX ||
           kind == PLAN_OP_GROUPED_LINEAR_DW;
}

/* A role's step, and how its work is counted. */
typedef struct {
    const PlanRole *role;
    const ModelCluster *cluster;
    SimWorkKind kind;
    double overload;
} Counted;

static double flops_of(const Counted *c, const PlanOp *op) {
    bool of_all = c->kind == SIM_WORK_ASKED_OF_ALL_PAIRS || c->kind == SIM_WORK_DONE_OF_ALL_PAIRS;
    double flops =
        of_all ? plan_op_model_flops_of_all_pairs(c->role, op) : plan_op_model_flops(c->role, op);
    return is_of_experts((PlanOpKind)op->kind) ? flops / c->overload : flops;
}

static void add(SimWork *work, const Counted *c, uint32_t begin, uint32_t end) {
    bool is_once = c->kind == SIM_WORK_ASKED || c->kind == SIM_WORK_ASKED_OF_ALL_PAIRS;
    for (uint32_t i = begin; i < end; i++) {
        const PlanInstr *instr = &c->role->sections[PLAN_SECTION_STEADY][i];
        bool again = instr->phase == PLAN_PHASE_RECOMPUTE && is_once;
        if (instr->kind != PLAN_LAUNCH || again) {
            continue;
        }
        const PlanOp *op = &c->role->ops[instr->arg];
        double flops = flops_of(c, op);
        if (flops > 0) {
            work->flops += flops;
            work->least_seconds += flops / model_cluster_peak_flops(c->cluster, op->dtype);
        }
    }
}

/* Passes that are not written out count, too. They are added one after the other, so that the sum
 * is rounded as if they were written. */
SimWork sim_work_of_step(const PlanRole *role, const ModelCluster *cluster, SimWorkKind kind) {
    Counted counted = {role, cluster, kind, overload_of(role)};
    SimWork work = {0};
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY];
    PlanFold fold = {n, n};
    bool folds = plan_fold_find(role, PLAN_SECTION_STEADY, &fold);
    add(&work, &counted, 0, fold.end);
    for (uint32_t pass = 0; folds && pass < role->n_folded; pass++) {
        add(&work, &counted, fold.begin, fold.end);
    }
    add(&work, &counted, fold.end, n);
    return work;
}
