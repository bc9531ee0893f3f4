#include "plan/fold.h"

static bool begins_pass(const PlanRole *role, PlanSection section, uint32_t index) {
    const PlanInstr *instr = &role->sections[section][index];
    return instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == PLAN_OP_BATCH;
}

bool plan_fold_find(const PlanRole *role, PlanSection section, PlanFold *ret_fold) {
    PlanFold fold = {PLAN_NONE, PLAN_NONE};
    for (uint32_t i = role->n_instrs[section]; role->n_folded > 0 && i-- > 0;) {
        if (begins_pass(role, section, i) && fold.end != PLAN_NONE) {
            fold.begin = i;
            *ret_fold = fold;
            return true;
        }
        if (begins_pass(role, section, i)) {
            fold.end = i;
        }
    }
    return false;
}
