/* Stages that share the layers, on real ranks: gradients and weights of one rank by itself, ranks
 * that this program forked, messages of several pieces, a network's pace, a rehearsal, and who is
 * named when one of them dies. (Losses and memory of many such plans: ranks.c.) Arguments:
 * foreshard, foreshard-exec, the folder of clusters.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "tests/exec/runs.h"
#include "trace/trace.h"

#define TOY   "llama-toy --network-key layers=6 "
#define ALONE TOY "-n 1 --micro-batch 12 --sharding none "
#define TWO   TOY "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 "
#define FOUR  TOY "-n 8 --pipeline 4 --micro-batch 1 --accumulate 6 "
#define RING                                                                                       \
    TOY "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --pipeline-split even "                  \
        "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 "
#define GPT       "gpt-toy --network-key layers=4 "
#define GPT_ALONE GPT "-n 1 --micro-batch 12 --sharding none "
#define GPT_TWO   GPT "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 "
#define GPT_SHARED                                                                                 \
    GPT "-n 4 --pipeline 2 --tensor 2 --micro-batch 4 --accumulate 3 --checkpointing full "
#define GPIPE TOY "-n 6 --pipeline 3 --micro-batch 3 --accumulate 2 --pipeline-schedule gpipe "

static const char *foreshard, *exec, *clusters;
static char *folder;

static char *in_folder(const char *name) {
    return g_build_filename(folder, name, NULL);
}

/* ---- gradients and weights ------------------------------------------------------------------ */

/* Rows of llama-toy's and gpt-toy's parameters have 64 numbers or more, norms and biases too, and
 * runs of 32 lie in one row each. */
enum {
    RUN = 32
};

static double largest(const float *a, gsize n) {
    double most = 0;
    for (gsize i = 0; i < n; i++) {
        most = MAX(most, fabs((double)a[i]));
    }
    return most;
}

/* Largest difference of a run's numbers over the largest of them. Runs that are nothing but
 * rounding are counted, and are so in both. */
static double worst_of_rows(const float *a, const float *b, gsize n, unsigned *ret_nothing) {
    double worst = 0, nothing = 1e-9 * largest(a, n);
    *ret_nothing = 0;
    g_assert_cmpuint(n % RUN, ==, 0);
    for (gsize row = 0; row < n; row += RUN) {
        double most = largest(a + row, RUN), differs = 0;
        for (gsize i = row; i < row + RUN; i++) {
            differs = MAX(differs, fabs((double)a[i] - (double)b[i]));
        }
        if (most > nothing) {
            worst = MAX(worst, differs / most);
        } else {
            g_assert_cmpfloat(largest(b + row, RUN), <=, nothing);
            *ret_nothing += most > 0; /* 0: no batch has the token */
        }
    }
    return worst;
}

/* What a step of SGD at a large rate has taken off is the gradient, times the rate. */
static float *gradients_of(const char *words, gsize *ret_n) {
    gsize n;
    test_run_ok("run %s --steps 1 --optimizer sgd --lr 0 --save %s/before", words, folder);
    test_run_ok("run %s --steps 1 --optimizer sgd --lr 1000 --save %s/after", words, folder);
    float *before = test_run_read_floats(folder, "before", &n);
    g_autofree float *after = test_run_read_floats(folder, "after", ret_n);
    g_assert_cmpuint(n, ==, *ret_n);
    for (gsize i = 0; i < n; i++) {
        before[i] -= after[i];
    }
    return before;
}

static void gradients_agree(const char *alone, const char *const *words, unsigned n_words,
                            unsigned nothing) {
    gsize n, n_got;
    unsigned found;
    g_autofree float *expected = gradients_of(alone, &n);
    for (unsigned i = 0; i < n_words; i++) {
        g_autofree float *got = gradients_of(words[i], &n_got);
        g_assert_cmpuint(n_got, ==, n);
        double worst = worst_of_rows(expected, got, n, &found);
        g_test_message("%s: gradients differ by at most %.2g of their rows' largest", words[i],
                       worst);
        g_assert_cmpfloat(worst, <=, 1e-5);
        g_assert_cmpuint(found, ==, nothing);
    }
}

static void gradients_are_one_ranks(void) {
    static const char *const words[] = {TWO, FOUR, GPIPE, RING, FOUR "--checkpointing full"};
    gradients_agree(ALONE, words, G_N_ELEMENTS(words), 0);
}

/* What is added to all keys alike a softmax does not see: k's biases, 64 a block, have no gradient
 * but rounding. */
static void a_gpts_gradients_are_one_ranks(void) {
    static const char *const words[] = {GPT_TWO, GPT_SHARED};
    gradients_agree(GPT_ALONE, words, G_N_ELEMENTS(words), 4 * 64 / RUN);
}

