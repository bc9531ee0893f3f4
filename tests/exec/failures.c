/* Whatever goes wrong in a run: one message that says where and what to do, no process left within
 * seconds, an exit status that is not 0, and an older trace left as it was. Arguments: foreshard, a
 * foreshard-exec whose MPI fails when told to (mpi-fails.c).
 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/exec/scene.h"
#include "trace/ended.h"
#include "trace/text.h"

static const char *failing_exec;

/* What ranks under a bare mpirun say of wrong input: one line, of this rank; mpirun may add to
 * it. */
static void one_rank_says(const char *words, unsigned rank, const char *expected) {
    const char *foreshard = test_run_program;
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    g_autofree char *start = g_strdup_printf("foreshard-exec: rank %u: ", rank);
    unsigned n = 0;
    test_run_program = mpirun;
    TestRun run = test_run_finish(test_run_start(words));
    test_run_program = foreshard;
    g_test_message("%s: %s", words, run.err);
    g_auto(GStrv) lines = g_strsplit(run.err, "\n", -1);
    for (char **line = lines; *line; line++) {
        const char *own = strstr(*line, "foreshard-exec: "); /* Open MPI 5 begins with a space */
        if (own) {
            g_assert_true(g_str_has_prefix(own, start));
            g_assert_nonnull(strstr(own, expected));
            n++;
        }
    }
    g_assert_cmpuint(n, ==, 1);
    g_assert_cmpint(run.status, ==, 2);
    test_run_clear(&run);
}

/* Rank 0 is given a plan, the others none. By a script, because Debian 13's mpirun dies of what
 * would say so, "-n 1 true : -n 1 true". */
static void two_kinds_say(unsigned n, const char *plan, unsigned rank, const char *expected) {
    g_autofree char *exec = test_scene_exec(), *script = g_strconcat(plan, ".sh", NULL);
    g_autofree char *words = g_strdup_printf("--oversubscribe -n %u sh %s", n, script);
    g_autofree char *text = g_strdup_printf("plan=%s\n"
                                            "[ $OMPI_COMM_WORLD_RANK = 0 ] || plan=/no-such.plan\n"
                                            "exec %s $plan\n",
                                            plan, exec);
    g_assert_true(g_file_set_contents(script, text, -1, NULL));
    one_rank_says(words, rank, expected);
    g_unlink(script);
}

/* No plan, for whoever reads the pipe, and late. */
static gpointer write_late(gpointer pipe) {
    g_autoptr(GError) error = NULL;
    g_usleep(3 * G_USEC_PER_SEC);
    g_autofree char *command = g_strdup_printf("sh -c 'echo rubbish > %s'", (const char *)pipe);
    g_spawn_command_line_sync(command, NULL, NULL, NULL, &error);
    g_assert_no_error(error);
    return NULL;
}

/* However slow it is, the others wait for it. */
static void a_slow_rank_0_speaks_first(void) {
    TestScene scene = test_scene_set();
    g_autofree char *pipe = g_strconcat(scene.folder, "/pipe", NULL);
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    GThread *writer = g_thread_new("late", write_late, pipe);
    two_kinds_say(3, pipe, 0, "/pipe:1: expected 'foreshard-plan', not 'rubbish'");
    g_thread_join(writer);
    g_unlink(pipe);
    test_scene_leave(&scene);
}

static void wrong_input_is_said_once_under_mpirun(void) {
    TestScene scene = test_scene_set();
    g_autofree char *plan = g_strconcat(scene.folder, "/x.plan", NULL);
    g_autofree char *exec = test_scene_exec();
    g_autofree char *none = g_strdup_printf("--oversubscribe -n 3 %s /no-such.plan", exec);
    g_autofree char *other = g_strdup_printf("--oversubscribe -n 3 %s %s", exec, plan);
    test_run_ok("plan gpt-toy -n 2 -o %s", plan);
    one_rank_says(none, 0, "/no-such.plan: cannot be read");
    one_rank_says(other, 0, "the plan is for 2 ranks, but 3 are started");
    two_kinds_say(2, plan, 1, "/no-such.plan: cannot be read"); /* rank 0 has found nothing */
    g_unlink(plan);
    test_scene_leave(&scene);
}

typedef struct {
    const char *order; /* of tests/exec/mpi-fails.c */
    const char *expected;
} MpiCase;

