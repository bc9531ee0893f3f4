/* tests/fuzz/fuzz PARSER [SECONDS [SEED]] - damaged files into one parser, for a while.
 *
 * Whatever is read ends in a sound thing or in an error that names the file: a crash, a hang, a
 * sanitizer's complaint or an error without a word is a failure. What is read as a plan must be
 * written and read back the same. Prints how many files were tried and how many were refused;
 * another seed tries others. FORESHARD_FUZZ_SECONDS in the environment stands for SECONDS,
 * FORESHARD_DATA_SOURCE is the folder of networks/ and clusters/,
 * FORESHARD_PYTORCH_FILES that of tests/trace/pytorch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cluster.h"
#include "models/config/json.h"
#include "models/network.h"
#include "plan/build/build.h"
#include "plan/check/check.h"
#include "plan/strategy/strategy.h"
#include "plan/text/text.h"
#include "tests/fuzz/mutate.h"
#include "tests/plan/plans.h"
#include "tests/trace/toy-trace.h"
#include "trace/export/export.h"
#include "trace/import/file.h"
#include "trace/import/profile.h"
#include "trace/import/to-trace.h"
#include "trace/text.h"

static const char FILE_NAME[] = "damaged";

/* ---- texts to damage ------------------------------------------------------------------------ */

static void add(GPtrArray *texts, const char *text) {
    g_ptr_array_add(texts, g_string_new(text));
}

static char *text_of(const char *path) {
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, NULL);
    return text;
}

/* Damage is read without the files beside. */
static char *whole_text_of(const char *path) {
    return model_cluster_whole_text(path, NULL, NULL);
}

static void add_files(GPtrArray *texts, const char *folder, char *(*read)(const char *path)) {
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_DATA_SOURCE"), folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_assert_nonnull(dir);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_autofree char *text = g_str_has_suffix(name, ".ini") ? read(file) : NULL;
        if (text) {
            add(texts, text);
        }
    }
}

static void add_networks(GPtrArray *texts) {
    add_files(texts, "networks", text_of);
    for (unsigned i = 0; i < 8; i++) { /* as often as the others: its form is its own */
        add(texts, TRACED_TINY);
    }
    g_auto(GStrv) kernels = g_strsplit(TRACED_TINY, "> o0\n", -1);
    g_autofree char *calls = g_strjoinv(
        "> o0\ncall mm i0/fp32/1n,8 [i0/fp32/8,8/1,8/2n+3;true] > o0/fp32/1n\n", kernels);
    for (unsigned i = 0; i < 4; i++) {
        add(texts, calls);
    }
}

static void add_clusters(GPtrArray *texts) {
    add_files(texts, "clusters", whole_text_of);
}

static void add_configs(GPtrArray *texts) {
    add(texts, "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, \"n_head\": 2, "
               "\"vocab_size\": 12, \"n_positions\": 8, \"n_inner\": null, "
               "\"activation_function\": \"gelu_new\"}");
    add(texts, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 16, "
               "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 12, "
               "\"max_position_embeddings\": 8, \"intermediate_size\": 24, \"rope_theta\": 1e4, "
               "\"tie_word_embeddings\": false, \"hidden_act\": \"silu\"}");
    add(texts,
        "{\"model_type\": \"t5\", \"num_layers\": 2, \"d_model\": 16, \"num_heads\": 2, "
        "\"d_kv\": 8, \"d_ff\": 24, \"vocab_size\": 12, \"feed_forward_proj\": \"gated-gelu\", "
        "\"tie_word_embeddings\": true, \"n_positions\": 8}");
    add(texts, "{\"model_type\": \"mpt\", \"n_layers\": 2, \"d_model\": 16, \"n_heads\": 2, "
               "\"vocab_size\": 12, \"max_seq_len\": 8, \"attn_config\": {\"alibi\": false}}");
}

static const char *const strategies[] = {
    "ranks=1 sharding=none", "ranks=3", "ranks=4 sharding=none bucket_mb=0.001",
    "ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 accumulate=2",
    "ranks=4 checkpointing=ratio=0.5 wrap=every=2 reshard_after_forward=2"};

static void add_plans(GPtrArray *texts) {
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Plan) plan = test_plan(i % 2 ? MLP_TOY : GPT_TOY, strategies[i]);
        g_ptr_array_add(texts, plan_text(plan));
    }
}

static void add_strategies(GPtrArray *texts) {
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Plan) plan = test_plan(MLP_TOY, strategies[i]);
        add(texts, plan->strategy);
    }
}

