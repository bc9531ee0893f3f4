/* A rank, or what started the ranks, is killed or told to end: one message says who it was, no
 * process is left within seconds, and an older trace stays as it was. Arguments: foreshard, the
 * folder of clusters.
 */
#include <glib/gstdio.h>
#include <signal.h>

#include "tests/exec/scene.h"

static const char *clusters;

/* The process of a rank, once it is well into what it does. Under a bare mpirun there are two: the
 * rank is the one that the other has forked. */
static int await_rank(const char *trace, unsigned rank) {
    g_autofree char *variable = g_strdup_printf("OMPI_COMM_WORLD_RANK=%u", rank);
    g_autoptr(GArray) found = NULL;
    for (unsigned tries = 0; tries < 300 && (!found || !found->len); tries++) {
        g_usleep(50000);
        g_clear_pointer(&found, g_array_unref);
        found = test_scene_processes(trace, variable);
    }
    g_usleep(2 * G_USEC_PER_SEC);
    g_array_unref(found);
    found = test_scene_processes(trace, variable);
    g_assert_cmpuint(found->len, >=, 1);
    g_assert_cmpuint(found->len, <=, 2);
    int last = 0;
    for (guint i = 0; i < found->len; i++) {
        last = MAX(last, g_array_index(found, int, i));
    }
    return last;
}

static void await_no_rank(const char *trace) {
    gint64 start = g_get_monotonic_time();
    for (guint left = 1; left; g_usleep(50000)) {
        g_autoptr(GArray) found = test_scene_processes(trace, "OMPI_COMM_WORLD_RANK=");
        left = found->len;
        g_assert_cmpint(g_get_monotonic_time() - start, <, TEST_SCENE_SECONDS * G_USEC_PER_SEC);
    }
}

static void kill_rank(const char *trace, unsigned rank) {
    g_assert_cmpint(kill(await_rank(trace, rank), SIGKILL), ==, 0);
}

/* A collective takes a second here, so one is always on its way. */
static void a_killed_rank_is_named(void) {
    TestScene scene = test_scene_set();
    g_autofree char *cluster = test_run_slow_cluster(clusters, scene.folder, 1000000);
    g_autofree char *words =
        g_strdup_printf("run gpt-toy -n 3 --pace %s --trace %s", cluster, scene.trace);
    GSubprocess *process = test_run_start(words);
    kill_rank(scene.trace, 1);
    test_scene_ends(
        &scene, process, 1,
        "rank 1 was killed by signal 9 (Killed| at step 0, instruction |, op | of unit | (lane |"
        "the others have been ended");
    g_unlink(cluster);
    test_scene_leave(&scene);
}

/* As Open MPI 5 tells it, whose pages have lines of 76 columns, and may be followed by a space. */
static void a_death_in_two_lines_is_named(void) {
    static const char script[] =
        "#!/bin/sh\n"
        "exec >&2\n"
        "echo '[vm] a library foreshard-exec: rank 0: what it has to say'\n"
        "echo ----------\n"
        "echo 'prterun noticed that process rank 1 with PID 2418 on node vm exited on'\n"
        "echo 'signal 9 (Killed).'\n"
        "exit 137\n";
    g_autoptr(GError) error = NULL;
    TestScene scene = test_scene_set();
    g_autofree char *mpirun = g_strconcat(scene.folder, "/mpirun", NULL);
    g_autofree char *path = g_strconcat(scene.folder, ":", g_getenv("PATH"), NULL);
    g_autofree char *before = g_strdup(g_getenv("PATH"));
    g_autofree char *words = g_strdup_printf("run gpt-toy -n 2 --trace %s", scene.trace);
    g_assert_true(
        g_file_set_contents_full(mpirun, script, -1, G_FILE_SET_CONTENTS_NONE, 0700, &error));
    g_assert_no_error(error);
    g_setenv("PATH", path, TRUE);
    GSubprocess *process = test_run_start(words);
    g_setenv("PATH", before, TRUE);
    TestRun result = test_run_finish(process);
    g_assert_cmpint(result.status, ==, 1);
    test_scene_says(result.err,
                    "run: rank 0: what it has to say\n|\nforeshard run: rank 1 was killed by "
                    "signal 9 (Killed|; the others have been ended\n");
    test_run_clear(&result);
    g_unlink(mpirun);
    test_scene_leave(&scene);
}

/* No other rank is left to speak. */
static void the_only_rank_is_named(void) {
    TestScene scene = test_scene_set();
    g_autofree char *words =
        g_strdup_printf("run gpt-toy -n 1 --steps 1000000 --trace %s", scene.trace);
    GSubprocess *process = test_run_start(words);
    kill_rank(scene.trace, 0);
    test_scene_ends(&scene, process, 1,
                    "rank 0 was killed by signal 9 (Killed| step |, instruction |, op ");
    test_scene_leave(&scene);
}

