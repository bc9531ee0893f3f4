/* exec/main.c - `foreshard-exec`: plays a plan, one process a rank.
 *
 * Ranks come from mpirun or srun (on several machines, too), or from this program itself
 * (--local-ranks); alone there is one. Rank 0 speaks: one line a step while it goes on, a summary
 * at the end, the trace of all ranks. `foreshard run` starts this program.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/arguments.h"
#include "exec/comm/fork.h"
#include "exec/comm/mpi.h"
#include "exec/comm/rehearse.h"
#include "exec/device.h"
#include "exec/error.h"
#include "exec/gpu.h"
#include "exec/results.h"
#include "exec/watch/patience.h"
#include "exec/watch/watchdog.h"
#include "kernels/host/runtime.h"
#include "plan/text/text.h"

typedef struct {
    const ExecArguments *options;
    const Plan *plan;
    const ExecDevice *device;
    ExecComm comm;
    ExecResults results;
    const char *about;  /* what it does; NULL: it plays */
    PlanPlayer *player; /* NULL until it plays */
    const ExecPlay *play;
    ExecWatchdog *watchdog; /* looks at what is above */
} Run;

static int status_of(const GError *error) {
    bool input = error->domain == PLAN_ERROR || error->domain == G_OPTION_ERROR ||
                 g_error_matches(error, EXEC_ERROR, EXEC_ERROR_INPUT);
    return input ? 2 : 1;
}

/* "rank 3"; where a plan that has such a rank has been read, also which stage that is. */
static char *rank_text(const Run *run) {
    uint32_t rank = run->comm.rank;
    return run->plan && rank < run->plan->world ? plan_rank_text(run->plan, rank)
                                                : g_strdup_printf("rank %u", rank);
}

static int say(const Run *run, const GError *error) {
    g_autofree char *rank = rank_text(run);
    fprintf(stderr, "foreshard-exec: %s: %s\n", rank, error->message);
    return status_of(error);
}

/* Input that is found wrong only in use (a token, what a GPU lacks) may be found by several ranks
 * at about the same time. The others give rank 0, which then ends all, two seconds to report it. */
static int complain(const Run *run, const GError *error) {
    bool may_be_shared = status_of(error) == 2 && !exec_results_speaks(&run->comm);
    for (unsigned tenths = 0; tenths < 20 && may_be_shared; tenths++) {
        exec_watchdog_beat(run->watchdog);
        g_usleep(G_USEC_PER_SEC / 10);
    }
    return say(run, error);
}

/* What is wrong with the input, or with where output goes, every rank finds before it plays. Rank 0
 * reports it for all, and tells them so: they then wait to be ended. A rank that alone has found
 * something learns that rank 0 has not, and reports it itself. wrong NULL: this rank has found
 * nothing. Returns the status to end with; 0: go on. */
static int complain_of_input(const Run *run, const GError *wrong) {
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

/* ---- weights -------------------------------------------------------------------------------- */

/* All write into one file, which rank 0 makes, and names when all are done. */
static bool save_weights(const Run *run, ExecPlay *play, GError **error) {
    const ExecComm *comm = &run->comm;
    const char *path = run->options->save;
    g_autoptr(ExecWeightsFile) file = NULL;
    if (comm->rank == 0 && !(file = exec_weights_make(path, run->plan, error))) {
        return false;
    }
    char aside[PATH_MAX] = "";
    if (file) {
        g_strlcpy(aside, exec_weights_aside(file), sizeof aside);
    }
    if (!comm->share(comm->self, aside, sizeof aside, error) ||
        (comm->rank && !(file = exec_weights_join(aside, run->plan, error)))) {
        return false;
    }
    return exec_play_save(play, file, run->watchdog, error) &&
           (comm->rank || exec_weights_name(file, error));
}

/* Said before hours of training, not after. */
static bool can_write(const char *path, GError **error) {
    g_autofree char *folder = g_path_get_dirname(path);
    bool is_folder = g_file_test(path, G_FILE_TEST_IS_DIR);
    if (!is_folder && g_access(folder, W_OK) == 0) {
        return true;
    }
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_OUTPUT, "cannot write %s: %s", path,
                g_strerror(is_folder ? EISDIR : errno));
    return false;
}

