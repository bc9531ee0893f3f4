#include "plan/plan.h"

G_DEFINE_QUARK(foreshard_plan_error, plan_error)

Plan *plan_new(void) {
    Plan *plan = g_new0(Plan, 1);
    plan->arena = plan_arena_new();
    return plan;
}

void plan_free(Plan *plan) {
    if (plan) {
        plan_arena_free(plan->arena);
        g_free(plan->digest);
        g_free(plan);
    }
}

const char *plan_section_name(PlanSection section) {
    static const char *const names[PLAN_N_SECTIONS] = {"construct", "first", "second", "steady"};
    g_assert(section < PLAN_N_SECTIONS);
    return names[section];
}

const char *plan_phase_name(PlanPhase phase) {
    static const char *const names[PLAN_N_PHASES] = {"setup",    "forward",   "recompute",
                                                     "backward", "optimizer", "evaluation"};
    g_assert(phase < PLAN_N_PHASES);
    return names[phase];
}

const char *plan_axis_name(PlanAxis axis) {
    static const char *const names[PLAN_N_AXES] = {
        "none", "replicate", "shard", "part", "tensor", "context", "pipeline", "expert", "alike"};
    g_assert(axis < PLAN_N_AXES);
    return names[axis];
}

const char *plan_split_name(PlanSplit split) {
    static const char *const names[PLAN_N_SPLITS] = {"all",    "rows",    "columns",
                                                     "thirds", "experts", "cut_experts"};
    g_assert(split < PLAN_N_SPLITS);
    return names[split];
}

const char *plan_instr_name(PlanInstrKind kind) {
    static const char *const names[PLAN_N_INSTRS] = {"alloc",  "free", "mark",      "launch",
                                                     "record", "wait", "host_wait", "host_op"};
    g_assert(kind < PLAN_N_INSTRS);
    return names[kind];
}

uint32_t plan_compute_lane(const Plan *plan) {
    for (uint32_t lane = 0; lane < plan->n_lanes; lane++) {
        if (g_str_equal(plan->lanes[lane], "compute")) {
            return lane;
        }
    }
    return 0;
}

uint32_t plan_role_of_rank(const Plan *plan, uint32_t rank) {
    g_assert(rank < plan->world);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        for (uint32_t j = 0; j < plan->roles[i].n_ranks; j++) {
            if (plan->roles[i].ranks[j] == rank) {
                return i;
            }
        }
    }
    g_assert_not_reached();
}

bool plan_steps_alternate(const PlanRole *role) {
    if (plan_section_repeats(role, PLAN_SECTION_STEADY)) {
        return false; /* what a program touches it leaves in one state, whatever it found */
    }
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        unsigned carried = role->buffers[b].carried;
        if ((carried >> PLAN_SECTION_SECOND & 1) != (carried >> PLAN_SECTION_STEADY & 1)) {
            return true;
        }
    }
    return false;
}
