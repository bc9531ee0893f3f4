/* cli/commands/run.c - `foreshard run`: starts foreshard-exec on local ranks and watches over it.
 *
 * It writes the plan where the ranks can read it, starts them (cli/launch/ranks.h), passes on what
 * rank 0 says, line by line, and turns the pages that mpirun prints about a dead rank into one
 * line. (Were its own standard output the ranks', nobody would learn that it cannot be written:
 * mpirun drops what it cannot pass on.)
 */
#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/launch/pace.h"
#include "cli/launch/ranks.h"
#include "cli/launch/scratch.h"
#include "cli/options/command.h"
#include "cli/say/prose.h"
#include "cli/source/plan-source.h"
#include "exec/shared-options.h"
#include "exec/watch/black-box.h"
#include "models/network.h"
#include "plan/files/file.h"
#include "trace/ended.h"

typedef struct {
    gint steps, seed, token_bytes, watchdog;
    gint64 memory_limit;
    char *trace, *device, *comm, *load, *save, *data, *pace;
    gboolean json, verbose, no_op_times;
} Options;

typedef struct {
    GSubprocess *process;
    GMainLoop *loop;
    GDataInputStream *said, *errors;
    unsigned n_open; /* of these two */
    bool verbose, json;
    bool said_why; /* a rank has said what is wrong */
    GString *page; /* of mpirun's, from where it names a rank, in one line */
    int dead_rank, dead_signal;
    int interrupted;       /* the signal that this program got */
    int status, killed_by; /* of what started the ranks; a signal, or 0 */
} Watch;

/* ---- listening ------------------------------------------------------------------------------ */

/* Who died of what, once mpirun's page has said so. Open MPI 5 breaks such a page's lines anywhere
 * behind the rank; it ends with dashes. */
static bool hears_of_death(Watch *watch, const char *line) {
    int rank, sig;
    const char *death = strstr(line, "process rank ");
    if (death || g_str_has_prefix(line, "-----")) {
        g_string_assign(watch->page, death ? death : "");
    } else if (watch->page->len) {
        g_string_append_printf(watch->page, " %s", line);
    }
    const char *by = strstr(watch->page->str, "exited on signal ");
    if (!by || sscanf(watch->page->str, "process rank %d", &rank) != 1 ||
        sscanf(by, "exited on signal %d", &sig) != 1) {
        return false;
    }
    watch->dead_rank = rank;
    watch->dead_signal = sig;
    g_string_truncate(watch->page, 0);
    return true;
}

/* Ranks' own messages and mpirun's word on who died; the rest of mpirun's pages only when asked. */
static void hear(Watch *watch, const char *line) {
    const char *own = cli_ranks_own_words(line);
    if (own) {
        if (!watch->said_why || watch->verbose) {
            cli_complain(CLI_FAILED, "%s", own);
        }
        watch->said_why = true;
    } else if (!hears_of_death(watch, line) && watch->verbose) {
        fprintf(stderr, "%s\n", line);
    }
}

static void on_line(GObject *source, GAsyncResult *result, gpointer data) {
    Watch *watch = data;
    GDataInputStream *from = G_DATA_INPUT_STREAM(source);
    g_autofree char *line = g_data_input_stream_read_line_finish(from, result, NULL, NULL);
    if (!line) {
        if (--watch->n_open == 0) {
            g_main_loop_quit(watch->loop); /* every process that could write has gone */
        }
        return;
    }
    if (from == watch->said) {
        if (watch->json) {
            puts(line);
        } else {
            cli_say("%s\n", line);
        }
        fflush(stdout); /* whether that went well, main.c asks at the end: training goes on */
    } else {
        hear(watch, line);
    }
    g_data_input_stream_read_line_async(from, G_PRIORITY_DEFAULT, NULL, on_line, watch);
}

static GDataInputStream *listen(Watch *watch, GInputStream *pipe) {
    GDataInputStream *lines = g_data_input_stream_new(pipe);
    watch->n_open++;
    g_data_input_stream_read_line_async(lines, G_PRIORITY_DEFAULT, NULL, on_line, watch);
    return lines;
}

static gboolean on_signal(Watch *watch, int sig) {
    watch->interrupted = sig;
    g_subprocess_send_signal(watch->process, SIGTERM); /* mpirun ends its ranks */
    return G_SOURCE_CONTINUE;
}

static gboolean on_int(gpointer data) {
    return on_signal(data, SIGINT);
}

static gboolean on_term(gpointer data) {
    return on_signal(data, SIGTERM);
}

static gboolean on_hup(gpointer data) {
    return on_signal(data, SIGHUP);
}

/* ---- the run -------------------------------------------------------------------------------- */

