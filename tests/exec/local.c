/* foreshard-exec's own ranks, without MPI: one answer on any number of them, a dead one named, a
 * hung one ended. Arguments: foreshard, foreshard-exec.
 */
#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/host/runtime.h"
#include "plan/text/text.h"
#include "tests/exec/runs.h"
#include "trace/compare/compare.h"

enum {
    STEPS = 6
};

static const char *foreshard, *exec;
static char *folder, *plan_path;

static void plan(const char *words) {
    test_run_program = foreshard;
    test_run_ok("plan gpt-toy %s -o %s", words, plan_path);
    test_run_program = exec;
}

/* A global batch of 12. The sums of shared memory are formed in one order, MPI's in another. */
static void losses_agree(void) {
    static const struct {
        const char *words;
        unsigned ranks;
        double bound;
    } runs[] = {
        {"-n 1 --micro-batch 12 --sharding none", 1, 0},
        {"-n 2 --micro-batch 6 --sharding none", 2, 1e-6},
        {"-n 3 --micro-batch 4", 3, 1e-6},
        {"-n 4 --micro-batch 3 --sharding hybrid --replicate 2", 4, 1e-6},
        {"-n 4 --micro-batch 3 --reshard-after-forward 2", 4, 1e-6},
        {"-n 3 --micro-batch 4 --flavour fsdp1 --wrap whole", 3, 1e-6},
        {"-n 3 --micro-batch 4 --sharding optimizer-only", 3, 1e-6},
        {"-n 3 --micro-batch 4 --param-dtype bf16", 3, 0x1p-7},
        {"-n 2 --micro-batch 6 --param-dtype fp16", 2, 0x1p-10},
    };
    double expected[STEPS], losses[STEPS];
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *line =
            g_strdup_printf("%s --local-ranks %u --steps %d", plan_path, runs[i].ranks, STEPS);
        double worst = 0;
        plan(runs[i].words);
        test_run_losses_of(line, i ? losses : expected, STEPS);
        for (unsigned step = 0; i && step < STEPS; step++) {
            worst = MAX(worst, fabs(losses[step] / expected[step] - 1));
        }
        g_test_message("%s: losses differ by at most %.2g relative", runs[i].words, worst);
        g_assert_cmpfloat(worst, <=, runs[i].bound);
    }
}

/* What a plan without a loss has learned is null, as JSON has no NaN. */
static void no_loss_is_null(void) {
    static const char section[] = "@forward u0 m0\nlaunch compute fill n=100 value=0 y=b0\n";
    g_autofree char *text = g_strdup_printf(
        "foreshard-plan 1\ntitle toy\ntokens_per_rank 10\nnetwork\nstrategy\n"
        "mesh replicate=1 shard=1 part=1\nlanes compute\nmodules 1\nm0 - Toy -\n"
        "units 1\nu0 0 0 root\nparameters 0\nroles 1\nrole 0 ranks 0\nowns 0\nloss\n"
        "buffers 1\nb0 400 fp32 temporary/op compute - cfst kernel\n"
        "section construct 1\n@setup u0 m0\nalloc b0\n"
        "section first 1\n%ssection second 1\n%ssection steady 1\n%send\n",
        section, section, section);
    g_autofree char *words = g_strdup_printf("%s --steps 2 --json", plan_path);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(plan_path, text, -1, NULL));
    test_run_program = exec;
    TestRun run = test_run_finish(test_run_start(words));
    g_test_message("%s%s", run.out, run.err);
    g_assert_cmpint(run.status, ==, 0);
    g_autoptr(JsonParser) parser = json_parser_new();
    json_parser_load_from_data(parser, run.out, -1, &error);
    g_assert_no_error(error);
    JsonObject *result = json_node_get_object(json_parser_get_root(parser));
    JsonArray *losses = json_object_get_array_member(result, "losses");
    g_assert_cmpuint(json_array_get_length(losses), ==, 2);
    g_assert_true(json_array_get_null_element(losses, 1));
    test_run_clear(&run);
}

static Trace *trace_of(const char *name) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return test_run_take_trace(path);
}

