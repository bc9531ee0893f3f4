/* The numbers of a training run against PyTorch's: losses of 20 steps of AdamW and every gradient
 * of the first step, from the same weights on the same tokens.
 *
 * PyTorch 2.13 wrote golden/ (compare.py --keep), on one process, and with FSDP2 over gloo on two.
 * Gradients are read from outside: a step of SGD moves the weights by them.
 * Arguments: foreshard, and the folder golden.
 */
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <math.h>

#include "exec/files/weights.h"
#include "tests/exec/runs.h"
#include "tests/plan/plans.h"

enum {
    STEPS = 20,
    BATCH = 12,
    LR = 512
};

/* PyTorch with FSDP2 is 2e-7 from PyTorch on one process, both in losses and in gradients. */
#define LOSS_BOUND     2e-6
#define GRADIENT_BOUND 5e-6
/* On either side each loss is rounded to bf16, by up to 2^-8, and so is what it was made of. */
#define BF16_BOUND 0x1p-6

/* Muon's products are rounded to bf16, and several ranks add them up otherwise than one does.
 * PyTorch with FSDP2 over gloo is 9e-5 from PyTorch on one process, in both networks; a matrix of
 * which one number alone is divided by its norm is 1e-2 off. */
#define MUON_BOUND 0x1p-10

static const char *golden;

static const struct {
    unsigned ranks;
    const char *words;
    const char *itself; /* PyTorch's losses of this strategy, beside those of one process */
} strategies[] = {
    {1, "--sharding none"},
    {2, "--flavour fsdp2", .itself = "fsdp2"},
    {2, "--sharding none --bucket-mb 0.01"},
    {3, "--flavour fsdp2 --checkpointing full"},
    {3, "--flavour fsdp1"},
    {3, "--flavour fsdp1 --sharding grad-op --use-orig-params yes"},
    {4, "--sharding hybrid --replicate 2"},
    {2, "--accumulate 3"},
};

static const struct {
    unsigned ranks;
    const char *words;
} of_muon[] = {
    {1, "--sharding none"},
    {2, "--sharding none"},
    {2, "--flavour fsdp2"},
    {4, "--flavour fsdp2 --sharding grad-op --checkpointing full"},
};

typedef struct {
    const char *name;
    Plan *plan; /* for the names and shapes of parameters */
    ExecWeights *weights, *gradients;
    JsonParser *losses;
} Golden;

static char *file_of(const Golden *g, const char *name) {
    return g_build_filename(golden, g->name, name, NULL);
}

static ExecWeights *open_weights(const char *path, const Plan *plan) {
    g_autoptr(GError) error = NULL;
    ExecWeights *weights = exec_weights_open(path, plan, &error);
    g_assert_no_error(error);
    return weights;
}

static Golden begin(const char *name) {
    Golden g = {.name = name, .losses = json_parser_new()};
    g_autofree char *network = file_of(&g, "network.ini"), *text = NULL;
    g_autofree char *weights = file_of(&g, "weights.safetensors");
    g_autofree char *gradients = file_of(&g, "gradients.safetensors");
    g_autofree char *losses = file_of(&g, "losses.json");
    g_assert_true(g_file_get_contents(network, &text, NULL, NULL));
    g.plan = test_plan(text, "ranks=1");
    g.weights = open_weights(weights, g.plan);
    g.gradients = open_weights(gradients, g.plan);
    g_assert_true(json_parser_load_from_file(g.losses, losses, NULL));
    return g;
}

static void end(Golden *g) {
    plan_free(g->plan);
    exec_weights_free(g->weights);
    exec_weights_free(g->gradients);
    g_object_unref(g->losses);
}

static char *run_words(const Golden *g, unsigned ranks, const char *words) {
    unsigned passes = strstr(words, "--accumulate 3") ? 3 : 1;
    return g_strdup_printf("%s/%s/network.ini -n %u --micro-batch %u %s --data %s/tokens.bin "
                           "--load %s/%s/weights.safetensors",
                           golden, g->name, ranks, BATCH / ranks / passes, words, golden, golden,
                           g->name);
}

