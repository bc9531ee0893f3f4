/* exec/program/complain.c - see run.h: what went wrong is said once, by whom it concerns. */
#include <stdio.h>

#include "exec/error.h"
#include "exec/program/run.h"
#include "plan/mesh.h"

int exec_run_status(const GError *error) {
    bool input = error->domain == PLAN_ERROR || error->domain == G_OPTION_ERROR ||
                 g_error_matches(error, EXEC_ERROR, EXEC_ERROR_INPUT);
    return input ? 2 : 1;
}

char *exec_run_rank_text(const ExecRun *run) {
    uint32_t rank = run->comm.rank;
    return run->plan && rank < run->plan->world ? plan_rank_text(run->plan, rank)
                                                : g_strdup_printf("rank %u", rank);
}

static int say(const ExecRun *run, const GError *error) {
    g_autofree char *rank = exec_run_rank_text(run);
    fprintf(stderr, "foreshard-exec: %s: %s\n", rank, error->message);
    return exec_run_status(error);
}

int exec_run_complain(const ExecRun *run, const GError *error) {
    bool may_be_shared = exec_run_status(error) == 2 && !exec_results_speaks(&run->comm);
    for (unsigned tenths = 0; tenths < 20 && may_be_shared; tenths++) {
        exec_watchdog_beat(run->watchdog);
        g_usleep(G_USEC_PER_SEC / 10);
    }
    return say(run, error);
}

int exec_run_complain_of_input(const ExecRun *run, const GError *wrong) {
    const ExecComm *comm = &run->comm;
    bool speaks = exec_results_speaks(comm);
    int said = wrong && speaks ? say(run, wrong) : 0; /* the status that it comes to */
    g_autoptr(GError) error = NULL;
    if (!comm->share(comm->self, &said, sizeof said, &error)) {
        return say(run, error);
    }
    if (said && !speaks) {
        comm->barrier(comm->self, NULL);
    } else if (wrong && !said) {
        said = say(run, wrong);
    }
    return said;
}

int exec_run_complain_of_play(const ExecRun *run, ExecPlay *play, const GError *error,
                              bool *ret_lane_failed) {
    g_autoptr(GError) cause = NULL;
    *ret_lane_failed = play && !play->device->healthy(play, &cause);
    return exec_run_complain(run, *ret_lane_failed ? cause : error);
}