/* Ranks write their parts of the weights side by side, which only a regular file can take. */
static bool can_save(const char *path, GError **error) {
    if (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_DIR) &&
        !g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "cannot save weights to %s, which is no regular file; name one", path);
        return false;
    }
    return can_write(path, error);
}

/* The numbers of such weights are nowhere as numbers. */
static bool has_numbers(const Plan *plan, GError **error) {
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (plan->parameters[p].four_bits) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "weights in 4 bits are not saved; leave out --save, or plan with "
                        "lora_base=model");
            return false;
        }
    }
    return true;
}

/* ---- playing -------------------------------------------------------------------------------- */

static void say_step(const ExecResults *results, unsigned step) {
    printf("step %-4u ", step);
    if (!results->comm->rehearsed) {
        printf("loss %.9g   ", results->losses[step]);
    }
    printf("%.3f ms\n", results->step_ms[step]);
    fflush(stdout);
}

/* After each step: its time, and its loss averaged over ranks. */
static bool report_step(Run *run, const ExecPlay *play, GError **error) {
    ExecResults *results = &run->results;
    if (!exec_results_add_step(results, play, error)) {
        return false;
    }
    exec_watchdog_beat(run->watchdog);
    if (exec_results_speaks(&run->comm) && !run->options->json) {
        say_step(results, results->n_steps - 1);
    }
    return true;
}

static bool report_until(Run *run, ExecPlay *play, int32_t step, GError **error) {
    while ((int32_t)run->results.n_steps < step) {
        while (!exec_play_step_has_ended(play, run->results.n_steps)) {
            if (!play->device->healthy(play, error)) {
                return false;
            }
            g_usleep(200);
        }
        if (!report_step(run, play, error)) {
            return false;
        }
    }
    return true;
}

static void set_out_of_memory(const Run *run, const ExecPlay *play, GError **error) {
    const char *trace = run->options->trace;
    g_autofree char *path = trace ? exec_results_oom_path(play, trace) : NULL;
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "out of memory: %s%s%s", play->out_of_memory,
                path ? "; the trace up to there: " : "", path ? path : "");
}

/* The host runs ahead of the lanes, as it would on a GPU. When a step begins, the one before the
 * last is long over (a queue is shorter than a step) or, in the smallest networks, is waited
 * for. */
static bool play_on(Run *run, ExecPlay *play, GError **error) {
    PlanPlayer *player = run->player;
    PlanAnswer answer = PLAN_DONE;
    while (answer == PLAN_DONE && !plan_player_at_end(player)) {
        const PlanPosition *at = plan_player_position(player);
        exec_watchdog_beat(run->watchdog);
        exec_doing_begin(run->comm.doing, EXEC_DOING_HOST, exec_doing_word(at));
        answer = plan_player_step(player, error);
        at = plan_player_position(player);
        if (answer == PLAN_DONE && at->index == 0 && at->step > 1 &&
            !report_until(run, play, at->step - 1, error)) {
            return false;
        }
    }
    if (answer == PLAN_STOPPED) {
        set_out_of_memory(run, play, error);
    }
    return answer == PLAN_DONE && play->device->drain(play, error) &&
           report_until(run, play, run->options->steps, error);
}

/* The player stays: the watchdog may be looking at it. */
static bool train(Run *run, ExecPlay *play, GError **error) {
    run->play = play;
    run->player = plan_player_new(run->plan, plan_role_of_rank(run->plan, run->comm.rank),
                                  (uint32_t)run->options->steps, run->device->instructions, play);
    run->about = NULL;
    if (!play_on(run, play, error)) {
        return false;
    }
    run->about = "the results are handed on";
    exec_watchdog_beat(run->watchdog);
    return true;
}