/* The one process between foreshard and the ranks. */
static int starter_of_ranks(GSubprocess *process, const char *trace) {
    int self = atoi(g_subprocess_get_identifier(process)), starter = 0;
    g_autoptr(GArray) ranks = test_scene_processes(trace, "OMPI_COMM_WORLD_RANK=");
    g_autoptr(GArray) all = test_scene_processes(trace, "PATH=");
    for (guint i = 0; i < all->len; i++) {
        int pid = g_array_index(all, int, i);
        bool is_rank = pid == self;
        for (guint r = 0; r < ranks->len; r++) {
            is_rank |= pid == g_array_index(ranks, int, r);
        }
        starter = is_rank ? starter : pid;
    }
    g_assert_cmpint(starter, >, 0);
    return starter;
}

static void a_killed_mpirun_is_named(void) {
    TestScene scene = test_scene_set();
    g_autofree char *words =
        g_strdup_printf("run gpt-toy -n 2 --steps 1000000 --trace %s", scene.trace);
    GSubprocess *process = test_run_start(words);
    await_rank(scene.trace, 1);
    g_assert_cmpint(kill(starter_of_ranks(process, scene.trace), SIGKILL), ==, 0);
    await_no_rank(scene.trace); /* each sees for itself that it is alone */
    test_scene_ends(&scene, process, 1,
                    "what started the ranks was killed by signal 9 (Killed), which ends");
    test_scene_leave(&scene);
}

/* A million steps of the toy under a bare mpirun, of which one rank is killed. */
static void named_under_mpirun(unsigned ranks, unsigned killed, const char *expected) {
    TestScene scene = test_scene_set();
    const char *foreshard = test_run_program;
    g_autofree char *plan = g_strconcat(scene.folder, "/x.plan", NULL);
    g_autofree char *exec = test_scene_exec();
    g_autofree char *words = g_strdup_printf(
        "--oversubscribe -n %u %s %s --steps 1000000 --trace %s", ranks, exec, plan, scene.trace);
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    test_run_ok("plan gpt-toy -n %u -o %s", ranks, plan);
    test_run_program = mpirun;
    GSubprocess *process = test_run_start(words);
    test_run_program = foreshard;
    kill_rank(scene.trace, killed);
    test_scene_ends(&scene, process, 1, expected);
    g_unlink(plan);
    test_scene_leave(&scene);
}

/* Each rank has a warden there, and so has the last one of a machine. */
static void wardens_name_a_killed_rank(void) {
    named_under_mpirun(3, 1,
                       "rank 1 was killed by signal 9 (Killed| step |, instruction |, op |the "
                       "others have been ended");
    named_under_mpirun(1, 0, "rank 0 was killed by signal 9 (Killed| step |, instruction |, op ");
}

/* As by Ctrl-C, a job's manager, a closed terminal; and when foreshard itself is killed, it can say
 * nothing, but its ranks end. */
static void signals_end_all_ranks(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    TestScene scene = test_scene_set();
    g_autofree char *words =
        g_strdup_printf("run gpt-toy -n 2 --steps 1000000 --trace %s", scene.trace);
    /* As a rank leaves it that is killed while it writes: it goes, too. */
    g_autofree char *aside = g_strconcat(scene.trace, ".tmp-abcdef", NULL);
    g_assert_true(g_file_set_contents(aside, "a half one", -1, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(signals); i++) {
        GSubprocess *process = test_run_start(words);
        await_rank(scene.trace, 1);
        g_test_message("signal %d", signals[i]);
        g_subprocess_send_signal(process, signals[i]);
        if (signals[i] != SIGKILL) {
            test_scene_ends(&scene, process, 1, "interrupted; every rank has been ended");
        } else {
            g_assert_true(g_subprocess_wait(process, NULL, NULL));
            await_no_rank(scene.trace);
            g_object_unref(process);
        }
    }
    test_scene_leave(&scene);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    test_run_program = argv[1];
    clusters = argv[2];
    g_test_add_func("/exec/killed/a killed rank is named", a_killed_rank_is_named);
    g_test_add_func("/exec/killed/a death in two lines is named", a_death_in_two_lines_is_named);
    g_test_add_func("/exec/killed/a single rank is named", the_only_rank_is_named);
    g_test_add_func("/exec/killed/a killed mpirun is named", a_killed_mpirun_is_named);
    g_test_add_func("/exec/killed/wardens name a killed rank", wardens_name_a_killed_rank);
    g_test_add_func("/exec/killed/signals end all ranks", signals_end_all_ranks);
    return g_test_run();
}