/* One file, whoever has the parameters; what is loaded and not trained is saved as it was. */
static void weights_are_saved_and_loaded(void) {
    static const char *const words[] = {TWO, FOUR, GPIPE, RING,
                                        TOY "-n 6 --pipeline 2 --accumulate 2"};
    gsize n, n_got;
    test_run_ok("run " ALONE "--steps 4 --optimizer sgd --lr 0.01 --save %s/alone", folder);
    g_autofree float *alone = test_run_read_floats(folder, "alone", &n);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        test_run_ok("run %s --steps 4 --optimizer sgd --lr 0.01 --save %s/w", words[i], folder);
        test_run_ok("run %s --steps 1 --optimizer sgd --lr 0 --load %s/alone --save %s/v", words[i],
                    folder, folder);
        g_autofree float *again = test_run_read_floats(folder, "v", &n_got);
        g_assert_cmpmem(again, n_got * sizeof(float), alone, n * sizeof(float));
        g_autofree float *trained = test_run_read_floats(folder, "w", &n_got);
        g_assert_cmpuint(n_got, ==, n);
        for (gsize e = 0; e < n && i < 4; e++) { /* of the same batches */
            g_assert_cmpfloat(fabs((double)trained[e] - (double)alone[e]), <=, 1e-6);
        }
    }
}

/* ---- other ranks, other messages ------------------------------------------------------------ */

static void agree(const double *a, const double *b, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpfloat(fabs(a[i] / b[i] - 1), <=, 1e-6);
    }
}

static void losses_of_forked_ranks(const char *words, unsigned ranks, double *losses, unsigned n) {
    g_autofree char *plan = in_folder("x.plan");
    test_run_ok("plan %s -o %s", words, plan);
    test_run_program = exec;
    g_autofree char *line = g_strdup_printf("%s --local-ranks %u --steps %u", plan, ranks, n);
    test_run_losses_of(line, losses, n);
    test_run_program = foreshard;
}

static void forked_ranks_agree(void) {
    enum {
        STEPS = 6
    };
    static const struct {
        const char *words;
        unsigned ranks;
    } runs[] = {{TWO, 4}, {FOUR, 8}, {GPIPE, 6}, {RING, 6}};
    double expected[STEPS], losses[STEPS];
    test_run_losses(ALONE, expected, STEPS);
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        losses_of_forked_ranks(runs[i].words, runs[i].ranks, losses, STEPS);
        agree(losses, expected, STEPS);
    }
}

/* A hidden state of 1.2 MB: more than MPI sends before it is asked for, and, through the blocks by
 * which forked ranks hand things on, two pieces of which the last is short. */
static void long_messages(void) {
    enum {
        STEPS = 3
    };
#define LONG "llama-toy --network-key layers=3 --network-key seq=192 --network-key width=256 "
    const char *staged = LONG "-n 4 --pipeline 2 --micro-batch 6 --accumulate 2";
    double expected[STEPS], losses[STEPS];
    test_run_losses(LONG "-n 1 --micro-batch 24 --sharding none", expected, STEPS);
    test_run_losses(staged, losses, STEPS);
    agree(losses, expected, STEPS);
    losses_of_forked_ranks(staged, 4, losses, STEPS);
    agree(losses, expected, STEPS);
#undef LONG
}

/* ---- paced and rehearsed -------------------------------------------------------------------- */

static bool is_of_stages(const Trace *trace, const TraceOpRow *row) {
    uint32_t role = trace_role_of_rank(trace, row->rank);
    const char *name =
        trace_kind(trace, trace_instruction(trace, role, row->instruction)->kind)->name;
    return g_str_equal(name, "send") || g_str_equal(name, "receive") ||
           g_str_equal(name, "exchange");
}

/* What stages send lasts as long as a slow network has it, and the numbers are the same. */
static void is_slowed(const char *words) {
    enum {
        STEPS = 3,
        LATENCY_US = 3000
    };
    g_autofree char *cluster = test_run_slow_cluster(clusters, folder, LATENCY_US);
    g_autofree char *m = in_folder("m.trace");
    g_autofree char *with_pace = g_strdup_printf("%s --pace %s --trace %s", words, cluster, m);
    double paced[STEPS], unpaced[STEPS];
    test_run_losses(words, unpaced, STEPS);
    test_run_losses(with_pace, paced, STEPS);
    g_assert_cmpmem(paced, sizeof paced, unpaced, sizeof unpaced);
    g_autoptr(Trace) trace = test_run_take_trace(m);
    unsigned n = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (is_of_stages(trace, row)) {
            g_assert_cmpint(row->end_ns - row->start_ns, >=, LATENCY_US * 1000);
            n++;
        }
    }
    g_assert_cmpuint(n, >, 100);
}

static void a_slow_network(void) {
    is_slowed(FOUR);
    is_slowed(RING);
}