static void train(const Golden *g, unsigned ranks, const char *words, double *losses) {
    g_autofree char *line = run_words(g, ranks, words);
    test_run_losses(line, losses, STEPS);
}

static void losses_follow(const Golden *g, const char *which, const double *losses,
                          const char *words, double bound) {
    double worst = 0;
    JsonObject *all = json_node_get_object(json_parser_get_root(g->losses));
    JsonArray *want = json_object_get_array_member(all, which);
    g_assert_cmpuint(json_array_get_length(want), ==, STEPS);
    for (unsigned i = 0; i < STEPS; i++) {
        worst = fmax(worst, fabs(losses[i] / json_array_get_double_element(want, i) - 1));
    }
    g_test_message("%s, %s: losses differ from PyTorch's (%s) by at most %.1e", g->name, words,
                   which, worst);
    g_assert_cmpfloat(worst, <=, bound);
}

static void check_losses(const Golden *g, const char *which, unsigned ranks, const char *words,
                         double bound) {
    double losses[STEPS];
    train(g, ranks, words, losses);
    losses_follow(g, which, losses, words, bound);
}

/* Of one parameter, as the norm of the difference over PyTorch's norm. */
static double gradient_error(const Golden *g, const ExecWeights *after, uint32_t p) {
    uint64_t n = g->plan->parameters[p].elements;
    g_autofree float *x = g_new(float, n), *y = g_new(float, n), *want = g_new(float, n);
    double difference = 0, norm = 0;
    exec_weights_get(g->weights, p, 0, n, x);
    exec_weights_get(after, p, 0, n, y);
    exec_weights_get(g->gradients, p, 0, n, want);
    for (uint64_t e = 0; e < n; e++) {
        double got = ((double)x[e] - (double)y[e]) / LR;
        difference += (got - (double)want[e]) * (got - (double)want[e]);
        norm += (double)want[e] * (double)want[e];
    }
    g_assert_cmpfloat(norm, >, 0);
    return sqrt(difference / norm);
}

/* Ranks of MPI train above; here the program forks them. */
static void check_gradients(const Golden *g, const char *folder, unsigned ranks,
                            const char *words) {
    g_autofree char *line = run_words(g, ranks, words);
    g_autofree char *path = g_build_filename(folder, "after", NULL);
    double worst = 0;
    test_run_forks = true;
    test_run_ok("run %s --steps 1 --optimizer sgd --lr %d --save %s", line, LR, path);
    test_run_forks = false;
    g_autoptr(ExecWeights) after = open_weights(path, g->plan);
    for (uint32_t p = 0; p < g->plan->n_parameters; p++) {
        worst = fmax(worst, gradient_error(g, after, p));
    }
    g_unlink(path);
    g_test_message("%s, %u ranks %s: gradients of %u tensors differ by at most %.1e", g->name,
                   ranks, words, g->plan->n_parameters, worst);
    g_assert_cmpfloat(worst, <=, GRADIENT_BOUND);
}

static void agrees(gconstpointer name) {
    Golden g = begin(name);
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        unsigned ranks = strategies[i].ranks;
        const char *words = strategies[i].words, *itself = strategies[i].itself;
        double losses[STEPS];
        train(&g, ranks, words, losses);
        losses_follow(&g, "one", losses, words, LOSS_BOUND);
        if (itself) {
            losses_follow(&g, itself, losses, words, LOSS_BOUND);
        }
        check_gradients(&g, folder, ranks, words);
    }
    check_losses(&g, "bf16", 2, "--param-dtype bf16 --reduce-dtype fp32", BF16_BOUND);
    JsonObject *all = json_node_get_object(json_parser_get_root(g.losses));
    for (unsigned i = 0; i < G_N_ELEMENTS(of_muon) && json_object_has_member(all, "muon"); i++) {
        g_autofree char *words =
            g_strconcat(of_muon[i].words, " --optimizer muon --muon-lr 0.02", NULL);
        check_losses(&g, "muon", of_muon[i].ranks, words, MUON_BOUND);
    }
    g_rmdir(folder);
    end(&g);
}

/* ---- states in 8 bits ----------------------------------------------------------------------- */