/* The ranks may run elsewhere, so they get whole paths. */
static void add_path(GPtrArray *argv, const char *option, const char *path) {
    if (path) {
        g_autofree char *whole = g_canonicalize_filename(path, NULL);
        cli_ranks_add(argv, "--%s=%s", option, whole);
    }
}

static bool is_file(const char *data) {
    return data && !g_str_equal(data, "synthetic");
}

static GPtrArray *command_line(const Options *options, const Plan *plan, const CliScratch *scratch,
                               GError **error) {
    GPtrArray *argv = cli_ranks_command(plan->world, options->device, error);
    if (!argv) {
        return NULL;
    }
    cli_ranks_add(argv, "%s", scratch->plan);
    cli_ranks_add(argv, "--steps=%d", options->steps);
    cli_ranks_add(argv, "--seed=%d", options->seed);
    if (options->memory_limit) {
        cli_ranks_add(argv, "--memory-limit=%" G_GINT64_FORMAT, options->memory_limit);
    }
    add_path(argv, "trace", options->trace);
    add_path(argv, "pace", scratch->pace);
    add_path(argv, "black-box", scratch->black_box);
    add_path(argv, "load", options->load);
    add_path(argv, "save", options->save);
    if (is_file(options->data)) {
        add_path(argv, "data", options->data);
        cli_ranks_add(argv, "--token-bytes=%d", options->token_bytes);
    }
    if (options->json) {
        cli_ranks_add(argv, "--json");
    }
    if (options->comm) {
        cli_ranks_add(argv, "--comm=%s", options->comm);
    }
    if (options->no_op_times) {
        cli_ranks_add(argv, "--no-op-times");
    }
    cli_ranks_add(argv, "--watchdog=%d", options->watchdog);
    g_ptr_array_add(argv, NULL);
    return argv;
}

static bool watch_over(Watch *watch, GPtrArray *argv, GError **error) {
    g_autoptr(GSubprocessLauncher) launcher =
        cli_ranks_launcher(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE |
                           G_SUBPROCESS_FLAGS_STDIN_PIPE);
    watch->process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
    if (!watch->process) {
        return false;
    }
    watch->loop = g_main_loop_new(NULL, FALSE);
    watch->said = listen(watch, g_subprocess_get_stdout_pipe(watch->process));
    watch->errors = listen(watch, g_subprocess_get_stderr_pipe(watch->process));
    guint sources[] = {g_unix_signal_add(SIGINT, on_int, watch),
                       g_unix_signal_add(SIGTERM, on_term, watch),
                       g_unix_signal_add(SIGHUP, on_hup, watch)};
    g_main_loop_run(watch->loop);
    bool ok = g_subprocess_wait(watch->process, NULL, error);
    for (unsigned i = 0; i < G_N_ELEMENTS(sources); i++) {
        g_source_remove(sources[i]);
    }
    bool exited = g_subprocess_get_if_exited(watch->process);
    watch->status = exited ? g_subprocess_get_exit_status(watch->process) : CLI_FAILED;
    watch->killed_by = exited ? 0 : g_subprocess_get_term_sig(watch->process);
    g_object_unref(watch->said);
    g_object_unref(watch->errors);
    g_main_loop_unref(watch->loop);
    g_object_unref(watch->process);
    return ok;
}