static void add_traces(GPtrArray *texts) {
    for (unsigned ranks = 1; ranks <= 2; ranks++) {
        ToyOptions options = TOY_DEFAULT;
        options.n_ranks = ranks;
        g_autoptr(Trace) trace = toy_trace(&options);
        g_ptr_array_add(texts, trace_text(trace, NULL));
    }
}

/* Of our own export, and what PyTorch wrote. */
static void add_snapshots(GPtrArray *texts) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_ptr_array_add(texts, trace_export_memory_viz(trace));
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_PYTORCH_FILES"), "window.pickle.gz", NULL);
    gsize length;
    g_autofree char *bytes = import_read(path, &length, NULL);
    g_assert_nonnull(bytes);
    g_ptr_array_add(texts, g_string_new_len(bytes, (gssize)length));
}

static void add_profiles(GPtrArray *texts) {
    add(texts,
        "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0, \"world_size\": 2},\n"
        "\"traceEvents\": [\n"
        "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#3\", \"ts\": 1.5, "
        "\"dur\": 900},\n"
        "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"ts\": 902, "
        "\"dur\": 800},\n"
        "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"ts\": 9, "
        "\"dur\": 5, \"args\": {\"correlation\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ampere_sgemm\", \"ts\": 20, \"dur\": 70, "
        "\"args\": {\"device\": 0, \"stream\": 7, \"correlation\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllGather\", \"ts\": 950, "
        "\"dur\": 70, \"args\": {\"Process Group Description\": , \"device\": 0}},\n"
        "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD\", \"ts\": 960, \"dur\": "
        "7},\n"
        "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"ts\": 9, "
        "\"args\": "
        "{\"Total Allocated\": 512, \"Total Reserved\": 2048, \"Device Type\": 1}}]}");
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_PYTORCH_FILES"), "cpu.json.gz", NULL);
    gsize length;
    g_autofree char *bytes = import_read(path, &length, NULL);
    g_assert_nonnull(bytes);
    g_ptr_array_add(texts, g_string_new_len(bytes, (gssize)length));
}

/* ---- one file into each parser; false with error when it is refused ------------------------- */

static bool try_plan(const GString *text, GError **error) {
    g_autoptr(Plan) plan = plan_read(text->str, text->len, FILE_NAME, error);
    if (plan) {
        g_autoptr(GString) written = plan_text(plan);
        g_autoptr(GError) lost = NULL;
        g_autoptr(Plan) again = plan_read(written->str, written->len, FILE_NAME, &lost);
        g_assert_no_error(lost);
        g_autoptr(GString) rewritten = plan_text(again);
        g_assert_true(g_string_equal(written, rewritten));
    }
    return plan != NULL;
}

/* What is read of a trace makes a plan, or one that the checker refuses: sizes may be others. */
static void build_traced(const ModelNetwork *network, const PlanGraph *graph) {
    PlanStrategy strategy;
    g_autoptr(GError) error = NULL;
    plan_strategy_init(&strategy);
    strategy.ranks = 2;
    g_assert_true(plan_strategy_settle(&strategy, &error));
    if (network->traced && graph) {
        g_autoptr(Plan) plan = plan_build(graph, &strategy, "damaged", "", PLAN_FORM_WHOLE, &error);
        bool is_sound = plan && plan_check(plan, &error);
        g_assert_true(is_sound || g_error_matches(error, PLAN_ERROR, PLAN_ERROR_VALUE) ||
                      g_error_matches(error, PLAN_ERROR, PLAN_ERROR_CHECK));
    }
}

/* The graph too, where it stays small. */
static bool try_network(const GString *text, GError **error) {
    g_autoptr(ModelNetwork) network = model_network_read(text->str, text->len, FILE_NAME, error);
    if (network && network->layers <= 64) {
        g_autoptr(PlanGraph) graph = model_network_emit(
            network,
            &(ModelPass){.batch = 1,
                         .dtype = PLAN_BF16,
                         .kernels.style =
                             network->layers % 2 ? PLAN_KERNELS_FUSED : PLAN_KERNELS_EAGER,
                         .kernels.rms_norm_of_ops = network->layers % 4 == 0},
            NULL);
        g_assert_true(graph || network->vocab || network->traced);
        build_traced(network, graph);
    }
    return network != NULL;
}

static bool try_config(const GString *text, GError **error) {
    g_auto(ModelConfigLeftOut) left_out = {NULL};
    g_autofree char *ini =
        model_config_json_to_ini(text->str, text->len, FILE_NAME, &left_out, error);
    if (!ini) {
        return false;
    }
    g_autoptr(GString) as_ini = g_string_new(ini);
    return try_network(as_ini, error);
}