static char *products_of(const char *words) {
    test_run_ok("%s %s --steps 1 --trace %s/b.trace", plan_path, words, folder);
    g_autoptr(Trace) trace = trace_of("b.trace");
    return g_strdup(trace_get(trace, "blas"));
}

/* The oldest kernels of an OpenBLAS of many are for those who ask for them, or have an old
 * processor. */
static void products_have_good_kernels(void) {
    static const char oldest[] = "Prescott";
    const char *isa = kernel_isa_name();
    bool is_old = !g_str_equal(isa, "x86-64-v3") && !g_str_equal(isa, "x86-64-v4");
    if (is_old || !strstr(kernel_blas_name(), "DYNAMIC_ARCH") || g_getenv("OPENBLAS_CORETYPE")) {
        g_test_skip("an old processor, a BLAS of one kind of kernels, or they are chosen");
        return;
    }
    plan("-n 2");
    g_autofree char *by_itself = products_of("--local-ranks 2");
    test_run_name = "OPENBLAS_CORETYPE";
    test_run_value = oldest;
    g_autofree char *as_told = products_of("--local-ranks 2");
    test_run_name = NULL;
    g_test_message("%s; told: %s", by_itself, as_told);
    g_assert_null(strstr(by_itself, oldest));
    g_assert_nonnull(strstr(as_told, oldest));
}

