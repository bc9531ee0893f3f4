#include "sim/costs/python.h"

typedef struct {
    bool shares;        /* ranks do, layers */
    bool layers, norms; /* are DTensors */
    double layer_us, move_us;
    double checkpoint_us, saving_us; /* of a block; of a launch in it */
    bool *is_checkpointed;           /* by module */
} Python;

static bool is_launch(const PlanInstr *instr, PlanPhase phase) {
    return instr->kind == PLAN_LAUNCH && instr->phase == phase;
}

static bool mark_checkpointed(const PlanRole *role, bool *is_checkpointed) {
    bool any = false;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
        if (is_launch(instr, PLAN_PHASE_RECOMPUTE) && instr->module != PLAN_NONE) {
            any = is_checkpointed[instr->module] = true;
        }
    }
    return any;
}

/* Its kernel is one that DTensor dispatches. */
static bool is_of_shared_layer(const Python *python, PlanOpKind kind) {
    bool of_norm = kind == PLAN_OP_RMSNORM || kind == PLAN_OP_RMSNORM_BACKWARD;
    bool of_layer = plan_op_is_linear(kind) || kind == PLAN_OP_LINEAR_DX ||
                    kind == PLAN_OP_LINEAR_DW || kind == PLAN_OP_EMBEDDING ||
                    kind == PLAN_OP_EMBEDDING_BACKWARD;
    return (of_norm && python->norms) || (of_layer && python->layers);
}

static double us_of_shared(const Python *python, const PlanOp *op) {
    bool moves = plan_op_is_collective(op->kind) && op->axis == PLAN_AXIS_TENSOR;
    return moves ? python->move_us : is_of_shared_layer(python, op->kind) ? python->layer_us : 0;
}

static double us_of_checkpoint(const Python *python, const PlanInstr *instr, PlanPhase before) {
    bool again = instr->phase == PLAN_PHASE_RECOMPUTE;
    bool is_seen = again || (instr->phase == PLAN_PHASE_FORWARD && instr->module != PLAN_NONE &&
                             python->is_checkpointed[instr->module]);
    return (is_seen ? python->saving_us : 0) +
           (again && before != PLAN_PHASE_RECOMPUTE ? python->checkpoint_us : 0);
}

static void add_section(SimTime *ns, const Python *python, const PlanRole *role,
                        PlanSection section) {
    PlanPhase before = PLAN_PHASE_SETUP;
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (instr->kind == PLAN_LAUNCH) {
            double us = (python->shares ? us_of_shared(python, &role->ops[instr->arg]) : 0) +
                        us_of_checkpoint(python, instr, before);
            ns[instr->arg] = us > 0 ? sim_time_from_us(us) : 0;
            before = instr->phase;
        }
    }
}

SimTime *sim_python_costs_new(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster) {
    const Plan *plan = strategy->plan;
    g_autofree bool *is_checkpointed = g_new0(bool, plan->n_modules);
    bool checkpoints = mark_checkpointed(role, is_checkpointed);
    bool matters = checkpoints || plan->axes[PLAN_AXIS_TENSOR] > 1;
    const PlanStrategy *known = matters ? sim_strategy(strategy) : NULL;
    if (!known || known->kernels == PLAN_KERNELS_COMPILED) {
        return NULL;
    }
    double factor = cluster->host_cpu_factor;
    bool selects = known->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP;
    Python python = {
        .shares = plan->axes[PLAN_AXIS_TENSOR] > 1,
        .layers = known->tensor > 1,
        .norms = known->tensor > 1 && known->sequence_parallel == PLAN_YES,
        .layer_us = factor * cluster->host_shared_layer_us,
        .move_us = factor * cluster->host_shared_move_us,
        .checkpoint_us = factor * cluster->host_checkpoint_us,
        .saving_us = factor * (cluster->host_saving_us + (selects ? cluster->host_select_us : 0)),
        .is_checkpointed = is_checkpointed,
    };
    SimTime *ns = g_new0(SimTime, role->n_ops);
    for (PlanSection section = PLAN_SECTION_FIRST; section < PLAN_N_SECTIONS; section++) {
        if (!plan_section_repeats(role, section)) {
            add_section(ns, &python, role, section);
        }
    }
    return ns;
}
