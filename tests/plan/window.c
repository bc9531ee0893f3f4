/* Attention within a window: who is told how, what is computed, and where nothing differs. */
#include <string.h>

#include "plan/op/names.h"
#include "plan/op/work.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

#define LLAMA                                                                                      \
    "[network]\nfamily=llama\nlayers=4\nwidth=16\nheads=2\nkv_heads=1\nffn=24\nvocab=11\nseq=32\n"

static unsigned launches(const PlanRole *role, PlanOpKind kind, int64_t causal) {
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        const PlanOp *op = &role->ops[instr->arg];
        bool is_one = instr->kind == PLAN_LAUNCH && op->kind == (uint32_t)kind;
        n += is_one && (causal < 0 || plan_op_dims(role, op)[ATTENTION_CAUSAL] == causal);
    }
    return n;
}

/* Which blocks have it, told by one mask of a pass or by the kernel. */
static void which_blocks(void) {
    static const struct {
        const char *keys, *words;
        unsigned masks, biases, within, all;
    } cases[] = {
        {"window=8\n", "ranks=1", 1, 4, 4, 0},
        {"window=8\n", "ranks=1 accumulate=3", 3, 12, 12, 0},
        {"window=8\n", "ranks=1 checkpointing=full", 1, 8, 8, 0},
        {"window=8\nglobal_every=2\n", "ranks=1 param_dtype=bf16", 1, 2, 2, 2},
        {"window=8\nglobal_every=4\nlocal_rope_base=100\n", "ranks=1", 1, 3, 3, 1},
        {"window=32\n", "ranks=1", 1, 4, 0, 0}, /* as long as the sequence: a mask all the same */
        {"window=33\n", "ranks=1", 0, 0, 0, 4},
        {"window=0\n", "ranks=1", 0, 0, 0, 4},
        {"window=8\nwindow_by=kernel\n", "ranks=1", 0, 0, 4, 0},
        {"window=32\nwindow_by=kernel\n", "ranks=1", 0, 0, 0, 4},
        {"window=8\n", "ranks=1 kernels=fused", 0, 0, 4, 0},
        {"window=8\nwindow_by=kernel\n", "ranks=1 kernels=compiled", 0, 0, 4, 0},
        {"window=8\ncode=transformers\n", "ranks=1 param_dtype=bf16", 1, 4, 4, 0},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *network = g_strconcat(LLAMA, cases[i].keys, NULL);
        g_autoptr(Plan) plan = test_plan(network, cases[i].words);
        const PlanRole *role = &plan->roles[0];
        g_test_message("%s %s", cases[i].keys, cases[i].words);
        g_assert_cmpuint(launches(role, PLAN_OP_LATER_MASK, -1), ==, cases[i].masks);
        g_assert_cmpuint(launches(role, PLAN_OP_MASK_TO_BIAS, -1), ==, cases[i].biases);
        g_assert_cmpuint(launches(role, PLAN_OP_ATTENTION, 8), ==, cases[i].within);
        g_assert_cmpuint(launches(role, PLAN_OP_ATTENTION, 1), ==, cases[i].all);
    }
}

static void add_flops(const char *network, double *ret_made, double *ret_asked,
                      double *ret_of_all) {
    g_autoptr(Plan) plan = test_plan(network, "ranks=1 sharding=none micro_batch=3");
    const PlanRole *role = &plan->roles[0];
    *ret_made = *ret_asked = *ret_of_all = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_ATTENTION) {
            *ret_made += plan_op_flops(role, op);
            *ret_asked += plan_op_model_flops(role, op);
            *ret_of_all += plan_op_model_flops_of_all_pairs(role, op);
        }
    }
}

/* Of 32 queries 25 see 8 keys and 7 see 1 to 7; the kernel that has a mask makes all 32 * 32 pairs,
 * and the model asks for no more than is seen. Published MFU counts all 32 * 32 in any case. */
static void arithmetic(void) {
    const double pairs = 25 * 8 + 7 * 8 / 2, one = 4 * 3 * 2 * 8;
    double made, asked, of_all, made_all, asked_all;
    add_flops(LLAMA, &made_all, &asked_all, &of_all);
    double n = made_all / (one * 32 * 33 / 2); /* ops: of both sections */
    g_assert_cmpfloat(asked_all, ==, made_all);
    g_assert_cmpfloat_with_epsilon(of_all, n * one * 32 * 32, 1e-6);
    add_flops(LLAMA "window=8\nwindow_by=kernel\n", &made, &asked, &of_all);
    g_assert_cmpfloat(made, ==, n * one * pairs);
    g_assert_cmpfloat_with_epsilon(of_all, n * one * 32 * 32, 1e-6);
    g_assert_cmpfloat(asked, ==, made);
    add_flops(LLAMA "window=8\n", &made, &asked, &of_all);
    g_assert_cmpfloat_with_epsilon(made, n * one * 32 * 32, 1e-6);
    g_assert_cmpfloat_with_epsilon(asked, n * one * pairs, 1e-6);
    g_assert_cmpfloat_with_epsilon(of_all, n * one * 32 * 32, 1e-6);
}

/* A window that no sequence reaches leaves the plan as it is. */
static void out_of_reach(void) {
    static const char *const keys[] = {"window=33\n", "window=32\nwindow_by=kernel\n"};
    g_autoptr(Plan) without = test_plan(LLAMA, "ranks=2 param_dtype=bf16");
    g_autoptr(GString) expected = plan_text(without);
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *network = g_strconcat(LLAMA, keys[i], NULL);
        g_autoptr(Plan) plan = test_plan(network, "ranks=2 param_dtype=bf16");
        g_autoptr(GString) text = plan_text(plan);
        /* behind the network's own words */
        g_assert_true(g_str_equal(strstr(text->str, "\nmesh "), strstr(expected->str, "\nmesh ")));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/window/which blocks have it", which_blocks);
    g_test_add_func("/plan/window/arithmetic", arithmetic);
    g_test_add_func("/plan/window/out of reach", out_of_reach);
    return g_test_run();
}