static const MpiCase mpi_cases[] = {
    {"MPI_Iallgather 1 20", "rank 1: step |, op all_gather of unit |MPI_Iallgather failed"},
    {"MPI_Isend 2 9", "rank 2: step |, op reduce_scatter of unit |MPI_Isend failed"},
    {"MPI_Irecv 0 9", "rank 0: step |, op reduce_scatter of unit |MPI_Irecv failed"},
    {"MPI_Testall 1 60", "rank 1: |MPI_"},
    {"MPI_Iallreduce 0 3", "rank 0: the mean loss of step 2: MPI_Iallreduce failed"},
    {"MPI_Ibarrier 2 1", "rank 2: before step 0: MPI_Ibarrier failed"},
    {"MPI_Comm_split 1 2", "rank 1: the ranks find each other: MPI_Comm_split failed"},
    {"MPI_Isend of bytes 2 1", "rank 2: the trace of all ranks, |MPI_Isend failed"},
    {"MPI_Irecv of bytes 0 2", "rank 0: the trace of all ranks, |MPI_Irecv failed"},
};

/* Of stages each rank is in one, which is said. */
static const MpiCase mpi_cases_of_stages[] = {
    {"MPI_Issend 1 5", "rank 1, stage 1 of 2: step |, op exchange of unit root|MPI_Issend failed"},
    {"MPI_Irecv of bytes 2 7", "rank 2, stage 2 of 2: step |, op |of unit root|MPI_Irecv failed"},
    {"MPI_Iallgather 3 9", "rank 3, stage 2 of 2: step |op all_gather|MPI_Iallgather failed"},
};

/* Each with MPI's own word for the error. */
static void mpi_fails(const MpiCase *failing, unsigned n, const char *network) {
    TestScene scene = test_scene_set();
    g_setenv("FORESHARD_EXEC", failing_exec, TRUE);
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *expected =
            g_strdup_printf("%s|MPI_ERR_OTHER: known error not in list", failing[i].expected);
        g_autofree char *words =
            g_strdup_printf("run %s --steps 20 --trace %s", network, scene.trace);
        g_setenv("FORESHARD_TEST_MPI_FAILS", failing[i].order, TRUE);
        g_test_message("%s", failing[i].order);
        test_scene_ends(&scene, test_run_start(words), 1, expected);
    }
    g_unsetenv("FORESHARD_TEST_MPI_FAILS");
    g_unsetenv("FORESHARD_EXEC");
    test_scene_leave(&scene);
}

static void mpi_errors_say_where(void) {
    mpi_fails(mpi_cases, G_N_ELEMENTS(mpi_cases), "gpt-toy -n 3");
    mpi_fails(mpi_cases_of_stages, G_N_ELEMENTS(mpi_cases_of_stages),
              "llama-toy -n 4 --pipeline 2 --accumulate 3");
}

/* What ranks leave may take longer than the watchdog waits, as long as it gets on: rank by rank,
 * two sends of a second each, then tensor by tensor, which rank 0 alone writes here. */
static void slow_results_are_no_hang(void) {
    TestScene scene = test_scene_set();
    g_autofree char *weights = g_strconcat(scene.folder, "/w", NULL);
    g_setenv("FORESHARD_EXEC", failing_exec, TRUE);
    g_setenv("FORESHARD_TEST_SLOW_MS", "1000", TRUE);
    gint64 start = g_get_monotonic_time();
    test_run_ok("run gpt-toy -n 4 --sharding none --steps 2 --watchdog 4 --trace %s --save %s",
                scene.trace, weights);
    g_assert_cmpint(g_get_monotonic_time() - start, >, 8 * G_USEC_PER_SEC);
    g_unsetenv("FORESHARD_TEST_SLOW_MS");
    g_unsetenv("FORESHARD_EXEC");
    g_assert_cmpint(g_unlink(weights), ==, 0);
    test_scene_leave(&scene);
}

static void an_mpi_of_one_thread_at_a_time_is_refused(void) {
    TestScene scene = test_scene_set();
    g_autofree char *words = g_strdup_printf("run gpt-toy -n 2 --trace %s", scene.trace);
    g_setenv("FORESHARD_EXEC", failing_exec, TRUE);
    g_setenv("FORESHARD_TEST_MPI_SERIALIZED", "1", TRUE);
    test_scene_ends(
        &scene, test_run_start(words), 1,
        "this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE)|use an Open MPI");
    g_unsetenv("FORESHARD_TEST_MPI_SERIALIZED");
    g_unsetenv("FORESHARD_EXEC");
    test_scene_leave(&scene);
}

