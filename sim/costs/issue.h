/* sim/costs/issue.h - what the host pays to issue each instruction of a role.
 *
 * A cluster's [host] says it by kind of instruction. On top of that comes a framework's Python: for
 * each unit that FSDP gathers or reduces, for each parameter of that unit, for each tensor in the
 * lists of an op, for each parameter that an optimizer or clipping takes as a DTensor (FSDP2), or
 * whose step is compiled by itself, for each DTensor that Muon's operators move, what python.h
 * says, and for each step, before it begins.
 *
 * Owns: its numbers. Borrows: role and cluster. Threads: const once made, so any number.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/strategy.h"
#include "sim/time.h"

/* The costs of a role's instructions. Numbers in us are the cluster's, of the same names in [host]
 * if nothing else is said. */
typedef struct {
    const PlanRole *role;
    SimTime ns[PLAN_N_INSTRS];      /* by kind of instruction; LAUNCH: a kernel without lists */
    bool is_plain[PLAN_N_OP_KINDS]; /* launching such an op costs ns[LAUNCH], and its Python */
    bool joins; /* what a compiler has in another op's kernel (plan/op/work.h) costs nothing */
    double launch_us, collective_us, list_us, list_kernel_us, dtensor_us;
    double compiled_step_us; /* of a parameter, beside its kernels */
    double moved_us;         /* of a DTensor that an operator wants laid out otherwise, beside the
                         * collective that does it */
    SimTime loop_ns;         /* of a step, before its first instruction */
    double *unit_us;         /* by unit: what its gather or reduction costs on top */
    SimTime *python_ns;      /* by op: what Python costs on top of its launch; NULL: nothing */
} SimIssueCosts;

SimIssueCosts *sim_issue_costs_new(SimStrategy *strategy, const PlanRole *role,
                                   const ModelCluster *cluster);
void sim_issue_costs_free(SimIssueCosts *costs); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimIssueCosts, sim_issue_costs_free)

/* What it costs to launch an op that is not plain, without its Python. */
SimTime sim_issue_launch_cost(const SimIssueCosts *costs, const PlanInstr *instr);
/* What it costs to issue the other kernels of an op that has many (compute.h), after the first. */
SimTime sim_issue_further_cost(const SimIssueCosts *costs, PlanOpKind kind, unsigned kernels);

/* What it costs to issue an instruction. */
static inline SimTime sim_issue_cost(const SimIssueCosts *costs, const PlanInstr *instr) {
    if (instr->kind != PLAN_LAUNCH) {
        return costs->ns[instr->kind];
    }
    return (costs->python_ns ? costs->python_ns[instr->arg] : 0) +
           (costs->is_plain[costs->role->ops[instr->arg].kind]
                ? costs->ns[PLAN_LAUNCH]
                : sim_issue_launch_cost(costs, instr));
}

/* What it costs to issue all of a role's sections once; 0 if `steps` steps cannot come near
 * SIM_LONGEST anyway. */
double sim_issue_sum_ns(const Plan *plan, const PlanRole *role, const ModelCluster *cluster,
                        uint32_t steps);