/* It can no longer tell itself, but has noted where it was. */
static int speak_for_the_dead(const Watch *watch, const CliScratch *scratch, const Plan *plan) {
    uint32_t rank = (uint32_t)watch->dead_rank;
    g_autoptr(ExecBlackBox) box = exec_black_box_open(scratch->black_box, plan->world, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    bool knows = box && rank < plan->world;
    exec_doing_tell(knows ? exec_black_box_doing(box, rank) : NULL, knows ? plan : NULL, rank,
                    watch->dead_signal, text);
    return cli_complain(CLI_FAILED, "%s%s", text->str,
                        plan->world > 1 ? "; the others have been ended" : "");
}

/* The exit status, after having said why once. */
static int verdict(const Watch *watch, const CliScratch *scratch, const Plan *plan) {
    if (watch->interrupted) {
        return cli_complain(CLI_FAILED, "interrupted; every rank has been ended");
    }
    if (watch->dead_rank >= 0) {
        return speak_for_the_dead(watch, scratch, plan);
    }
    if (watch->killed_by && !watch->said_why) {
        cli_complain(CLI_FAILED,
                     "what started the ranks was killed by signal %d (%s), which ends them",
                     watch->killed_by, g_strsignal(watch->killed_by));
    } else if (watch->status && !watch->said_why) {
        cli_complain(CLI_FAILED, "the ranks ended with status %d; --verbose shows all words",
                     watch->status);
    }
    return watch->status == CLI_BAD_INPUT ? CLI_BAD_INPUT : watch->status ? CLI_FAILED : CLI_OK;
}

static int run_in(const CliScratch *scratch, const Options *options, const Plan *plan,
                  GError **error) {
    g_autoptr(GPtrArray) argv = command_line(options, plan, scratch, error);
    if (!argv) {
        return CLI_FAILED;
    }
    if (options->verbose) {
        g_autofree char *words = g_strjoinv(" ", (char **)argv->pdata);
        cli_complain(CLI_OK, "%s", words);
    }
    g_autoptr(GString) page = g_string_new(NULL);
    Watch watch = {
        .verbose = options->verbose, .json = options->json, .page = page, .dead_rank = -1};
    return watch_over(&watch, argv, error) ? verdict(&watch, scratch, plan) : CLI_FAILED;
}

static void say_file(const char *what, const char *path) {
    if (path) {
        cli_say("%-10s %s\n", what, path);
    }
}

/* Rotary angles cost the same however they are stretched, but teach something else. */
static void say_what_is_not_scaled(const Plan *plan) {
    g_autoptr(ModelNetwork) network =
        model_network_read(plan->network, strlen(plan->network), "network", NULL);
    if (network && network->rope_scaling) {
        cli_complain(CLI_OK,
                     "note: rotary angles are not scaled (rope_scaling = %s), so losses are those "
                     "of a network without it; memory and time are the same",
                     network->rope_scaling);
    }
}

/* As in PyTorch, whose FSDP warns of it: a pass overwrites the gradients that the host has. */
static void say_which_passes_count(const Plan *plan) {
    PlanStrategy strategy;
    if (plan_strategy_of_text(&strategy, plan->strategy, NULL) &&
        strategy.flavour == PLAN_FLAVOUR_FSDP1 && strategy.offload == PLAN_OFFLOAD_PARAMS &&
        strategy.accumulate > 1 && strategy.accumulate_sync == PLAN_SYNC_EVERY) {
        cli_complain(CLI_OK,
                     "note: of %" G_GUINT64_FORMAT " passes the last one alone is learned from, as "
                     "FSDP1 with offloaded parameters does; --accumulate-sync last learns from all",
                     strategy.accumulate);
    }
}

/* Of ranks that were ended while they wrote. */
static void clear_outputs(const Options *options, const Plan *plan) {
    if (options->save) {
        plan_file_clear(options->save);
    }
    if (options->trace) {
        plan_file_clear(options->trace);
    }
    for (unsigned rank = 0; options->trace && rank < plan->world; rank++) {
        g_autofree char *oom = trace_oom_path(options->trace, rank);
        plan_file_clear(oom);
    }
}

static int run(const Options *options, const Plan *plan, const ModelCluster *pace) {
    g_autoptr(GError) error = NULL;
    g_auto(CliScratch) scratch = {0};
    int status = cli_scratch_make(&scratch, plan, pace, &error)
                     ? run_in(&scratch, options, plan, &error)
                     : CLI_FAILED;
    if (error) {
        cli_complain(status, "%s", error->message);
    }
    if (status) {
        clear_outputs(options, plan);
    }
    if (!status && !options->json) {
        say_file("trace", options->trace);
        say_file("weights", options->save);
    }
    return status;
}

static const char *wrong_with(const Options *options) {
    bool known_bytes = options->token_bytes == 1 || options->token_bytes == 2;
    return options->steps < 1      ? "--steps takes a number from 1"
           : options->seed < 0     ? "--seed takes a number from 0"
           : options->watchdog < 0 ? "--watchdog takes a number of seconds, 0 for never"
           : !known_bytes          ? "--token-bytes is 1 or 2"
                                   : NULL;
}

/* Said before any rank is started, whose end mpirun waits for. */
static bool is_readable(const char *option, const char *path, GError **error) {
    bool is = !path || access(path, R_OK) == 0;
    if (!is) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "cannot read %s: %s; give %s a file that is there", path, g_strerror(errno),
                    option);
    }
    return is;
}

static bool options_are_sound(const Options *options, GError **error) {
    const char *wrong = wrong_with(options);
    if (wrong) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, wrong);
    }
    return !wrong && exec_option_is_limit(options->memory_limit, error) &&
           exec_option_is_file("--trace", options->trace, error) &&
           exec_option_is_file("--save", options->save, error) &&
           is_readable("--load", options->load, error) &&
           is_readable("--data", is_file(options->data) ? options->data : NULL, error) &&
           cli_ranks_know_device(options->device, error) &&
           exec_options_suit_device(options->device, options->comm, options->no_op_times, error);
}

