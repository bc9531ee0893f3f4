#include "sim/costs/issue.h"

#include "plan/fold.h"
#include "plan/op/work.h"
#include "sim/costs/python.h"

/* FSDP2's parameters are DTensors, and it alone copies each out of what was gathered; so they are
 * where ranks share layers. */
static bool has_dtensors(const Plan *plan, const bool *is_there) {
    return plan->axes[PLAN_AXIS_TENSOR] > 1 || is_there[PLAN_OP_GATHER_COPY_OUT];
}

/* What Python takes to move a DTensor as an operator wants it, in parameters that an optimizer
 * takes. bench/muon-host.py, torch 2.13, 2026-11: a matrix costs 1339 us with 11 collectives and
 * 1962 to 2196 us with 16; this makes 1505 and 2020 of them, launches included. */
#define MOVED_IN_PARAMETERS 5

/* Of a parameter whose optimizer's step is compiled by itself: torch.compile looks whether it is as
 * it was. bench/eight-bit-host.py, torch 2.13 and torchao 0.18, 2026-11. */
#define COMPILED_STEP_US 300

static double *costs_of_units(const Plan *plan, const ModelCluster *cluster) {
    double *us = g_new(double, plan->n_units), factor = cluster->host_cpu_factor;
    for (uint32_t u = 0; u < plan->n_units; u++) {
        us[u] = factor * cluster->host_unit_us;
    }
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        us[plan->parameters[p].unit] += factor * cluster->host_parameter_us;
    }
    return us;
}

/* Lists that FSDP itself makes are in what a unit's parameters cost. */
static bool is_of_fsdp(PlanOpKind kind) {
    return kind == PLAN_OP_GATHER_COPY_IN || kind == PLAN_OP_GATHER_COPY_OUT ||
           kind == PLAN_OP_REDUCE_COPY_IN;
}

static bool is_of_nccl(PlanOpKind kind) {
    return plan_op_is_collective(kind) && !plan_op_is_of_peers(kind);
}

/* The first kernel of such a step. */
static bool begins_compiled_step(PlanOpKind kind) {
    return kind == PLAN_OP_ADAM_8BIT || kind == PLAN_OP_ADAM_8BIT_SCALED ||
           kind == PLAN_OP_ADAM_ONE;
}

static bool is_plain(PlanOpKind kind) {
    return !begins_compiled_step(kind) && kind != PLAN_OP_ADD_SCALED &&
           kind != PLAN_OP_ADD_SCALED_BACKWARD && !is_of_nccl(kind) &&
           (plan_op_info(kind)->n_lists == 0 || is_of_fsdp(kind));
}

/* What a step costs before its first instruction: what the loop does, and making tokens of text. */
static double loop_us(const Plan *plan, const ModelCluster *cluster) {
    return cluster->host_loop_us + (double)plan->tokens_per_rank * cluster->host_token_us;
}

SimIssueCosts *sim_issue_costs_new(SimStrategy *strategy, const PlanRole *role,
                                   const ModelCluster *cluster) {
    const Plan *plan = strategy->plan;
    SimIssueCosts *costs = g_new(SimIssueCosts, 1);
    bool is_there[PLAN_N_OP_KINDS] = {false};
    for (uint32_t i = 0; i < role->n_ops; i++) {
        is_there[role->ops[i].kind] = true;
    }
    double factor = cluster->host_cpu_factor;
    *costs = (SimIssueCosts){
        .role = role,
        .joins = cluster->device_kind == MODEL_DEVICE_GPU,
        .launch_us = factor * cluster->host_launch_us,
        .collective_us = factor * cluster->host_collective_us,
        .list_us = factor * cluster->host_list_us,
        .list_kernel_us = factor * cluster->host_list_kernel_us,
        .dtensor_us = has_dtensors(plan, is_there) ? factor * cluster->host_dtensor_us : 0,
        .loop_ns = sim_time_from_us(factor * loop_us(plan, cluster)),
        .unit_us = costs_of_units(plan, cluster),
        .python_ns = sim_python_costs_new(strategy, role, cluster),
    };
    costs->compiled_step_us = factor * COMPILED_STEP_US;
    costs->moved_us = is_there[PLAN_OP_PRODUCT] ? MOVED_IN_PARAMETERS * costs->dtensor_us : 0;
    const double us[PLAN_N_INSTRS] = {
        [PLAN_ALLOC] = cluster->host_alloc_us,         [PLAN_FREE] = cluster->host_free_us,
        [PLAN_MARK] = cluster->host_mark_us,           [PLAN_LAUNCH] = cluster->host_launch_us,
        [PLAN_RECORD] = cluster->host_record_us,       [PLAN_WAIT] = cluster->host_wait_us,
        [PLAN_HOST_WAIT] = cluster->host_host_wait_us, [PLAN_HOST_OP] = cluster->host_host_op_us,
    };
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        costs->ns[kind] = sim_time_from_us(factor * us[kind]);
    }
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        costs->is_plain[kind] = is_there[kind] && is_plain((PlanOpKind)kind);
    }
    return costs;
}