static void is_rehearsed(const char *words, unsigned rank, const char *who) {
    g_autofree char *p = in_folder("p.trace"), *r = in_folder("r.trace");
    test_run_ok("predict %s --cluster this-machine --steps 4 --trace %s", words, p);
    test_run_ok("rehearse %s --rank %u --cluster this-machine --steps 4 --trace %s", words, rank,
                r);
    g_autofree char *compares = g_strdup_printf("compare %s %s", p, r);
    TestRun run = test_run_finish(test_run_start(compares));
    g_test_message("%s", run.out);
    g_assert_cmpint(run.status, ==, 0);
    g_autoptr(GRegex) blanks = g_regex_new("\\s+", 0, 0, NULL); /* sentences are broken to fit */
    g_autofree char *said = g_regex_replace_literal(blanks, run.out, -1, 0, " ", 0, NULL);
    g_assert_nonnull(strstr(said, who));
    g_assert_nonnull(strstr(said, "allocated equal at all"));
    g_assert_nonnull(strstr(said, "active equal at all"));
    g_assert_nonnull(strstr(said, "reserved equal at all"));
    test_run_clear(&run);
}

/* A rank in the middle, and one of the last stage; of several, the last place's. */
static void rehearsed_memory_is_as_predicted(void) {
    is_rehearsed(FOUR, 3, "rehearsed, rank 3, stage 2 of 4");
    is_rehearsed(FOUR, 7, "rehearsed, rank 7, stage 4 of 4");
    is_rehearsed(RING, 5, "rehearsed, rank 5, stages 3, 6 of 6");
}

/* ---- who is named --------------------------------------------------------------------------- */

static void summaries_name_the_stage(void) {
    TestRun run = test_run_finish(test_run_start("run " TWO "--steps 2"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_nonnull(strstr(run.out, "memory     peak of rank 0, stage 1 of 2: "));
    g_assert_null(strstr(run.out, "nan"));
    test_run_clear(&run);
}

enum {
    WATCHDOG_S = 5 /* eight ranks share few cores, also before their first step */
};

/* A rank of a stage in the middle, gone or stopped: the others wait for it and its neighbours. */
static char *signalled(int sent) {
    g_autofree char *plan = in_folder("x.plan");
    test_run_ok("plan " FOUR "-o %s", plan);
    test_run_program = exec;
    g_autofree char *line =
        g_strdup_printf("%s --local-ranks 8 --steps 1000000 --watchdog %u", plan, WATCHDOG_S);
    GSubprocess *process = test_run_start(line);
    test_run_program = foreshard;
    char first;
    g_assert_cmpint(
        g_input_stream_read(g_subprocess_get_stdout_pipe(process), &first, 1, NULL, NULL), ==, 1);
    const char *id = g_subprocess_get_identifier(process);
    g_autofree char *path = g_strdup_printf("/proc/%s/task/%s/children", id, id);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) children = g_strsplit(text, " ", -1);
    g_assert_cmpuint(g_strv_length(children), >=, 8);
    g_assert_cmpint(kill(atoi(children[3]), sent), ==, 0);
    TestRun run = test_run_finish(process);
    g_test_message("%s", run.err);
    g_assert_cmpint(run.status, ==, 1);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmpint(kill(atoi(children[i]), 0), !=, 0);
    }
    char *words = g_strdup(run.err);
    test_run_clear(&run);
    return words;
}

static void a_killed_rank_is_named(void) {
    g_autofree char *words = signalled(SIGKILL);
    g_assert_nonnull(strstr(words, "rank 3, stage 2 of 4 was killed by signal 9"));
}

static void a_hung_rank_ends_all(void) {
    g_autofree char *words = signalled(SIGSTOP);
    g_autofree char *expected =
        g_strdup_printf(": nothing has got on for %d s: the host is at step ", WATCHDOG_S);
    g_assert_nonnull(strstr(words, expected));
    g_assert_nonnull(strstr(words, " of 4: nothing has got on"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 4);
    test_run_program = foreshard = argv[1];
    exec = argv[2];
    clusters = argv[3];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_test_add_func("/exec/stages/gradients are one rank's", gradients_are_one_ranks);
    g_test_add_func("/exec/stages/a GPT's gradients are one rank's",
                    a_gpts_gradients_are_one_ranks);
    g_test_add_func("/exec/stages/weights are saved and loaded", weights_are_saved_and_loaded);
    g_test_add_func("/exec/stages/forked ranks agree", forked_ranks_agree);
    g_test_add_func("/exec/stages/long messages", long_messages);
    g_test_add_func("/exec/stages/a slow network", a_slow_network);
    g_test_add_func("/exec/stages/rehearsed memory is as predicted",
                    rehearsed_memory_is_as_predicted);
    g_test_add_func("/exec/stages/summaries name the stage", summaries_name_the_stage);
    g_test_add_func("/exec/stages/a killed rank is named", a_killed_rank_is_named);
    g_test_add_func("/exec/stages/a hung rank ends all", a_hung_rank_ends_all);
    int status = g_test_run();
    test_run_remove_folder(folder);
    return status;
}