/* Weights may go back to where they came from; nothing else is written over, nor is one output by
 * the other. */
static bool inputs_are_spared(const Options *options, const CliPlanSource *source,
                              const char *input, GError **error) {
    const char *const inputs[] = {input, options->data, options->pace, options->load};
    unsigned n = G_N_ELEMENTS(inputs);
    if (options->trace && options->save) {
        g_autofree char *trace = g_canonicalize_filename(options->trace, NULL);
        g_autofree char *save = g_canonicalize_filename(options->save, NULL);
        if (g_str_equal(trace, save)) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--trace and --save both name %s; give each a file of its own",
                        options->save);
            return false;
        }
    }
    return cli_plan_source_spares(source, options->trace, inputs, n, error) &&
           cli_plan_source_spares(source, options->save, inputs, n - 1, error);
}

static const CliCommand command = {
    .words = "(PLAN | NETWORK)",
    .least = 1,
    .most = 1,
    .give = "one PLAN or NETWORK",
    .summary =
        "Plays a plan for real: trains on local ranks, CPU or GPU, and measures memory and time "
        "meanwhile. CPU ranks are started by mpirun --oversubscribe (as root also "
        "--allow-run-as-root).",
    .examples =
        "Examples:\n"
        "  foreshard run gpt-toy -n 2\n"
        "  foreshard run gpt-toy.plan --steps 20 --trace measured.trace\n\n"
        "Exit status: 0 trained; 1 a rank failed, ran out of memory or was ended, or a file "
        "cannot be written; 2 the input cannot be read, or a setting is refused.",
};

int cmd_run(int argc, char **argv) {
    Options options = {.steps = 6, .seed = 1, .token_bytes = 1, .watchdog = 300};
    const GOptionEntry entries[] = {
        {"steps", 's', 0, G_OPTION_ARG_INT, &options.steps, "training steps (default 6)", "K"},
        {"trace", 't', 0, G_OPTION_ARG_FILENAME, &options.trace,
         "write what was measured to this file", "FILE"},
        {"data", 0, 0, G_OPTION_ARG_FILENAME, &options.data,
         "train on the tokens of this file (of a traced network: on its samples), in order "
         "(default: synthetic data)",
         "FILE"},
        {"token-bytes", 0, 0, G_OPTION_ARG_INT, &options.token_bytes,
         "bytes per token in --data: 1 (default) or 2, little-endian", "N"},
        {"load", 0, 0, G_OPTION_ARG_FILENAME, &options.load,
         "start from the weights in this safetensors file (named as in foreshard units)", "FILE"},
        {"save", 0, 0, G_OPTION_ARG_FILENAME, &options.save,
         "write the final weights to this file, as safetensors (no optimizer state)", "FILE"},
        {"pace", 0, 0, G_OPTION_ARG_STRING, &options.pace,
         "make each collective take at least as long as on this cluster (by sleeping), so that "
         "overlap and prefetch look as they would there",
         "CLUSTER"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &options.device,
         "what plays it: host (default) or cuda, with one GPU per rank if there are enough",
         "DEVICE"},
        {"comm", 0, 0, G_OPTION_ARG_STRING, &options.comm,
         "how GPUs communicate: auto (default), nccl, or local (through the host's memory)",
         "KIND"},
        {"no-op-times", 0, 0, G_OPTION_ARG_NONE, &options.no_op_times,
         "on a GPU: do not time each op, only the step", NULL},
        {"watchdog", 0, 0, G_OPTION_ARG_INT, &options.watchdog,
         "end all ranks after this many seconds without progress (default 300; 0: never)", "S"},
        {"memory-limit", 0, 0, G_OPTION_ARG_INT64, &options.memory_limit,
         CLI_RANKS_MEMORY_LIMIT_HELP, "BYTES"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &options.seed, "seed of parameters and data (default 1)",
         "N"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print the result as JSON", NULL},
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &options.verbose,
         "show the command that starts the ranks, and all of its output", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = NULL;
    g_autoptr(ModelCluster) pace = NULL;
    if (!options_are_sound(&options, &error) ||
        !inputs_are_spared(&options, source, argv[1], &error) ||
        !(plan = cli_plan_source_load_to_hand_on(source, argv[1], &error)) ||
        !cli_ranks_fit_here(plan->world, &error) ||
        !cli_ranks_memory_is_here(plan, plan->world, options.device, (uint64_t)options.memory_limit,
                                  &error) ||
        (options.pace && !(pace = cli_pace_cluster(options.pace, plan, &error)))) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    say_what_is_not_scaled(plan);
    say_which_passes_count(plan);
    return run(&options, plan, pace);
}