static const struct {
    const char *words;
    int status;
    const char *expected;
} cases[] = {
    {"gpt-toy -n 3 --lr 1000 --weight-decay 10 --steps 200", 1,
     "rank |op nll_loss of unit root: the loss is |lower the learning rate"},
    {"gpt-toy -n 2 --load no-such-file", 2, "cannot read |no-such-file: No such file"},
    {"gpt-toy -n 2 --save /no-such-folder/w", 1, "/no-such-folder/w"},
    {"gpt-toy -n 2 --save /", 1, "cannot write /: Is a directory"},
    {"gpt-toy -n 2 --save /dev/null", 2, "cannot save weights to /dev/null, which is no regular"},
    {"gpt-toy -n 2 --data no-such-file", 2, "cannot read |no-such-file: No such file"},
    {"gpt-toy -n 2 --data /", 2, "cannot read /: Is a directory"},
    {"mlp-toy -n 2 --data /proc/self/exe", 2, "is trained on vectors"},
    {"gpt-toy -n 2 --data /proc/self/exe", 2, "the network's vocabulary is 96"},
    {"gpt-toy -n 2 --device tpu", 2, "no device 'tpu'"},
    {"gpt-toy -n 1025", 2, "1025 processes are too many for this machine"},
    {"gpt-toy -n 2 --steps 0", 2, "--steps takes a number from 1"},
};

/* The learning rate is not to blame for what nothing has learned. */
static void weights_that_are_no_numbers(void) {
    TestScene scene = test_scene_set();
    g_autofree char *weights = g_strconcat(scene.trace, ".weights", NULL);
    g_autofree char *save = g_strdup_printf("run mlp-toy -n 1 --steps 1 --save %s", weights);
    g_autofree char *load =
        g_strdup_printf("run mlp-toy -n 1 --load %s --trace %s", weights, scene.trace);
    g_autofree char *bytes = NULL;
    gsize length;
    test_scene_ends(&scene, test_run_start(save), 0, "");
    g_assert_true(g_file_get_contents(weights, &bytes, &length, NULL));
    memset(bytes + length - sizeof(float), 0xff, sizeof(float));
    g_assert_true(g_file_set_contents(weights, bytes, (gssize)length, NULL));
    test_scene_ends(
        &scene, test_run_start(load), 1,
        "step 0, |the loss is not a number before anything was learned; look at the weights");
    g_assert_cmpint(g_unlink(weights), ==, 0);
    test_scene_leave(&scene);
}

static void failures_say_why(void) {
    TestScene scene = test_scene_set();
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strdup_printf("run %s --trace %s", cases[i].words, scene.trace);
        g_test_message("%s", words);
        test_scene_ends(&scene, test_run_start(words), cases[i].status, cases[i].expected);
    }
    test_scene_leave(&scene);
}

/* A rank that was first says where its rows are; what another was still writing is gone. */
static void out_of_memory_leaves_the_curve_up_to_the_wall(void) {
    enum {
        LIMIT = 5000000
    };
    TestScene scene = test_scene_set();
    g_autofree char *words =
        g_strdup_printf("run gpt-toy -n 2 --memory-limit %d --trace %s", LIMIT, scene.trace);
    test_scene_ends(
        &scene, test_run_start(words), 1,
        "rank |out of memory: step 0: no room for | of unit |allocated: parameters/sharded |"
        "the trace up to there: |m.trace.oom.");
    unsigned n = 0;
    for (unsigned rank = 0; rank < 2; rank++) {
        g_autofree char *path = g_strdup_printf("%s.oom.%u", scene.trace, rank);
        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            continue;
        }
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_read_file(path, &error);
        g_assert_no_error(error);
        TraceOom oom;
        g_assert_true(trace_get_oom(trace, &oom));
        g_assert_cmpuint(oom.rank, ==, rank);
        g_assert_cmpint(oom.step, ==, 0);
        g_assert_cmpuint(trace_limit_bytes(trace), ==, LIMIT);
        /* The last row is before the one that failed, and another segment would not have fitted. */
        const TraceMemoryRow *last = trace_memory(trace, trace->memory->len - 1);
        g_assert_cmpuint(last->instruction, <, oom.instruction);
        g_assert_cmpuint(last->reserved, <=, LIMIT);
        g_assert_cmpuint(last->reserved + (2 << 20), >, LIMIT);
        g_autofree char *said = trace_oom_text(trace);
        g_assert_true(g_str_has_prefix(said, "out of memory in step 0, "));
        g_unlink(path);
        n++;
    }
    g_assert_cmpuint(n, >=, 1);
    test_scene_leave(&scene);
}

