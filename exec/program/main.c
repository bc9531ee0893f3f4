/* exec/program/main.c - `foreshard-exec`: plays a plan, one process a rank.
 *
 * Ranks come from mpirun or srun (on several machines, too), or from this program itself
 * (--local-ranks); alone there is one. Rank 0 speaks: one line a step while it goes on, a summary
 * at the end, the trace of all ranks. `foreshard run` starts this program.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "exec/comm/fork.h"
#include "exec/comm/mpi.h"
#include "exec/comm/rehearse.h"
#include "exec/error.h"
#include "exec/program/gpu.h"
#include "exec/program/run.h"
#include "exec/watch/patience.h"
#include "kernels/host/runtime.h"
#include "plan/files/file.h"
#include "plan/mesh.h"
#include "plan/text/text.h"

/* ---- what can be found wrong before it plays ------------------------------------------------ */

/* Said before hours of training, not after. */
static bool can_write(const char *path, GError **error) {
    int why = plan_file_may_write(path);
    if (why) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_OUTPUT, "cannot write %s: %s", path,
                    g_strerror(why));
    }
    return !why;
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

static ExecData *open_data(const ExecRun *run, const char *path, GError **error) {
    return run->plan->n_calls > 0
               ? exec_data_open_tensors(path, error)
               : exec_data_open(path, (unsigned)run->options->token_bytes, error);
}

/* All that can be found wrong with what was asked for before it is played. */
static bool read_input(ExecRun *run, const char *path, Input *input, GError **error) {
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

static int run_plan(ExecRun *run, const char *path) {
    const ExecArguments *options = run->options;
    g_autoptr(GError) error = NULL;
    g_auto(Input) input = {0};
    int status =
        exec_run_complain_of_input(run, read_input(run, path, &input, &error) ? NULL : error);
    if (status) {
        return status;
    }
    uint32_t steps = (uint32_t)options->steps;
    exec_results_init(&run->results, run->plan, &run->comm, steps);
    g_autofree char *rank = exec_run_rank_text(run);
    run->watchdog = exec_watchdog_new((unsigned)options->watchdog, run->device->opening_s, rank,
                                      exec_run_explain, run);
    g_autoptr(ExecPlay) play =
        run->device->open(run->plan, &run->comm, steps, &input.options, &error);
    if (!play || !exec_run_train(run, play, &error) || !exec_run_leave_results(run, play, &error)) {
        bool lane_failed;
        status = exec_run_complain_of_play(run, play, error, &lane_failed);
        if (play && play->out_of_memory && options->trace && !lane_failed) {
            exec_run_leave_oom(run, play);
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
static int print_costs(ExecRun *run) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) lines = g_string_new(NULL);
    g_autofree char *rank = exec_run_rank_text(run);
    run->about = "the costs of calls, copies and collectives are measured";
    Plan line = plan_line(run->comm.world);
    ExecCosts costs = {&run->comm, run->options->comm, lines, run->comm.rank ? NULL : stdout,
                       exec_watchdog_new((unsigned)run->options->watchdog, run->device->opening_s,
                                         rank, exec_run_explain, run)};
    bool ok = run->comm.join(run->comm.self, &line, &error) && run->device->costs(&costs, &error);
    exec_watchdog_free(costs.watchdog);
    return ok ? 0 : exec_run_complain(run, error);
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

/* A BLAS that does not know the processor multiplies at a fifth of its rate. It cannot be told once
 * it is loaded, so this program begins anew; ranks that it forks are told as well. */
static void begin_with_better_kernels(char **argv) {
    static const char name[] = "OPENBLAS_CORETYPE";
    const char *core = kernel_blas_better_core();
    if (core && !g_getenv(name) && g_setenv(name, core, TRUE)) {
        execv("/proc/self/exe", argv); /* if that fails it goes on, and is slow */
    }
}

int main(int argc, char **argv) {
    begin_with_better_kernels(argv);
    g_auto(ExecArguments) options = EXEC_ARGUMENTS_DEFAULT;
    g_autoptr(GError) error = NULL;
    ExecRun run = {.options = &options, .about = "the device is opened, the ranks find each other"};
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it, as it is inherited, hears of no child's end */
    exec_patience_mind();
    if (!exec_arguments_read(&argc, &argv, &options, &error) || /* --help needs no MPI */
        !(run.device = find_device(options.device, &error))) {
        fprintf(stderr, "foreshard-exec: %s\n", error->message);
        return exec_run_status(error);
    }
    if (!bind_ranks(&options, argv[1], &argc, &argv, &run.comm, &error)) {
        return exec_run_complain(&run, error);
    }
    kernel_set_threads(options.threads);
    int status = options.costs ? print_costs(&run) : run_plan(&run, argv[1]);
    if (status) {
        run.comm.abort(run.comm.self, status);
    }
    run.comm.close(run.comm.self);
    return 0;
}