/* Where the host stands; called from the watchdog's thread while this one does not move. */
static void explain(gpointer self, GString *text) {
    const Run *run = self;
    if (run->about) {
        g_string_append(text, run->about);
        return;
    }
    if (plan_player_at_end(run->player)) {
        g_string_append(text, "the host waits for its last steps to end");
    } else {
        uint64_t here = exec_doing_word(plan_player_position(run->player));
        g_string_append(text, "the host is at");
        exec_doing_tell_place(run->plan, run->comm.rank, here, text);
    }
    if (run->device->explain) {
        run->device->explain(run->play, text);
    }
}

static bool leave_results(const Run *run, ExecPlay *play, GError **error) {
    const ExecArguments *options = run->options;
    if ((options->trace &&
         !exec_results_write_trace(&run->results, play, options->trace, run->watchdog, error)) ||
        (options->save && !save_weights(run, play, error))) {
        return false;
    }
    if (exec_results_speaks(&run->comm)) {
        (options->json ? exec_results_print_json : exec_results_print_summary)(&run->results, play);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                    "trained to the end, but the output cannot be written");
        return false;
    }
    return true;
}

/* If a lane has failed, that is the cause of whatever the host complains of, even of missing
 * memory, since a broken device answers so (memory/source.h). */
static int complain_of_play(const Run *run, ExecPlay *play, const GError *error,
                            bool *ret_lane_failed) {
    g_autoptr(GError) cause = NULL;
    *ret_lane_failed = play && !play->device->healthy(play, &cause);
    return complain(run, *ret_lane_failed ? cause : error);
}

/* Once it has been said: what the lanes have been given ends first, and other ranks may be gone. */
static void leave_oom(const Run *run, ExecPlay *play) {
    g_autoptr(GError) error = NULL;
    if (!play->device->drain(play, &error) ||
        !exec_results_write_oom(&run->results, play, run->options->trace, &error)) {
        complain(run, error);
    }
}

/* ---- a plan --------------------------------------------------------------------------------- */

typedef struct {
    Plan *plan;
    ExecWeights *weights;
    ExecData *data;
    ExecPace *pace;
    ExecOptions options; /* of the play; it borrows the others */
} Input;

static void input_clear(Input *input) {
    exec_pace_free(input->pace);
    exec_data_free(input->data);
    exec_weights_free(input->weights);
    plan_free(input->plan);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Input, input_clear)

static ExecData *open_data(const Run *run, const char *path, GError **error) {
    return run->plan->n_calls > 0
               ? exec_data_open_tensors(path, error)
               : exec_data_open(path, (unsigned)run->options->token_bytes, error);
}

/* All that can be found wrong with what was asked for before it is played. */
static bool read_input(Run *run, const char *path, Input *input, GError **error) {
    const ExecArguments *asked = run->options;
    run->plan = input->plan = plan_read_file(path, error);
    if (!run->plan ||
        (asked->rehearse >= 0 &&
         !exec_rehearse_open(run->plan, (uint32_t)asked->rehearse, &run->comm, error)) ||
        (asked->save && (!can_save(asked->save, error) || !has_numbers(run->plan, error))) ||
        (asked->trace && !can_write(asked->trace, error)) ||
        (asked->load && !(input->weights = exec_weights_open(asked->load, run->plan, error))) ||
        (asked->data && !(input->data = open_data(run, asked->data, error))) ||
        (asked->pace && !(input->pace = exec_pace_read(asked->pace, run->plan, error)))) {
        return false;
    }
    input->options = (ExecOptions){.seed = (uint64_t)asked->seed,
                                   .memory_limit_bytes = (uint64_t)asked->memory_limit,
                                   .keep_rows = asked->trace != NULL,
                                   .no_op_times = asked->no_op_times,
                                   .comm = asked->comm,
                                   .weights = input->weights,
                                   .data = input->data,
                                   .pace = input->pace};
    return exec_play_fits(run->device, run->plan, &run->comm, &input->options, error);
}