/* torchao's AdamW8bit, on one process and with FSDP2 over gloo on two, whose shards have other
 * states in 8 bits than the whole tensors. PyTorch's own AdamW is 1e-4 from both, and
 * they are 2e-5 from each other. */
static void in_8_bits_agrees(void) {
    static const struct {
        const char *which;
        unsigned ranks;
        const char *words;
    } runs[] = {
        {"eight_bit", 1, "--sharding none"},
        {"eight_bit", 2, "--sharding none --bucket-mb 0.01"},
        {"eight_bit_fsdp2", 2, "--flavour fsdp2"},
        {"eight_bit_fsdp2", 2, "--sharding grad-op --checkpointing full"},
    };
    Golden g = {.name = "eight-bit", .losses = json_parser_new()};
    g_autofree char *losses = file_of(&g, "losses.json");
    g_assert_true(json_parser_load_from_file(g.losses, losses, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *words = g_strconcat(runs[i].words, " --optimizer adamw-torch-8bit", NULL);
        check_losses(&g, runs[i].which, runs[i].ranks, words, LOSS_BOUND);
    }
    g_object_unref(g.losses);
}

/* ---- layers in float8 ------------------------------------------------------------------------ */

/* PyTorch's and foreshard's gradients of a parameter in float8, each less PyTorch's in bf16, over
 * that one's norm. Sums of products over all parameters. */
typedef struct {
    double both, of_theirs, of_ours;
} Added;

static void add_parameter(const Golden *g, const ExecWeights *theirs, const ExecWeights *after,
                          uint32_t p, Added *ret_added) {
    uint64_t n = g->plan->parameters[p].elements;
    g_autofree float *x = g_new(float, n), *y = g_new(float, n), *t = g_new(float, n),
                     *plain = g_new(float, n);
    exec_weights_get(g->weights, p, 0, n, x);
    exec_weights_get(after, p, 0, n, y);
    exec_weights_get(theirs, p, 0, n, t);
    exec_weights_get(g->gradients, p, 0, n, plain);
    double norm = 0, both = 0, of_theirs = 0, of_ours = 0;
    for (uint64_t e = 0; e < n; e++) {
        double ours = ((double)x[e] - (double)y[e]) / LR - (double)plain[e];
        double other = (double)t[e] - (double)plain[e];
        norm += (double)plain[e] * (double)plain[e];
        both += ours * other;
        of_theirs += other * other;
        of_ours += ours * ours;
    }
    ret_added->both += both / norm;
    ret_added->of_theirs += of_theirs / norm;
    ret_added->of_ours += of_ours / norm;
}

/* What float8 adds to gradients is what it adds in PyTorch: as large (within a tenth), and of the
 * same direction as far as bf16 leaves it. Factors that differ by a last place of bf16 are rounded
 * to different numbers of float8 now and then, more often the coarser those are. */
static void rounds_alike(const Golden *g, const char *recipe, const char *words, double least) {
    g_autofree char *name = g_strconcat(recipe, ".safetensors", NULL), *path = file_of(g, name);
    g_autoptr(ExecWeights) theirs = open_weights(path, g->plan);
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *after_path = g_build_filename(folder, "after", NULL);
    g_autofree char *line = run_words(g, 2, words);
    check_losses(g, recipe, 2, words, BF16_BOUND);
    test_run_ok("run %s --steps 1 --optimizer sgd --lr %d --save %s", line, LR, after_path);
    g_autoptr(ExecWeights) after = open_weights(after_path, g->plan);
    Added added = {0};
    for (uint32_t p = 0; p < g->plan->n_parameters; p++) {
        add_parameter(g, theirs, after, p, &added);
    }
    double alike = added.both / sqrt(added.of_theirs * added.of_ours);
    double larger = sqrt(added.of_ours / added.of_theirs);
    g_test_message("%s: %.2f alike, %.2f times as large", words, alike, larger);
    g_assert_cmpfloat(alike, >=, least);
    g_assert_cmpfloat(fabs(larger - 1), <=, 0.1);
    g_unlink(after_path);
    g_rmdir(folder);
}

#define IN_BF16 "--param-dtype bf16 --reduce-dtype fp32 "

static void float8_agrees(void) {
#define FLOAT8 "--kernels compiled " IN_BF16 "--float8 "
    Golden g = begin("float8");
    check_losses(&g, "bf16", 2, "--kernels compiled " IN_BF16, BF16_BOUND);
    rounds_alike(&g, "tensorwise", FLOAT8 "tensorwise", 0.65);
    rounds_alike(&g, "tensorwise", FLOAT8 "tensorwise --checkpointing full", 0.65);
    rounds_alike(&g, "tensorwise", FLOAT8 "tensorwise --float8-gather precomputed", 0.65);
    rounds_alike(&g, "rowwise", FLOAT8 "rowwise", 0.85);
    rounds_alike(&g, "rowwise", FLOAT8 "rowwise --checkpointing full --sharding grad-op", 0.85);
    end(&g);
#undef FLOAT8
}

/* Of three passes two are cast by scales of those before. delayed.py emulates Transformer Engine,
 * and wrote golden/delayed. */
static void delayed_agrees(void) {
#define DELAYED "--flavour fsdp1 --accumulate 3 --accumulate-sync every " IN_BF16
    Golden g = begin("delayed");
    check_losses(&g, "bf16", 2, DELAYED, BF16_BOUND);
    rounds_alike(&g, "delayed", DELAYED "--float8 delayed", 0.98);
    rounds_alike(&g, "delayed", DELAYED "--float8 delayed --checkpointing full", 0.98);
    rounds_alike(&g, "delayed", DELAYED "--float8 delayed --sharding grad-op", 0.98);
    end(&g);
#undef DELAYED
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    test_run_program = argv[1];
    golden = argv[2];
    g_test_add_data_func("/oracle/numbers/gpt", "gpt", agrees);
    g_test_add_data_func("/oracle/numbers/gpt tied, erf, scores in memory", "gpt-tied", agrees);
    g_test_add_data_func("/oracle/numbers/llama", "llama", agrees);
    g_test_add_data_func("/oracle/numbers/llama with biases, one head of k and v", "qwen", agrees);
    g_test_add_data_func("/oracle/numbers/llama with each head of q and k normalized", "qwen3",
                         agrees);
    g_test_add_data_func("/oracle/numbers/llama with q and k normalized, norms behind", "olmo2",
                         agrees);
    g_test_add_data_func("/oracle/numbers/llama with one layer for q, k and v", "joined", agrees);
    g_test_add_data_func("/oracle/numbers/llama with experts", "experts", agrees);
    g_test_add_data_func("/oracle/numbers/llama with latent attention, groups of experts",
                         "deepseek", agrees);
    g_test_add_data_func("/oracle/numbers/llama of transformers' modules", "transformers", agrees);
    g_test_add_data_func("/oracle/numbers/mixtral of transformers' modules", "mixtral", agrees);
    g_test_add_data_func("/oracle/numbers/qwen 3 moe of transformers' modules", "qwen3-moe",
                         agrees);
    g_test_add_data_func("/oracle/numbers/llama with its loss in chunks", "chunked", agrees);
    g_test_add_data_func("/oracle/numbers/llama with joined gate and up, multipliers", "phi3",
                         agrees);
    g_test_add_data_func("/oracle/numbers/llama with norms from one on, at both ends", "gemma3",
                         agrees);
    g_test_add_data_func("/oracle/numbers/llama within a window, of transformers' modules",
                         "window", agrees);
    g_test_add_data_func("/oracle/numbers/mpt", "mpt", agrees);
    g_test_add_data_func("/oracle/numbers/t5 tied, gated", "t5", agrees);
    g_test_add_data_func("/oracle/numbers/t5 in attention's kernel", "t5-kernel", agrees);
    g_test_add_data_func("/oracle/numbers/t5 of short targets", "t5-targets", agrees);
    g_test_add_func("/oracle/numbers/llama with layers in float8", float8_agrees);
    g_test_add_func("/oracle/numbers/gpt with layers in float8, scales of passes before",
                    delayed_agrees);
    g_test_add_func("/oracle/numbers/llama with states in 8 bits", in_8_bits_agrees);
    return g_test_run();
}