static bool try_cluster(const GString *text, GError **error) {
    g_autoptr(ModelCluster) cluster = model_cluster_read(text->str, text->len, FILE_NAME, error);
    return cluster != NULL;
}

static bool try_strategy(const GString *text, GError **error) {
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    if (!plan_strategy_read(&strategy, text->str, text->len, FILE_NAME, error)) {
        return false;
    }
    g_autoptr(GError) contradiction = NULL; /* its message has no place in it */
    plan_strategy_settle(&strategy, &contradiction);
    return true;
}

static bool try_trace(const GString *text, GError **error) {
    g_autoptr(Trace) trace = trace_read(text->str, text->len, FILE_NAME, error);
    return trace != NULL;
}

/* Down to the trace that is drawn, which is sound. */
static bool try_snapshot(const GString *text, GError **error) {
    g_autoptr(Unpickled) unpickled = unpickle(text->str, text->len, FILE_NAME, error);
    g_autoptr(Snapshot) snapshot = unpickled ? snapshot_new(unpickled, -1, FILE_NAME, error) : NULL;
    if (snapshot) {
        g_autoptr(GError) unsound = NULL;
        g_autoptr(Trace) trace = snapshot_to_trace(snapshot, NULL);
        trace_check(trace, &unsound);
        g_assert_no_error(unsound);
        for (guint i = 0; i < snapshot->blocks->len; i++) {
            g_free(snapshot_place(g_array_index(snapshot->blocks, SnapshotBlock, i).frames));
        }
    }
    return snapshot != NULL;
}

static bool try_profile(const GString *text, GError **error) {
    g_autoptr(Profile) profile = profile_read(text->str, text->len, -1, FILE_NAME, error);
    if (profile) {
        StepsFrom from;
        g_autoptr(GArray) steps = profile_steps(profile, &from);
        g_assert_true((from == STEPS_UNKNOWN) == (steps->len == 0));
    }
    return profile != NULL;
}

static const struct {
    const char *name;
    void (*add)(GPtrArray *texts);
    bool (*try)(const GString *text, GError **error);
} parsers[] = {{"plan", add_plans, try_plan},
               {"network", add_networks, try_network},
               {"config", add_configs, try_config},
               {"strategy", add_strategies, try_strategy},
               {"cluster", add_clusters, try_cluster},
               {"trace", add_traces, try_trace},
               {"snapshot", add_snapshots, try_snapshot},
               {"profile", add_profiles, try_profile}};

/* ---- the loop ------------------------------------------------------------------------------- */

static void free_text(gpointer text) {
    g_string_free(text, TRUE);
}

static void fuzz(unsigned parser, double seconds, guint32 seed) {
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(free_text);
    parsers[parser].add(texts);
    g_assert_cmpuint(texts->len, >, 0);
    for (guint i = 0; i < texts->len; i++) { /* undamaged, all are fine */
        g_autoptr(GError) error = NULL;
        parsers[parser].try(texts->pdata[i], &error);
        g_assert_no_error(error);
    }
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    gint64 end = g_get_monotonic_time() + (gint64)(seconds * 1e6);
    unsigned long tried = 0, refused = 0;
    while (g_get_monotonic_time() < end) {
        g_autoptr(GString) text = fuzz_mutate(texts, rand);
        g_autoptr(GError) error = NULL;
        bool ok = parsers[parser].try(text, &error);
        g_assert_true(ok == (error == NULL));
        if (error && !g_str_has_prefix(error->message, FILE_NAME)) {
            g_error("an error that does not name the file: %s", error->message);
        }
        tried++;
        refused += !ok;
    }
    printf("%s: %lu damaged files in %.0f s, %lu refused, seed %u\n", parsers[parser].name, tried,
           seconds, refused, seed);
    g_assert_cmpuint(refused, >, 0);
}

int main(int argc, char **argv) {
    for (unsigned i = 0; i < G_N_ELEMENTS(parsers) && argc >= 2 && argc <= 4; i++) {
        if (g_str_equal(parsers[i].name, argv[1])) {
            const char *seconds = g_getenv("FORESHARD_FUZZ_SECONDS");
            seconds = seconds ? seconds : argc > 2 ? argv[2] : "60";
            fuzz(i, g_ascii_strtod(seconds, NULL),
                 argc > 3 ? (guint32)g_ascii_strtoull(argv[3], NULL, 10) : 1);
            return 0;
        }
    }
    fprintf(stderr, "usage: fuzz plan|network|config|strategy|cluster|trace|snapshot|profile "
                    "[SECONDS [SEED]]\n");
    return 2;
}
