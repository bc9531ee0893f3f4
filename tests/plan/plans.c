#include "tests/plan/plans.h"

#include <string.h>

#include "models/network.h"
#include "plan/op/work.h"

static Plan *make(const char *network_text, const char *words, GError **error) {
    PlanStrategy strategy;
    if (!plan_strategy_of_words(&strategy, words, error)) {
        return NULL;
    }
    g_autoptr(ModelNetwork) network =
        model_network_read(network_text, strlen(network_text), "toy.ini", error);
    return network ? model_network_plan(network, &strategy, PLAN_FORM_WHOLE, error) : NULL;
}

Plan *test_plan(const char *network_text, const char *words) {
    g_autoptr(GError) error = NULL;
    Plan *plan = make(network_text, words, &error);
    g_assert_no_error(error);
    return plan;
}

Plan *test_plan_or_refusal(const char *network_text, const char *words) {
    return make(network_text, words, NULL);
}

GError *test_plan_error(const char *network_text, const char *words) {
    GError *error = NULL;
    g_autoptr(Plan) plan = make(network_text, words, &error);
    g_assert_null(plan);
    g_assert_nonnull(error);
    return error;
}

TestCounts test_count_steady(const Plan *plan) {
    TestCounts counts = {0};
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind == PLAN_LAUNCH) {
            const PlanOp *op = &role->ops[instr->arg];
            counts.n[op->kind]++;
            counts.bytes[op->kind] += (uint64_t)plan_op_work(role, op).bytes;
        }
    }
    return counts;
}