/* The trace has every rank, and its memory is what was predicted. */
static void traces_are_whole(void) {
    plan("-n 3");
    test_run_ok("%s --local-ranks 3 --steps 3 --trace %s/m.trace", plan_path, folder);
    test_run_program = foreshard;
    test_run_ok("predict %s --cluster this-machine --steps 3 --every-rank --trace %s/p.trace",
                plan_path, folder);
    g_autoptr(Trace) predicted = trace_of("p.trace");
    g_autoptr(Trace) measured = trace_of("m.trace");
    g_autoptr(GError) error = NULL;
    g_autoptr(TraceComparison) comparison = trace_compare(predicted, measured, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(measured->ranks->len, ==, 3);
    g_assert_cmpuint(comparison->n_ranks, ==, 3);
    g_assert_cmpuint(comparison->n_compared, >, 0);
    g_assert_cmpuint(comparison->n_unpaired, ==, 0);
    for (unsigned k = 0; k < TRACE_N_STATISTICS; k++) {
        g_assert_cmpuint(comparison->memory[k].differing, ==, 0);
    }
}

/* The ranks of a running foreshard-exec. */
static void children_of(GSubprocess *process, int *ret_first, int *ret_second) {
    const char *id = g_subprocess_get_identifier(process);
    g_autofree char *path = g_strdup_printf("/proc/%s/task/%s/children", id, id);
    *ret_first = *ret_second = 0;
    for (unsigned tries = 0; tries < 300 && !*ret_second; tries++) {
        g_autofree char *text = NULL;
        g_usleep(20000);
        if (g_file_get_contents(path, &text, NULL, NULL)) {
            sscanf(text, "%d %d", ret_first, ret_second);
        }
    }
    g_assert_cmpint(*ret_second, >, 0);
}

/* It says so after the first step. */
static void await_training(GSubprocess *process) {
    char first;
    g_assert_cmpint(
        g_input_stream_read(g_subprocess_get_stdout_pipe(process), &first, 1, NULL, NULL), ==, 1);
}

/* What becomes of two ranks when the second gets a signal: its words, within so many seconds.
 * Transfer full. */
static char *signalled(int sent, const char *expected) {
    plan("-n 2");
    g_autofree char *line =
        g_strdup_printf("%s --local-ranks 2 --steps 1000000 --watchdog 2", plan_path);
    GSubprocess *process = test_run_start(line);
    int first, second;
    children_of(process, &first, &second);
    await_training(process);
    gint64 sent_at = g_get_monotonic_time();
    g_assert_cmpint(kill(second, sent), ==, 0);
    TestRun run = test_run_finish(process);
    double seconds = (double)(g_get_monotonic_time() - sent_at) / 1e6;
    g_test_message("ended after %.1f s: %s", seconds, run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_cmpfloat(seconds, <, 15);
    g_assert_nonnull(strstr(run.err, expected));
    g_assert_cmpint(kill(first, 0), !=, 0); /* gone, both */
    g_assert_cmpint(kill(second, 0), !=, 0);
    char *words = g_strdup(run.err);
    test_run_clear(&run);
    return words;
}

/* An ordinary user may write to it, and to nothing beside it. */
static void a_device_takes_a_trace(void) {
    plan("-n 1");
    test_run_ok("%s --local-ranks 1 --steps 1 --trace /dev/null", plan_path);
}

static void a_killed_rank_is_named(void) {
    g_free(signalled(SIGKILL, "rank 1 was killed by signal 9"));
}

/* Instructions are numbered over all sections, as in traces; after a step, two lie behind. */
static void a_hung_rank_ends_all(void) {
    g_autofree char *words =
        signalled(SIGSTOP, "rank 0: nothing has got on for 2 s: the host is at step ");
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_read_file(plan_path, &error);
    g_assert_no_error(error);
    const uint32_t *n = plan->roles[0].n_instrs;
    unsigned step, instruction;
    g_assert_cmpint(
        sscanf(strstr(words, "at step "), "at step %u, instruction %u", &step, &instruction), ==,
        2);
    g_assert_cmpuint(step, >=, 1);
    g_assert_cmpuint(instruction, >=, n[PLAN_SECTION_CONSTRUCT] + n[PLAN_SECTION_FIRST]);
}

/* Measuring has no plan whose place could be told, but an end. */
static void a_hung_rank_ends_measuring(void) {
    test_run_program = exec;
    GSubprocess *process = test_run_start("--costs --local-ranks 2 --watchdog 2");
    int first, second;
    children_of(process, &first, &second);
    g_assert_cmpint(kill(second, SIGSTOP), ==, 0);
    TestRun run = test_run_finish(process);
    g_test_message("%s", run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_nonnull(strstr(run.err, "rank 0: nothing has got on for 2 s: the costs of calls, "));
    g_assert_cmpint(kill(second, 0), !=, 0);
    test_run_clear(&run);
}

/* A pipe that nobody reads: the last thing that a rank can hang in. */
static void a_trace_nobody_takes_is_named(void) {
    g_autofree char *pipe = g_build_filename(folder, "pipe", NULL);
    plan("-n 2");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    g_autofree char *line =
        g_strdup_printf("%s --local-ranks 2 --steps 2 --watchdog 1 --trace %s", plan_path, pipe);
    TestRun run = test_run_finish(test_run_start(line));
    g_test_message("%s", run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_nonnull(
        strstr(run.err, "rank 0: nothing has got on for 1 s: the results are handed on; "));
    test_run_clear(&run);
}

/* Every rank finds it, and rank 0 says it: wrong input, or a file that cannot be written. */
static void what_all_find_is_said_once(void) {
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"/no-such.plan --local-ranks 3", 2},
        {"%s --local-ranks 3", 2},
        {"%s --local-ranks 2 --load no-such-file", 2},
        {"%s --local-ranks 2 --save /", 1},
    };
    plan("-n 2");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) parts = g_strsplit(cases[i].line, "%s", 2);
        g_autofree char *line = g_strjoinv(plan_path, parts);
        TestRun run = test_run_finish(test_run_start(line));
        g_test_message("%s: %s", line, run.err);
        g_assert_cmpint(run.status, ==, cases[i].status);
        g_assert_true(g_str_has_prefix(run.err, "foreshard-exec: rank 0: "));
        g_assert_true(strchr(run.err, '\n') == run.err + strlen(run.err) - 1);
        test_run_clear(&run);
    }
}

/* Before any rank is started. */
static void options_are_refused(void) {
    static const char *const wrong[][2] = {
        {"--trace -", "--trace -: standard output has what is printed already; give a name"},
        {"--save -", "--save -: standard output has what is printed already; give a name"},
        {"--comm banana", "--comm is of GPUs alone; add --device cuda"},
        {"--no-op-times --device host", "--no-op-times is of GPUs alone; add --device cuda"},
        {"--local-ranks 1025", "--local-ranks takes a number from 0 to 1024, not 1025"},
        {"--threads 0", "--threads takes a number from 1 "},
    };
    plan("-n 1");
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *line = g_strdup_printf("%s --steps 1 %s", plan_path, wrong[i][0]);
        TestRun run = test_run_finish(test_run_start(line));
        g_test_message("%s", run.err);
        g_assert_cmpint(run.status, ==, 2);
        g_assert_nonnull(strstr(run.err, wrong[i][1]));
        test_run_clear(&run);
    }
    g_assert_false(g_file_test("-", G_FILE_TEST_EXISTS));
}

