/* One rank trains for real: the loss falls, only what is trained moves, and neither a lack of
 * memory nor an edited plan does harm. */
#include <math.h>
#include <string.h>

#include "kernels/host/runtime.h"
#include "plan/text/text.h"
#include "tests/exec/one-rank.h"

/* Sharded or not is the same to the last bit, but for T5: units add the gradients of its bias and
 * memory in another order, and Adam magnifies the last bit of gradients near zero, so that only its
 * first steps are held together. */
static void loss_falls(void) {
    enum {
        STEPS = 30
    };
    static const struct {
        const char *text;
        unsigned n_alike; /* first steps whose losses are compared */
    } networks[] = {
        {"[network]\nfamily=gpt\nlayers=2\nwidth=64\nheads=2\nvocab=96\nseq=32\n", STEPS},
        {"[network]\nfamily=mlp\nlayers=3\nwidth=64\nseq=32\n", STEPS},
        {"[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nkv_heads=2\nffn=160\nvocab=96\n"
         "seq=32\n",
         STEPS},
        {"[network]\nfamily=t5\nlayers=2\nwidth=64\nheads=4\nhead_dim=32\nffn=128\nvocab=96\n"
         "seq=32\n",
         STEPS / 10}};
    static const char *const words[] = {"ranks=1 sharding=none micro_batch=4",
                                        "ranks=1 flavour=fsdp2 micro_batch=4"};
    for (unsigned n = 0; n < G_N_ELEMENTS(networks); n++) {
        double whole[STEPS];
        for (unsigned w = 0; w < 2; w++) {
            g_autoptr(Plan) plan = test_plan(networks[n].text, words[w]);
            OneRank play = one_rank_begin(plan, STEPS);
            g_assert_cmpint(plan_player_run(play.player, NULL), ==, PLAN_DONE);
            g_assert_true(exec_host.drain(play.host, NULL));
            const double *losses = play.host->losses;
            g_test_message("loss %g at first, %g after %d steps", losses[0], losses[STEPS - 1],
                           STEPS);
            g_assert_cmpfloat(losses[STEPS - 1], <, losses[0] * 0.8);
            for (unsigned s = 0; s < networks[n].n_alike; s++) {
                whole[s] = w == 0 ? losses[s] : whole[s];
                g_assert_cmpfloat(fabs(losses[s] - whole[s]), <=, 1e-6 * whole[s]);
            }
            one_rank_end(&play);
        }
    }
}

/* What a parameter holds: of one rank, all of it lies in the buffer of its name. */
static float *values_of(const OneRank *play, const char *name) {
    const PlanRole *role = &play->plan->roles[0];
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        if (g_str_equal(role->buffers[b].name, name)) {
            return (float *)exec_play_pointer(play->host, b);
        }
    }
    g_assert_not_reached();
}

/* A begins at random, B with zeros; after some steps both have moved, and nothing else. */
static void adapters_alone_move(gconstpointer words) {
    g_autoptr(Plan) plan = test_plan("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\n"
                                     "ffn=24\nvocab=11\nseq=7\n",
                                     words);
    OneRank play = one_rank_begin(plan, 4);
    one_rank_until(&play, PLAN_SECTION_FIRST, PLAN_OP_BATCH);
    g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        const PlanParameter *parameter = &plan->parameters[p];
        g_ptr_array_add(before, g_memdup2(values_of(&play, parameter->name),
                                          parameter->elements * sizeof(float)));
    }
    g_assert_cmpint(plan_player_run(play.player, NULL), ==, PLAN_DONE);
    g_assert_true(exec_host.drain(play.host, NULL));
    unsigned n_adapters = 0;
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        const PlanParameter *parameter = &plan->parameters[p];
        const float *was = before->pdata[p], *is = values_of(&play, parameter->name);
        bool is_b = g_str_has_suffix(parameter->name, ".lora_B.weight");
        bool moved = memcmp(was, is, parameter->elements * sizeof(float)) != 0;
        double largest = 0;
        for (uint64_t i = 0; i < parameter->elements; i++) {
            largest = MAX(largest, fabs((double)was[i]));
        }
        g_assert_cmpint(moved, ==, !parameter->frozen);
        g_assert_cmpint(parameter->frozen, ==, !strstr(parameter->name, ".lora_"));
        g_assert_true(is_b ? largest == 0 : largest > 0);
        n_adapters += is_b;
    }
    g_assert_cmpuint(n_adapters, ==, 14);
    one_rank_end(&play);
}

