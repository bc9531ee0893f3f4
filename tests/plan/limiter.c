/* FSDP1's limiter: which freed parameters a gather waits for. */
#include "tests/plan/plans.h"

typedef struct {
    uint32_t unit; /* whose compute the freed parameters served */
    PlanPhase phase;
    unsigned before;
} Freed;

/* In steady: what the host waits for right before the unit is gathered, with NONE for nothing. */
static Freed waited_for(const Plan *plan, uint32_t unit, PlanPhase phase) {
    const PlanRole *role = &plan->roles[0];
    const PlanInstr *instrs = role->sections[PLAN_SECTION_STEADY], *wait = NULL;
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY];
    for (uint32_t i = 0; i < n; i++) {
        bool gathers = instrs[i].kind == PLAN_LAUNCH && instrs[i].unit == unit &&
                       role->ops[instrs[i].arg].kind == PLAN_OP_ALL_GATHER;
        if (instrs[i].kind == PLAN_HOST_WAIT) {
            wait = &instrs[i];
        } else if (gathers && instrs[i].phase == phase) {
            break;
        } else if (instrs[i].kind == PLAN_LAUNCH) {
            wait = NULL; /* that was another's */
        }
    }
    for (uint32_t i = 0; wait && i < n; i++) {
        if (instrs[i].kind == PLAN_RECORD && instrs[i].arg == wait->arg) {
            return (Freed){instrs[i].unit, (PlanPhase)instrs[i].phase, wait->before};
        }
    }
    return (Freed){.unit = PLAN_NONE};
}

/* The steady state that replaying PyTorch's queue gives: with L blocks numbered from 1 here, the
 * gather of block i in forward waits for the forward of i - back; in backward, for the backward of
 * i + ahead. So many blocks at most are gathered at once, besides the root. */
static void limiter_steady_state(void) {
    static const struct {
        const char *keys;
        unsigned back, ahead;
    } rows[] = {{"backward_prefetch=pre", 3, 3},
                {"backward_prefetch=post", 2, 2},
                {"backward_prefetch=none", 2, 2},
                {"backward_prefetch=pre forward_prefetch=yes", 4, 4},
                {"backward_prefetch=post forward_prefetch=yes", 3, 3},
                {"backward_prefetch=none forward_prefetch=yes", 3, 3}};
    enum {
        BLOCKS = 9
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *keys = g_strconcat("ranks=4 flavour=fsdp1 ", rows[i].keys, NULL);
        g_autoptr(Plan) plan = test_plan(
            "[network]\nfamily=gpt\nlayers=9\nwidth=16\nheads=2\nvocab=16\nseq=8\n", keys);
        for (uint32_t block = 6; block <= BLOCKS; block++) {
            Freed freed = waited_for(plan, block, PLAN_PHASE_FORWARD);
            g_assert_cmpuint(freed.unit, ==, block - rows[i].back);
            g_assert_cmpuint(freed.phase, ==, PLAN_PHASE_FORWARD);
            g_assert_cmpuint(freed.before, ==, 0);
        }
        for (uint32_t block = 1; block <= 4; block++) {
            Freed freed = waited_for(plan, block, PLAN_PHASE_BACKWARD);
            g_assert_cmpuint(freed.unit, ==, block + rows[i].ahead);
            g_assert_cmpuint(freed.phase, ==, PLAN_PHASE_BACKWARD);
        }
        Freed root = waited_for(plan, 0, PLAN_PHASE_FORWARD);
        g_assert_cmpuint(root.before, ==, 1); /* left over from the step before */
    }
}

static void limiter_off(void) {
    g_autoptr(Plan) plan =
        test_plan(GPT_TOY, "ranks=4 flavour=fsdp1 limit_all_gathers=0 step_sync=no");
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        g_assert_cmpuint(role->sections[PLAN_SECTION_STEADY][i].kind, !=, PLAN_HOST_WAIT);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/limiter/steady state", limiter_steady_state);
    g_test_add_func("/plan/limiter/off", limiter_off);
    return g_test_run();
}
