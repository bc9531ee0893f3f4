/* exec/program/train.c - see run.h: plays a plan to its end, and leaves what came of it. */
#include <limits.h>
#include <stdio.h>

#include "exec/error.h"
#include "exec/program/run.h"

static void say_step(const ExecResults *results, unsigned step) {
    printf("step %-4u ", step);
    if (!results->comm->rehearsed) {
        printf("loss %-11.9g ", results->losses[step]);
    }
    printf("%10.3f ms\n", results->step_ms[step]);
    fflush(stdout);
}

/* After each step: its time, and its loss averaged over ranks. */
static bool report_step(ExecRun *run, const ExecPlay *play, GError **error) {
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

static bool report_until(ExecRun *run, ExecPlay *play, int32_t step, GError **error) {
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

static void set_out_of_memory(const ExecRun *run, const ExecPlay *play, GError **error) {
    const char *trace = run->options->trace;
    g_autofree char *path = trace ? exec_results_oom_path(play, trace) : NULL;
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "out of memory: %s%s%s", play->out_of_memory,
                path ? "; the trace up to there: " : "", path ? path : "");
}

/* The host runs ahead of the lanes, as it would on a GPU. When a step begins, the one before the
 * last is long over (a queue is shorter than a step) or, in the smallest networks, is waited
 * for. */
static bool play_on(ExecRun *run, ExecPlay *play, GError **error) {
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

bool exec_run_train(ExecRun *run, ExecPlay *play, GError **error) {
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

void exec_run_explain(gpointer self, GString *text) {
    const ExecRun *run = self;
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

/* ---- what it leaves ------------------------------------------------------------------------- */

/* All write into one file, which rank 0 makes, and names when all are done. */
static bool save_weights(const ExecRun *run, ExecPlay *play, GError **error) {
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

bool exec_run_leave_results(const ExecRun *run, ExecPlay *play, GError **error) {
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

void exec_run_leave_oom(const ExecRun *run, ExecPlay *play) {
    g_autoptr(GError) error = NULL;
    if (!play->device->drain(play, &error) ||
        !exec_results_write_oom(&run->results, play, run->options->trace, &error)) {
        exec_run_complain(run, error);
    }
}
