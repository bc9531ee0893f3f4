/* The player: sections in order, one instruction at a time, resumed where a device said "not
 * yet". */
#include "plan/player.h"

#include "tests/plan/plans.h"

static void counts(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2");
    PlanNullCounts counts = {0};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 5, &plan_null_device, &counts);
    g_assert_cmpint(plan_player_run(player, NULL), ==, PLAN_DONE);
    g_assert_true(plan_player_at_end(player));
    uint64_t expected[PLAN_N_INSTRS] = {0};
    static const unsigned times[PLAN_N_SECTIONS] = {1, 1, 1, 3};
    for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
        for (uint32_t i = 0; i < plan->roles[0].n_instrs[s]; i++) {
            expected[plan->roles[0].sections[s][i].kind] += times[s];
        }
    }
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        g_assert_cmpuint(counts.calls[kind], ==, expected[kind]);
    }
    g_assert_cmpuint(counts.calls[PLAN_LAUNCH], >, 0);
}

/* In parts, to an instruction and from there on, and without some of them. */
static void to_an_instruction(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2");
    PlanNullCounts whole = {0}, parts = {0};
    g_autoptr(PlanPlayer) once = plan_player_new(plan, 0, 1, &plan_null_device, &whole);
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 1, &plan_null_device, &parts);
    const PlanPosition *at = plan_player_position(player);
    g_assert_cmpint(plan_player_run(once, NULL), ==, PLAN_DONE);
    g_assert_cmpint(plan_player_run_section(player, NULL), ==, PLAN_DONE);
    for (uint32_t to = 0; to <= plan->roles[0].n_instrs[PLAN_SECTION_FIRST]; to += 7) {
        g_assert_cmpint(plan_player_run_to(player, to, NULL), ==, PLAN_DONE);
        g_assert_cmpint(at->section, ==, PLAN_SECTION_FIRST);
        g_assert_cmpuint(at->index, ==, to);
    }
    g_assert_cmpint(plan_player_run(player, NULL), ==, PLAN_DONE);
    g_assert_cmpmem(&whole, sizeof whole, &parts, sizeof parts);

    PlanNullCounts none = {0};
    g_autoptr(PlanPlayer) idle = plan_player_new(plan, 0, 0, &plan_null_device, &none);
    plan_player_pass_over(idle, plan->roles[0].n_instrs[PLAN_SECTION_CONSTRUCT]);
    g_assert_cmpint(plan_player_run(idle, NULL), ==, PLAN_DONE);
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        g_assert_cmpuint(none.calls[kind], ==, 0);
    }
}

/* Memory after construction and after every step is the same floor; steps 2 and on peak alike. */
static void floor_and_peak(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=4");
    uint64_t floor = 0, peak = 0;
    for (unsigned steps = 2; steps < 6; steps++) {
        PlanNullCounts counts = {0};
        g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, steps, &plan_null_device, &counts);
        g_assert_cmpint(plan_player_run(player, NULL), ==, PLAN_DONE);
        g_assert_true(steps == 2 || (counts.floor_bytes == floor && counts.peak_bytes == peak));
        floor = counts.floor_bytes;
        peak = counts.peak_bytes;
    }
    uint64_t parameters = plan->roles[0].n_parameter_elements * 4; /* fp32, and two AdamW moments */
    g_assert_cmpuint(floor, >=, 3 * parameters);
    g_assert_cmpuint(floor, <, 3 * parameters + 4096);
}

typedef struct {
    unsigned refusals, asked, stop_at;
} Stubborn;

static PlanAnswer stubborn_launch(gpointer self, const PlanPosition *at, const PlanOp *op,
                                  uint32_t lane, GError **error) {
    Stubborn *s = self;
    if (s->stop_at && s->asked == s->stop_at) {
        return PLAN_STOPPED;
    }
    s->asked++;
    return s->asked % 3 ? (s->refusals++, PLAN_NOT_YET) : PLAN_DONE;
}

static const PlanDevice stubborn = {.name = "stubborn", .launch = stubborn_launch};

static void resumes(void) {
    g_autoptr(Plan) plan = test_plan(MLP_TOY, "ranks=2");
    PlanNullCounts counts = {0};
    g_autoptr(PlanPlayer) plain = plan_player_new(plan, 0, 2, &plan_null_device, &counts);
    plan_player_run(plain, NULL);
    Stubborn s = {0};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 2, &stubborn, &s);
    unsigned not_yet = 0;
    while (!plan_player_at_end(player)) {
        not_yet += plan_player_run(player, NULL) == PLAN_NOT_YET;
    }
    g_assert_cmpuint(not_yet, ==, s.refusals);
    g_assert_cmpuint(s.asked, ==, 3 * counts.calls[PLAN_LAUNCH]);
}

static void stops(void) {
    g_autoptr(Plan) plan = test_plan(MLP_TOY, "ranks=2");
    Stubborn s = {.stop_at = 30};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 2, &stubborn, &s);
    PlanAnswer answer;
    do {
        answer = plan_player_run(player, NULL);
    } while (answer == PLAN_NOT_YET);
    g_assert_cmpint(answer, ==, PLAN_STOPPED);
    g_assert_false(plan_player_at_end(player));
    g_assert_cmpint(plan_player_position(player)->instr->kind, ==, PLAN_LAUNCH);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/player/plays each section as often as it should", counts);
    g_test_add_func("/plan/player/goes to an instruction", to_an_instruction);
    g_test_add_func("/plan/player/memory returns to its floor", floor_and_peak);
    g_test_add_func("/plan/player/resumes after not yet", resumes);
    g_test_add_func("/plan/player/stops where a device stops", stops);
    return g_test_run();
}