static void out_of_memory_is_a_result(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=1 sharding=none");
    g_autoptr(GError) error = NULL;
    ExecOptions options = {.seed = 1, .memory_limit_bytes = 1 << 20}; /* less than a segment */
    g_autoptr(ExecPlay) host = exec_host.open(plan, &exec_comm_alone, 2, &options, &error);
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 2, exec_host.instructions, host);
    g_assert_cmpint(plan_player_run(player, &error), ==, PLAN_STOPPED);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(host->out_of_memory, "no room for"));
}

/* Whatever somebody edits into a plan: it is refused, or it plays without touching memory it should
 * not (the sanitizers watch). */
static void edited_plans_are_safe(gconstpointer words) {
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=5\nseq=4\n", words);
    g_autoptr(GString) text = plan_text(plan);
    const char *program = strstr(text->str, "\nbuffers");
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    unsigned n_played = 0;
    for (unsigned i = 0; i < 600; i++) {
        g_autofree char *copy = g_strndup(text->str, text->len);
        gint32 at;
        do {
            at = g_rand_int_range(rand, (gint32)(program - text->str), (gint32)text->len);
        } while (!g_ascii_isdigit(copy[at]));
        copy[at] = (char)g_rand_int_range(rand, '0', '9' + 1);
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) edited = plan_read(copy, text->len, "x.plan", &error);
        if (!edited) {
            continue;
        }
        ExecOptions options = {.seed = 1, .memory_limit_bytes = 1 << 28};
        if (!exec_play_fits(&exec_host, edited, &exec_comm_alone, &options, &error)) {
            continue;
        }
        g_autoptr(ExecPlay) host = exec_host.open(edited, &exec_comm_alone, 3, &options, &error);
        if (!host) {
            continue;
        }
        g_autoptr(PlanPlayer) player = plan_player_new(edited, 0, 3, exec_host.instructions, host);
        n_played += plan_player_run(player, &error) == PLAN_DONE;
        g_autoptr(GError) later = NULL;
        exec_host.drain(host, &later);
    }
    g_test_message("%u of 600 edited plans were sound and played", n_played);
    g_assert_cmpuint(n_played, >, 10);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    kernel_set_threads(1); /* as foreshard-exec does */
    g_test_add_data_func("/exec/training/adapters alone move",
                         "ranks=1 sharding=none lora_rank=2 lora_on=all-linear",
                         adapters_alone_move);
    g_test_add_data_func("/exec/training/adapters alone move in FSDP2",
                         "ranks=1 flavour=fsdp2 lora_rank=2 lora_on=all-linear",
                         adapters_alone_move);
    g_test_add_func("/exec/training/the loss falls, sharded or not", loss_falls);
    g_test_add_func("/exec/memory/running out is a result", out_of_memory_is_a_result);
    g_test_add_data_func("/exec/plans/edited ones are safe", "ranks=1 flavour=fsdp2",
                         edited_plans_are_safe);
    g_test_add_data_func("/exec/plans/edited ones in bf16 are safe",
                         "ranks=1 flavour=fsdp2 param_dtype=bf16", edited_plans_are_safe);
    g_test_add_data_func("/exec/plans/edited ones of fused kernels are safe",
                         "ranks=1 flavour=fsdp2 param_dtype=bf16 kernels=fused",
                         edited_plans_are_safe);
    return g_test_run();
}