static int run_plan(Run *run, const char *path) {
    const ExecArguments *options = run->options;
    g_autoptr(GError) error = NULL;
    g_auto(Input) input = {0};
    int status = complain_of_input(run, read_input(run, path, &input, &error) ? NULL : error);
    if (status) {
        return status;
    }
    uint32_t steps = (uint32_t)options->steps;
    exec_results_init(&run->results, run->plan, &run->comm, steps);
    g_autofree char *rank = rank_text(run);
    run->watchdog =
        exec_watchdog_new((unsigned)options->watchdog, run->device->opening_s, rank, explain, run);
    g_autoptr(ExecPlay) play =
        run->device->open(run->plan, &run->comm, steps, &input.options, &error);
    if (!play || !train(run, play, &error) || !leave_results(run, play, &error)) {
        bool lane_failed;
        status = complain_of_play(run, play, error, &lane_failed);
        if (play && play->out_of_memory && options->trace && !lane_failed) {
            leave_oom(run, play);
        }
        run->comm.abort(run->comm.self, status); /* lanes may hang: nothing is waited for */
    }
    run->about = "the device is closed";
    exec_watchdog_beat(run->watchdog);
    g_clear_pointer(&play, exec_play_free); /* ranks may wait for one another here, too */
    exec_watchdog_free(run->watchdog);
    plan_player_free(run->player); /* which the watchdog has looked at */
    exec_results_clear(&run->results);
    return 0;
}

/* Without a plan: all ranks are on one axis. */
static int print_costs(Run *run) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) lines = g_string_new(NULL);
    g_autofree char *rank = rank_text(run);
    run->about = "the costs of calls, copies and collectives are measured";
    Plan line = plan_line(run->comm.world);
    ExecCosts costs = {&run->comm, run->options->comm, lines,
                       exec_watchdog_new((unsigned)run->options->watchdog, run->device->opening_s,
                                         rank, explain, run)};
    bool ok = run->comm.join(run->comm.self, &line, &error) && run->device->costs(&costs, &error);
    exec_watchdog_free(costs.watchdog);
    if (!ok) {
        return complain(run, error);
    }
    if (run->comm.rank == 0) {
        fputs(lines->str, stdout);
    }
    return 0;
}

static const ExecDevice *find_device(const char *name, GError **error) {
    if (!name || g_str_equal(name, exec_host.name)) {
        return &exec_host;
    }
    if (g_str_equal(name, "cuda")) {
        return exec_gpu_device(error);
    }
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                "there is no device '%s' here; devices are host and cuda", name);
    return NULL;
}

/* plan_path: for whoever has to say where a rank was that has died. */
static bool bind_ranks(const ExecArguments *options, const char *plan_path, int *argc, char ***argv,
                       ExecComm *ret_comm, GError **error) {
    if (options->rehearse >= 0) { /* the plan says of how many, once it is read */
        *ret_comm = exec_comm_alone;
        return true;
    }
    if (options->local_ranks) {
        return exec_fork((unsigned)options->local_ranks, plan_path, ret_comm, error);
    }
#ifdef EXEC_MPI
    return exec_mpi_open(argc, argv, options->black_box, plan_path, ret_comm, error);
#else
    *ret_comm = exec_comm_alone;
    return true;
#endif
}

int main(int argc, char **argv) {
    g_auto(ExecArguments) options = EXEC_ARGUMENTS_DEFAULT;
    g_autoptr(GError) error = NULL;
    Run run = {.options = &options, .about = "the device is opened, the ranks find each other"};
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it, as it is inherited, hears of no child's end */
    exec_patience_mind();
    if (!exec_arguments_read(&argc, &argv, &options, &error) || /* --help needs no MPI */
        !(run.device = find_device(options.device, &error))) {
        fprintf(stderr, "foreshard-exec: %s\n", error->message);
        return status_of(error);
    }
    if (!bind_ranks(&options, argv[1], &argc, &argv, &run.comm, &error)) {
        return complain(&run, error);
    }
    kernel_set_threads(options.threads);
    int status = options.costs ? print_costs(&run) : run_plan(&run, argv[1]);
    if (status) {
        run.comm.abort(run.comm.self, status);
    }
    run.comm.close(run.comm.self);
    return 0;
}