/* Nobody can read what was learned, so it counts as failed; /dev/full takes nothing. */
static void a_full_disk_is_a_failure(void) {
    static const char *const words[] = {
        "run gpt-toy -n 2 --steps 2",
        "run gpt-toy --steps 2 --json",
        "rehearse gpt-toy -n 2 --rank 1 --steps 2 --cluster two-laptops",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        TestRun run = test_run_finish(test_run_start_into(words[i], "/dev/full"));
        g_assert_cmpint(run.status, ==, 1);
        test_scene_says(run.err, "output cannot be written");
        g_assert_true(strchr(run.err, '\n') == run.err + strlen(run.err) - 1);
        test_run_clear(&run);
    }
}

/* Whoever starts ranks by hand may start the wrong number; foreshard itself knows the plan's. */
static void other_rank_counts_are_refused(void) {
    TestScene scene = test_scene_set();
    g_autofree char *plan = g_strconcat(scene.folder, "/x.plan", NULL);
    g_autofree char *words = g_strdup_printf("run %s -n 3 --trace %s", plan, scene.trace);
    test_run_ok("plan gpt-toy -n 2 -o %s", plan);
    test_scene_ends(&scene, test_run_start(words), 2, "is a plan for 2 ranks, not 3");
    const char *foreshard = test_run_program;
    g_autofree char *exec = test_scene_exec();
    g_autofree char *by_hand = g_strdup_printf("%s --trace=%s", plan, scene.trace);
    test_run_program = exec;
    test_scene_ends(&scene, test_run_start(by_hand), 2,
                    "the plan is for 2 ranks, but 1 is started");
    test_run_program = foreshard;
    g_unlink(plan);
    test_scene_leave(&scene);
}

static void calibrate_refuses(const char *words, int status, const char *expected) {
    TestRun result = test_run_finish(test_run_start(words));
    g_assert_cmpint(result.status, ==, status);
    g_assert_nonnull(strstr(result.err, expected));
    test_run_clear(&result);
}

static void a_calibration_needs_a_file(void) {
    calibrate_refuses("calibrate -n 2", 2, "give -o FILE");
    calibrate_refuses("calibrate -n 2 -o /no-such-folder/c.ini", 1, "/no-such-folder");
    calibrate_refuses("calibrate -n 2 -o /", 1, "/ is a folder; name a file");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    test_run_program = argv[1];
    failing_exec = argv[2];
    g_test_add_func("/exec/failures/wrong input is said once under mpirun",
                    wrong_input_is_said_once_under_mpirun);
    g_test_add_func("/exec/failures/a slow rank 0 speaks first", a_slow_rank_0_speaks_first);
    g_test_add_func("/exec/failures/errors of MPI say where", mpi_errors_say_where);
    g_test_add_func("/exec/failures/slow results are no hang", slow_results_are_no_hang);
    g_test_add_func("/exec/failures/an MPI of one thread at a time is refused",
                    an_mpi_of_one_thread_at_a_time_is_refused);
    g_test_add_func("/exec/failures/each says why", failures_say_why);
    g_test_add_func("/exec/failures/weights that are no numbers", weights_that_are_no_numbers);
    g_test_add_func("/exec/failures/out of memory leaves the curve up to the wall",
                    out_of_memory_leaves_the_curve_up_to_the_wall);
    g_test_add_func("/exec/failures/a full disk is a failure", a_full_disk_is_a_failure);
    g_test_add_func("/exec/failures/other rank counts are refused", other_rank_counts_are_refused);
    g_test_add_func("/exec/failures/a calibration needs a file", a_calibration_needs_a_file);
    return g_test_run();
}
