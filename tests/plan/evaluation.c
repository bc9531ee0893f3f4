/* What an evaluation adds to a plan, and what it leaves as it is. That its events are PyTorch's is
 * what recordings say (tests/oracle). */
#include <string.h>

#include "plan/op/names.h"
#include "tests/plan/plans.h"

#define LLAMA_TOY "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nffn=24\nvocab=12\nseq=8\n"

static unsigned n_launches(const Plan *plan, PlanSection section, PlanPhase phase,
                           PlanOpKind kind) {
    const PlanRole *role = &plan->roles[0];
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        n += instr->kind == PLAN_LAUNCH && instr->phase == phase &&
             role->ops[instr->arg].kind == kind;
    }
    return n;
}

/* It stands between the first step and the second; no other step knows of it. */
static void stands_before_second(void) {
    static const char *const words[] = {"ranks=2", "ranks=2 flavour=fsdp1", "ranks=2 sharding=none",
                                        "ranks=1 sharding=none"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *evaluated = g_strconcat(words[i], " eval_batches=3", NULL);
        g_autoptr(Plan) with = test_plan(GPT_TOY, evaluated),
                        without = test_plan(GPT_TOY, words[i]);
        const PlanRole *a = &with->roles[0], *b = &without->roles[0];
        g_assert_cmpuint(a->n_instrs[PLAN_SECTION_FIRST], ==, b->n_instrs[PLAN_SECTION_FIRST]);
        g_assert_cmpuint(a->n_instrs[PLAN_SECTION_STEADY], ==, b->n_instrs[PLAN_SECTION_STEADY]);
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            unsigned passes = s == PLAN_SECTION_SECOND ? 3 : 0;
            g_assert_cmpuint(n_launches(with, s, PLAN_PHASE_EVALUATION, PLAN_OP_BATCH), ==, passes);
            g_assert_cmpuint(n_launches(with, s, PLAN_PHASE_EVALUATION, PLAN_OP_NLL_LOSS), ==,
                             passes);
        }
        g_assert_cmpuint(a->n_loss_ops, ==, 3); /* a step's loss is training's, in each program */
    }
    g_autoptr(Plan) shared = test_plan(LLAMA_TOY, "ranks=4 tensor=2 eval_batches=3");
    g_assert_cmpuint(shared->roles[0].n_loss_ops, ==, 3);
}

/* Units that forward leaves whole are gathered by the first evaluated pass, and not by the training
 * step behind it: the root, or with sharding=grad-op all three. */
static void units_stay_whole(void) {
    static const struct {
        const char *words;
        unsigned evaluation, training;
    } cases[] = {
        {"ranks=2 eval_batches=2", 3 + 2, 2},
        {"ranks=2 eval_batches=2 flavour=fsdp1", 3 + 2, 2},
        {"ranks=2 eval_batches=2 sharding=grad-op", 3, 0},
        {"ranks=2 eval_batches=2 sharding=grad-op flavour=fsdp1", 3, 0},
        {"ranks=2 eval_batches=2 reshard_after_forward=yes", 3 + 3, 3},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Plan) plan = test_plan(GPT_TOY, cases[i].words);
        g_assert_cmpuint(
            n_launches(plan, PLAN_SECTION_SECOND, PLAN_PHASE_EVALUATION, PLAN_OP_ALL_GATHER), ==,
            cases[i].evaluation);
        g_assert_cmpuint(
            n_launches(plan, PLAN_SECTION_SECOND, PLAN_PHASE_FORWARD, PLAN_OP_ALL_GATHER), ==,
            cases[i].training);
        g_assert_cmpuint(
            n_launches(plan, PLAN_SECTION_STEADY, PLAN_PHASE_FORWARD, PLAN_OP_ALL_GATHER), ==, 3);
    }
}

/* Nothing is dropped, recomputed or kept for backward. */
static void forward_alone(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY "dropout=0.1\n", "ranks=2 eval_batches=1 "
                                                              "checkpointing=full");
    g_assert_cmpuint(n_launches(plan, PLAN_SECTION_SECOND, PLAN_PHASE_EVALUATION, PLAN_OP_DROPOUT),
                     ==, 0);
    g_assert_cmpuint(n_launches(plan, PLAN_SECTION_SECOND, PLAN_PHASE_FORWARD, PLAN_OP_DROPOUT), >,
                     0);
    g_assert_cmpuint(
        n_launches(plan, PLAN_SECTION_SECOND, PLAN_PHASE_EVALUATION, PLAN_OP_GELU_TANH), ==, 2);
}

static const PlanOp *last_op(const PlanRole *role, PlanPhase phase, PlanOpKind kind) {
    const PlanOp *op = NULL;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
        if (instr->kind == PLAN_LAUNCH && instr->phase == phase &&
            role->ops[instr->arg].kind == kind) {
            op = &role->ops[instr->arg];
        }
    }
    g_assert_nonnull(op);
    return op;
}

/* A compiler's program of a forward alone writes over what nobody reads later, but not over what it
 * was given; training's keeps it. */
static void compiled(void) {
    g_autoptr(Plan) plan = test_plan(LLAMA_TOY, "ranks=2 eval_batches=1 kernels=compiled");
    const PlanRole *role = &plan->roles[0];
    static const struct {
        PlanOpKind kind;
        unsigned made, over;
    } cases[] = {
        {PLAN_OP_SWIGLU, SWIGLU_Y, SWIGLU_GATE},
        {PLAN_OP_ADD_RMSNORM, ADD_RMSNORM_SUM, ADD_RMSNORM_R},
        {PLAN_OP_ADD, ADD_Y, ADD_A},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const PlanOp *alone = last_op(role, PLAN_PHASE_EVALUATION, cases[i].kind),
                     *trained = last_op(role, PLAN_PHASE_FORWARD, cases[i].kind);
        g_assert_cmpuint(plan_op_buffer(role, alone, cases[i].made), ==,
                         plan_op_buffer(role, alone, cases[i].over));
        g_assert_cmpuint(plan_op_buffer(role, trained, cases[i].made), !=,
                         plan_op_buffer(role, trained, cases[i].over));
    }
    const PlanOp *norm = last_op(role, PLAN_PHASE_EVALUATION, PLAN_OP_ADD_RMSNORM);
    g_assert_cmpuint(plan_op_buffer(role, norm, ADD_RMSNORM_SUM), !=,
                     plan_op_buffer(role, norm, ADD_RMSNORM_A));
}

static void refused(void) {
    static const char *const cases[][3] = {
        {GPT_TOY "logits_held=next-forward\n", "ranks=2 eval_batches=1",
         "not planned for logits_held = next-forward"},
        {GPT_TOY,
         "ranks=2 eval_batches=1 flavour=fsdp1 sharding=none param_dtype=bf16 "
         "zero_grad=keep",
         "where two kinds of steps take turns"},
        {LLAMA_TOY "loss=kernel\n", "ranks=2 tensor=2 eval_batches=1",
         "a loss compiled by itself of logits that ranks share; set another loss"},
        {GPT_TOY, "ranks=2 eval_batches=1 eval_holds_logits=yes",
         "a loop that holds logits of a network that gives the loss; set loss_at = loop"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(cases[i][0], cases[i][1]);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i][2]));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/evaluation/stands-before-second", stands_before_second);
    g_test_add_func("/plan/evaluation/units-stay-whole", units_stay_whole);
    g_test_add_func("/plan/evaluation/forward-alone", forward_alone);
    g_test_add_func("/plan/evaluation/compiled", compiled);
    g_test_add_func("/plan/evaluation/refused", refused);
    return g_test_run();
}