void sim_issue_costs_free(SimIssueCosts *costs) {
    if (costs) {
        g_free(costs->unit_us);
        g_free(costs->python_ns);
        g_free(costs);
    }
}

/* Clipping's norms, and what an optimizer brings its parameters up to date with. */
static bool takes_dtensors(PlanOpKind kind) {
    return kind == PLAN_OP_NORMS || kind == PLAN_OP_ADAM_FUSED ||
           kind == PLAN_OP_ADAM_FUSED_SCALED || kind == PLAN_OP_ADAM_UPDATE ||
           kind == PLAN_OP_SGD_FUSED || kind == PLAN_OP_SGD_UPDATE;
}

static SimTime lists_cost(const SimIssueCosts *costs, const PlanOp *op) {
    const PlanOpInfo *info = plan_op_info(op->kind);
    unsigned n = plan_op_list_length(info, op->n_operands);
    double a_parameter = takes_dtensors(op->kind) ? costs->dtensor_us : 0;
    double of_step = begins_compiled_step(op->kind) ? costs->compiled_step_us : 0;
    return sim_time_from_us(costs->launch_us + of_step +
                            n * (info->n_lists * costs->list_us + a_parameter));
}

/* FSDP's work for a unit comes with what it gathers and reduces, not with what layers exchange. */
static SimTime collective_cost(const SimIssueCosts *costs, const PlanInstr *instr,
                               const PlanOp *op) {
    bool of_unit = (op->kind == PLAN_OP_ALL_GATHER || op->kind == PLAN_OP_REDUCE_SCATTER) &&
                   op->axis != PLAN_AXIS_TENSOR && op->axis != PLAN_AXIS_CONTEXT &&
                   instr->unit != PLAN_NONE;
    return sim_time_from_us(costs->collective_us + (of_unit ? costs->unit_us[instr->unit]
                                                    : instr->unit == PLAN_NONE ? costs->moved_us
                                                                               : 0));
}

SimTime sim_issue_launch_cost(const SimIssueCosts *costs, const PlanInstr *instr) {
    const PlanOp *op = &costs->role->ops[instr->arg];
    if (costs->joins && plan_op_is_within(costs->role, op)) {
        return 0;
    }
    return is_of_nccl(op->kind) ? collective_cost(costs, instr, op) : lists_cost(costs, op);
}

SimTime sim_issue_further_cost(const SimIssueCosts *costs, PlanOpKind kind, unsigned kernels) {
    if (kernels < 2) {
        return 0;
    }
    return plan_op_info(kind)->n_lists > 0 ? sim_time_from_us((kernels - 1) * costs->list_kernel_us)
                                           : (kernels - 1) * costs->ns[PLAN_LAUNCH];
}

/* ---- in all --------------------------------------------------------------------------------- */

/* An instruction costs no more, whatever it is of. */
static double most_ns(const Plan *plan, const ModelCluster *cluster) {
    enum {
        MOST_LISTS = 8
    };
    const double us[] = {
        cluster->host_alloc_us,     cluster->host_free_us,    cluster->host_mark_us,
        cluster->host_launch_us,    cluster->host_record_us,  cluster->host_wait_us,
        cluster->host_host_wait_us, cluster->host_host_op_us, cluster->host_collective_us,
        loop_us(plan, cluster),
    };
    double most_us = 0, n = plan->n_parameters;
    for (unsigned i = 0; i < G_N_ELEMENTS(us); i++) {
        most_us = MAX(most_us, us[i]);
    }
    most_us += cluster->host_unit_us + n * (cluster->host_parameter_us + cluster->host_dtensor_us +
                                            MOST_LISTS * cluster->host_list_us);
    most_us += cluster->host_shared_layer_us + cluster->host_shared_move_us +
               cluster->host_checkpoint_us + cluster->host_saving_us + cluster->host_select_us +
               COMPILED_STEP_US;
    return cluster->host_cpu_factor * most_us * 1e3;
}

static double section_ns(const SimIssueCosts *costs, PlanSection section) {
    const PlanRole *role = costs->role;
    PlanFold fold = {0};
    double sum_ns = 0;
    plan_fold_find(role, section, &fold);
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        double times = i >= fold.begin && i < fold.end ? 1.0 + role->n_folded : 1;
        sum_ns += times * (double)sim_issue_cost(costs, &role->sections[section][i]);
    }
    return sum_ns;
}

double sim_issue_sum_ns(const Plan *plan, const PlanRole *role, const ModelCluster *cluster,
                        uint32_t steps) {
    double n = 0, sum_ns = 0;
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        n += plan_section_repeats(role, s) ? 0 : role->n_instrs[s];
    }
    if (n * (1.0 + role->n_folded) * steps * most_ns(plan, cluster) < (double)SIM_LONGEST) {
        return 0;
    }
    g_autoptr(SimIssueCosts) costs =
        sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, cluster);
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        sum_ns += plan_section_repeats(role, s) ? 0 : section_ns(costs, s);
    }
    return sum_ns + (PLAN_N_SECTIONS - 1) * (double)costs->loop_ns;
}