/* The executor by itself on so many ranks, what it prints in pipes; setup: of its process before it
 * begins. Transfer full. */
static GSubprocess *start_ranks(unsigned ranks, const char *steps, GSpawnChildSetupFunc setup) {
    g_autofree char *words = g_strdup_printf("-n %u", ranks);
    g_autofree char *wanted = g_strdup_printf("--local-ranks=%u", ranks);
    const char *argv[] = {exec, plan_path, steps, ranks > 1 ? wanted : NULL, NULL};
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autoptr(GError) error = NULL;
    plan(words);
    g_subprocess_launcher_set_child_setup(launcher, setup, NULL, NULL);
    GSubprocess *process = g_subprocess_launcher_spawnv(launcher, argv, &error);
    g_assert_no_error(error);
    return process;
}

static void ignore_children(gpointer self) {
    signal(SIGCHLD, SIG_IGN);
    alarm(30); /* s: one that hangs is killed, which is no exit */
}

/* A program inherits what its parent ignores. Ranks that it forks, or that a warden does, are heard
 * of all the same when they end. */
static void a_parent_that_ignores_children_does_not_matter(void) {
    for (unsigned ranks = 1; ranks <= 2; ranks++) {
        GSubprocess *process = start_ranks(ranks, "--steps=2", ignore_children);
        TestRun run = test_run_finish(process);
        g_assert_cmpint(run.status, ==, 0);
        g_assert_nonnull(strstr(run.out, "step 1 "));
        test_run_clear(&run);
    }
}

static void ends_at_once(gpointer self) {
    signal(SIGPIPE, SIG_DFL); /* GLib's own programs ignore it */
    alarm(30);                /* s */
}

/* Whose output nobody reads ends without a word, as programs in a pipe do. */
static void a_closed_pipe_is_no_failure(void) {
    for (unsigned ranks = 1; ranks <= 2; ranks++) {
        g_autoptr(GSubprocess) process = start_ranks(ranks, "--steps=5000", ends_at_once);
        g_autoptr(GError) error = NULL;
        char said[200] = "";
        gsize length;
        g_input_stream_close(g_subprocess_get_stdout_pipe(process), NULL, &error);
        g_input_stream_read_all(g_subprocess_get_stderr_pipe(process), said, sizeof said - 1,
                                &length, NULL, &error);
        g_subprocess_wait(process, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(said, ==, "");
        g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 128 + SIGPIPE);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    foreshard = argv[1];
    exec = argv[2];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    plan_path = g_build_filename(folder, "x.plan", NULL);
    g_test_add_func("/exec/local/losses agree on 1 to 4 ranks", losses_agree);
    g_test_add_func("/exec/local/no loss is null", no_loss_is_null);
    g_test_add_func("/exec/local/products have good kernels", products_have_good_kernels);
    g_test_add_func("/exec/local/traces are whole", traces_are_whole);
    g_test_add_func("/exec/local/a device takes a trace", a_device_takes_a_trace);
    g_test_add_func("/exec/local/a killed rank is named", a_killed_rank_is_named);
    g_test_add_func("/exec/local/a hung rank ends all", a_hung_rank_ends_all);
    g_test_add_func("/exec/local/a hung rank ends measuring", a_hung_rank_ends_measuring);
    g_test_add_func("/exec/local/a trace nobody takes is named", a_trace_nobody_takes_is_named);
    g_test_add_func("/exec/local/what all find is said once", what_all_find_is_said_once);
    g_test_add_func("/exec/local/options are refused", options_are_refused);
    g_test_add_func("/exec/local/a parent that ignores children does not matter",
                    a_parent_that_ignores_children_does_not_matter);
    g_test_add_func("/exec/local/a closed pipe is no failure", a_closed_pipe_is_no_failure);
    int status = g_test_run();
    test_run_remove_folder(folder);
    g_free(folder);
    g_free(plan_path);
    return status;
}
