/* A rank that has given up waits for nobody under MPI, whatever it is in. Started by itself, this
 * starts two ranks of itself; one of them never does what the other waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/comm/mpi.h"
#include "tests/exec/runs.h"

enum {
    AS_IT_SHOULD = 3, /* statuses of the rank that waits */
    OTHERWISE = 4
};

/* ---- a rank --------------------------------------------------------------------------------- */

static gpointer gives_up_soon(gpointer data) {
    const ExecComm *comm = data;
    g_usleep(G_USEC_PER_SEC / 4);
    comm->give_up(comm->self);
    return NULL;
}

static bool wait_in(const char *call, const ExecComm *comm, GError **error) {
    g_autofree char *text = NULL;
    double number = 1;
    if (g_str_equal(call, "collect")) {
        return comm->collect(comm->self, 1, "", &text, error);
    }
    if (g_str_equal(call, "share")) {
        return comm->share(comm->self, &number, sizeof number, error);
    }
    return g_str_equal(call, "mean") ? comm->mean(comm->self, &number, 1, error)
                                     : comm->barrier(comm->self, error);
}

/* Rank 0 hands nothing over, rank 1 receives nothing. The ranks end without MPI's leave: what was
 * begun is still under way. */
static void be_a_rank(int argc, char **argv) G_GNUC_NORETURN;
static void be_a_rank(int argc, char **argv) {
    const char *call = argv[1];
    g_autoptr(GError) error = NULL;
    ExecComm comm;
    if (!exec_mpi_open(&argc, &argv, NULL, NULL, &comm, &error)) {
        _exit(OTHERWISE);
    }
    if (comm.rank != (g_str_equal(call, "share") ? 1 : 0)) {
        g_usleep(30 * G_USEC_PER_SEC);
        _exit(OTHERWISE);
    }
    g_thread_unref(g_thread_new("gives up", gives_up_soon, &comm));
    bool ended_well = wait_in(call, &comm, &error);
    fprintf(stderr, "%s: %s\n", call, ended_well ? "ended well" : error->message);
    _exit(!ended_well && strstr(error->message, "since this rank has given up") ? AS_IT_SHOULD
                                                                                : OTHERWISE);
}

/* ---- the test ------------------------------------------------------------------------------- */

static const char *self;

static void ends_in(gconstpointer call) {
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    g_autofree char *words =
        g_strdup_printf("--oversubscribe -n 2 %s %s", self, (const char *)call);
    gint64 start = g_get_monotonic_time();
    test_run_program = mpirun;
    TestRun run = test_run_finish(test_run_start(words));
    g_test_message("%s", run.err);
    g_assert_cmpint(run.status, ==, AS_IT_SHOULD);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 15 * G_USEC_PER_SEC);
    test_run_clear(&run);
}

int main(int argc, char **argv) {
    if (g_getenv("OMPI_COMM_WORLD_RANK")) {
        be_a_rank(argc, argv);
    }
    g_test_init(&argc, &argv, NULL);
    self = argv[0];
    g_test_add_data_func("/exec/given-up/in collect", "collect", ends_in);
    g_test_add_data_func("/exec/given-up/in share", "share", ends_in);
    g_test_add_data_func("/exec/given-up/in mean", "mean", ends_in);
    g_test_add_data_func("/exec/given-up/in barrier", "barrier", ends_in);
    return g_test_run();
}
