/* What goes to the host and comes back. */
#include "plan/player.h"
#include "tests/plan/plans.h"

/* All but the last block's argument goes to the host and comes back, and is held nowhere between:
 * the peak loses most of it. */
static void offloaded_activations(void) {
    const char *network =
        "[network]\nfamily=gpt\nlayers=12\nwidth=32\nheads=2\nvocab=64\nseq=512\n";
    uint64_t peaks[2];
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *words =
            g_strdup_printf("ranks=4 checkpointing=full offload=%s", i ? "activations" : "none");
        g_autoptr(Plan) plan = test_plan(network, words);
        TestCounts counts = test_count_steady(plan);
        uint64_t argument = 512 * 32 * 4;
        g_assert_cmpuint(counts.n[PLAN_OP_TO_HOST], ==, i ? 11 : 0);
        g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, i ? 11 * argument : 0);
        g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, i ? 11 * argument : 0);
        PlanNullCounts bytes = {0};
        g_autoptr(PlanPlayer) play = plan_player_new(plan, 0, 3, &plan_null_device, &bytes);
        g_assert_cmpint(plan_player_run(play, NULL), ==, PLAN_DONE);
        peaks[i] = bytes.peak_bytes;
        if (i) {
            g_test_message("peak %" G_GUINT64_FORMAT " bytes, offloaded %" G_GUINT64_FORMAT,
                           peaks[0], peaks[1]);
            g_assert_cmpuint(peaks[1] + 7 * argument, <=, peaks[0]); /* two are on their way */
        }
    }
}

/* Nothing of the optimizer is left on the GPU; a gradient goes to the host and a parameter comes
 * back for each one there is, and the host waits for each before it steps. */
static void offloaded_optimizer(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2 offload=optimizer");
    const PlanRole *role = &plan->roles[0];
    uint64_t owned = role->n_parameter_elements;
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        g_assert_cmpuint(role->buffers[b].sub, !=, PLAN_OPTIMIZER_STATE);
    }
    TestCounts counts = test_count_steady(plan);
    g_assert_cmpuint(counts.n[PLAN_OP_TO_HOST], ==, plan->n_parameters);
    g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, 4 * owned);
    g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, 4 * owned);
    unsigned n_steps = 0, n_waits = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        n_waits += instr->kind == PLAN_HOST_WAIT;
        n_steps += instr->kind == PLAN_HOST_OP;
        g_assert_cmpuint(n_steps, <=, n_waits);
    }
    g_assert_cmpuint(n_steps, ==, plan->n_parameters);
}

/* Between steps nothing of the model is on the GPU. A shard comes for each gather, also in
 * backward; each gradient goes to the host once, and the host waits for it before it steps. */
static void offloaded_parameters(void) {
    static const char *const flavours[] = {"fsdp1", "fsdp2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours); i++) {
        g_autofree char *words = g_strdup_printf("ranks=2 offload=params flavour=%s", flavours[i]);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
        const PlanRole *role = &plan->roles[0];
        uint64_t root = plan->units[0].elements, all = 0;
        for (uint32_t b = 0; b < role->n_buffers; b++) {
            g_assert_true(!role->buffers[b].carried ||
                          role->buffers[b].sub == PLAN_ACTIVATIONS_INPUT);
        }
        for (uint32_t u = 0; u < plan->n_units; u++) {
            all += plan->units[u].elements;
        }
        TestCounts counts = test_count_steady(plan);
        /* FSDP1 also asks for the root, which is whole. */
        uint64_t again = i == 0 ? all : all - root;
        g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, 4 * (all + again) / 2);
        g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, 4 * all / 2);
        bool waited = false, stepped = false;
        for (uint32_t n = 0; n < role->n_instrs[PLAN_SECTION_STEADY]; n++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][n];
            waited |= instr->kind == PLAN_HOST_WAIT && instr->phase == PLAN_PHASE_BACKWARD;
            stepped |= instr->kind == PLAN_HOST_OP;
            g_assert_true(waited || !stepped);
        }
        g_assert_true(stepped);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/offload/activations", offloaded_activations);
    g_test_add_func("/plan/offload/optimizer", offloaded_optimizer);
    g_test_add_func("/plan/offload/parameters", offloaded_parameters);
    return g_test_run();
}
