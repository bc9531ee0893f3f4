/* exec/main.c - `foreshard-exec`: one rank of a play on the host, under mpirun or alone.
 *
 * Rank 0 speaks: one line a step while it goes on, a summary at the end, the trace of all ranks.
 * `foreshard run` starts this program; so may mpirun or srun, on several machines.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/costs.h"
#include "exec/error.h"
#include "exec/host/device.h"
#include "exec/mpi.h"
#include "kernels/host/runtime.h"
#include "plan/text.h"
#include "trace/from-plan.h"
#include "trace/json.h"
#include "trace/text.h"

typedef struct {
    char *trace, *load, *save, *data, *pace;
    gint steps, threads, seed, token_bytes;
    gint64 memory_limit;
    gboolean json, costs;
} Options;

typedef struct {
    const Options *options;
    const Plan *plan;
    const ExecPace *pace; /* NULL: not paced */
    ExecMpi *mpi;
    ExecComm comm;
    double *losses; /* means over ranks */
    double *step_ms;
    unsigned n_losses;
} Run;

/* A line of /proc/self/status in bytes; 0 where there is none. */
static uint64_t resident(const char *key) {
    g_autofree char *status = NULL;
    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL)) {
        return 0;
    }
    const char *line = strstr(status, key);
    return line ? g_ascii_strtoull(line + strlen(key), NULL, 10) * 1024 : 0;
}

static int complain(const Run *run, const GError *error) {
    fprintf(stderr, "foreshard-exec: rank %u: %s\n", run->comm.rank, error->message);
    bool input =
        error->domain == PLAN_ERROR || g_error_matches(error, EXEC_ERROR, EXEC_ERROR_INPUT);
    return input ? 2 : 1;
}

/* ---- results -------------------------------------------------------------------------------- */

static Trace *make_trace(const Run *run, ExecHost *host) {
    Trace *trace = trace_new();
    trace_describe_plan(trace, run->plan);
    trace_set(trace, "side", "measured");
    trace_set(trace, "device", "host");
    trace_set(trace, "allocator", "caching");
    trace_set(trace, "paced", run->pace ? "yes" : "no");
    if (run->pace) {
        trace_set(trace, "pace", exec_pace_cluster(run->pace));
    }
    trace_set(trace, "comm", run->comm.name);
    trace_set(trace, "blas", kernel_blas_name());
    trace_set(trace, "isa", kernel_isa_name());
    trace_set(trace, "compiler", __VERSION__);
    trace_set_uint(trace, "steps", run->n_losses);
    trace_set_uint(trace, "seed", (uint64_t)run->options->seed);
    if (run->comm.rank == 0) {
        trace_set_uint(trace, "resident_bytes", resident("VmRSS:"));
        trace_set_uint(trace, "resident_peak_bytes", resident("VmHWM:"));
        trace_set_uint(trace, "mapped_bytes", exec_host_mapped_bytes(host));
    }
    exec_host_add_rows(host, trace);
    return trace;
}

static bool write_trace(const Run *run, ExecHost *host, GError **error) {
    g_autoptr(Trace) trace = make_trace(run, host);
    g_autoptr(GString) text = trace_text(trace, error);
    g_auto(GStrv) texts = NULL;
    if (!text || !exec_mpi_collect(run->mpi, text->str, &texts, error)) {
        return false;
    }
    for (unsigned rank = 1; texts && texts[rank]; rank++) {
        g_autofree char *name = g_strdup_printf("(trace of rank %u)", rank);
        g_autoptr(Trace) other = trace_read(texts[rank], strlen(texts[rank]), name, error);
        if (!other || !trace_merge(trace, other, error)) {
            return false;
        }
    }
    return !texts || trace_write_file(trace, run->options->trace, error);
}

static double median_step_ms(const Run *run) {
    unsigned from = run->n_losses > 3 ? 2 : 0, n = run->n_losses - from;
    g_autoptr(GArray) sorted = g_array_new(FALSE, FALSE, sizeof(double));
    for (unsigned i = 0; i < n; i++) { /* insertion: a run has few steps */
        unsigned at = sorted->len;
        while (at && g_array_index(sorted, double, at - 1) > run->step_ms[from + i]) {
            at--;
        }
        g_array_insert_val(sorted, at, run->step_ms[from + i]);
    }
    return n ? g_array_index(sorted, double, n / 2) : 0;
}

static void print_json(const Run *run, ExecHost *host) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    const MemoryPeak *peak = memory_ledger_peak_allocated(exec_host_ledger(host));
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(run->plan));
    trace_json_add_int(json, "ranks", run->comm.world);
    if (run->pace) {
        trace_json_add_text(json, "paced_as", exec_pace_cluster(run->pace));
    }
    trace_json_begin_array(json, "losses");
    for (unsigned i = 0; i < run->n_losses; i++) {
        json_builder_add_double_value(json, run->losses[i]);
    }
    json_builder_end_array(json);
    trace_json_add_real(json, "step_ms", median_step_ms(run));
    trace_json_add_real(json, "tokens_per_s",
                        (double)run->plan->tokens_per_rank * run->comm.world / median_step_ms(run) *
                            1e3);
    trace_json_add_int(json, "peak_allocated_bytes", peak->totals.allocated_bytes);
    trace_json_add_int(json, "peak_reserved_bytes",
                       memory_ledger_peak_reserved(exec_host_ledger(host))->totals.reserved_bytes);
    trace_json_add_int(json, "resident_peak_bytes", resident("VmHWM:"));
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    printf("%s\n", text);
}

static void print_summary(const Run *run, ExecHost *host) {
    MemoryLedger *ledger = exec_host_ledger(host);
    double ms = median_step_ms(run);
    if (run->pace) {
        printf("paced      collectives last at least as long as on %s\n",
               exec_pace_cluster(run->pace));
    }
    printf("step time  %.3f ms (median), %.0f tokens/s in all\n", ms,
           (double)run->plan->tokens_per_rank * run->comm.world / ms * 1e3);
    printf("memory     rank 0 at most: allocated %.3f MB, reserved %.3f MB, process %.3f MB "
           "(1e6 bytes)\n",
           (double)memory_ledger_peak_allocated(ledger)->totals.allocated_bytes / 1e6,
           (double)memory_ledger_peak_reserved(ledger)->totals.reserved_bytes / 1e6,
           (double)resident("VmHWM:") / 1e6);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* All write into one file, which rank 0 makes, and names when all are done. */
static bool save_weights(const Run *run, const ExecHost *host, GError **error) {
    const ExecComm *comm = &run->comm;
    const char *path = run->options->save;
    g_autoptr(ExecWeightsFile) file = NULL;
    if (comm->rank == 0 && !(file = exec_weights_make(path, run->plan, error))) {
        return false;
    }
    if (!comm->barrier(comm->self, error) ||
        (comm->rank && !(file = exec_weights_join(path, run->plan, error)))) {
        return false;
    }
    return exec_host_save(host, file, error) && comm->barrier(comm->self, error) &&
           (comm->rank || exec_weights_name(file, error));
}

/* Said before hours of training, not after. */
static bool can_write(const char *path, GError **error) {
    g_autofree char *folder = g_path_get_dirname(path);
    if (g_access(folder, W_OK) == 0) {
        return true;
    }
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "cannot write %s: %s", path,
                g_strerror(errno));
    return false;
}

/* ---- playing -------------------------------------------------------------------------------- */

/* After each step: its time, and its loss averaged over ranks. */
static bool report_step(Run *run, ExecHost *host, double ms, GError **error) {
    double values[2] = {exec_host_losses(host)[run->n_losses], ms};
    if (!run->comm.mean(run->comm.self, values, 2, error)) {
        return false;
    }
    run->losses[run->n_losses] = values[0];
    run->step_ms[run->n_losses++] = values[1];
    if (run->comm.rank == 0 && !run->options->json) {
        printf("step %-4u loss %.9g   %.3f ms\n", run->n_losses - 1, values[0], values[1]);
        fflush(stdout);
    }
    return true;
}

static bool report_until(Run *run, ExecHost *host, int32_t step, GError **error) {
    while ((int32_t)run->n_losses < step) {
        while (!exec_host_step_has_ended(host, run->n_losses)) {
            if (!exec_host_healthy(host, error)) {
                return false;
            }
            g_usleep(200);
        }
        if (!report_step(run, host, exec_host_step_ms(host, run->n_losses), error)) {
            return false;
        }
    }
    return true;
}

/* The host runs ahead of the lanes, as it would on a GPU. When a step begins, the one before the
 * last is long over (a queue is shorter than a step) or, in the smallest networks, is waited
 * for. */
static bool play(Run *run, ExecHost *host, GError **error) {
    g_autoptr(PlanPlayer) player =
        plan_player_new(run->plan, plan_role_of_rank(run->plan, run->comm.rank),
                        (uint32_t)run->options->steps, &exec_host_device, host);
    PlanAnswer answer = PLAN_DONE;
    while (answer == PLAN_DONE && !plan_player_at_end(player)) {
        answer = plan_player_step(player, error);
        const PlanPosition *at = plan_player_position(player);
        if (answer == PLAN_DONE && at->index == 0 && at->step > 1 &&
            !report_until(run, host, at->step - 1, error)) {
            return false;
        }
    }
    if (answer == PLAN_STOPPED) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "out of memory: %s",
                    exec_host_out_of_memory(host));
    }
    return answer == PLAN_DONE && exec_host_drain(host, error) &&
           report_until(run, host, run->options->steps, error);
}

static int run_plan(Run *run, const char *path) {
    const Options *options = run->options;
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_read_file(path, &error);
    if (!plan) {
        return complain(run, error);
    }
    run->plan = plan;
    g_autoptr(ExecWeights) weights = NULL;
    g_autoptr(ExecData) data = NULL;
    g_autoptr(ExecPace) pace = NULL;
    unsigned token_bytes = (unsigned)options->token_bytes;
    if ((options->save && !can_write(options->save, &error)) ||
        (options->trace && !can_write(options->trace, &error)) ||
        (options->load && !(weights = exec_weights_open(options->load, plan, &error))) ||
        (options->data && !(data = exec_data_open(options->data, token_bytes, &error))) ||
        (options->pace && !(pace = exec_pace_read(options->pace, plan, &error)))) {
        return complain(run, error);
    }
    run->pace = pace;
    ExecHostOptions host_options = {.seed = (uint64_t)options->seed,
                                    .memory_limit_bytes = (uint64_t)options->memory_limit,
                                    .keep_rows = options->trace != NULL,
                                    .weights = weights,
                                    .data = data,
                                    .pace = pace};
    g_autoptr(ExecHost) host =
        exec_host_new(plan, &run->comm, (uint32_t)options->steps, &host_options, &error);
    if (!host || !exec_mpi_join(run->mpi, plan, &error) || !play(run, host, &error) ||
        (options->trace && !write_trace(run, host, &error)) ||
        (options->save && !save_weights(run, host, &error))) {
        return complain(run, error);
    }
    if (run->comm.rank == 0 && options->json) {
        print_json(run, host);
    } else if (run->comm.rank == 0) {
        print_summary(run, host);
    }
    return 0;
}

/* Without a plan: all ranks are on one axis. */
static int print_costs(Run *run) {
    g_autoptr(GError) error = NULL;
    Plan line = {.axes = {1, 1, run->comm.world, 1}};
    g_autoptr(GString) lines =
        exec_mpi_join(run->mpi, &line, &error) ? exec_costs_measure(&run->comm, &error) : NULL;
    if (!lines) {
        return complain(run, error);
    }
    if (run->comm.rank == 0) {
        fputs(lines->str, stdout);
    }
    return 0;
}

static bool read_options(int *argc, char ***argv, Options *options, GError **error) {
    GOptionEntry entries[] = {
        {"steps", 0, 0, G_OPTION_ARG_INT, &options->steps, "training steps (default 6)", "K"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &options->trace, "write a trace of all ranks here",
         "FILE"},
        {"load", 0, 0, G_OPTION_ARG_FILENAME, &options->load,
         "a safetensors file of the weights to begin with", "FILE"},
        {"save", 0, 0, G_OPTION_ARG_FILENAME, &options->save,
         "write the weights here at the end; every rank writes its part of one file", "FILE"},
        {"data", 0, 0, G_OPTION_ARG_FILENAME, &options->data,
         "tokens to train on (default: synthetic)", "FILE"},
        {"pace", 0, 0, G_OPTION_ARG_FILENAME, &options->pace,
         "a table of how long each collective lasts at least (foreshard run --pace makes it)",
         "FILE"},
        {"token-bytes", 0, 0, G_OPTION_ARG_INT, &options->token_bytes,
         "of a token in --data: 1 (default) or 2, little-endian", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "print the result as JSON", NULL},
        {"threads", 0, 0, G_OPTION_ARG_INT, &options->threads,
         "threads of a matrix product (default 1)", "N"},
        {"memory-limit", 0, 0, G_OPTION_ARG_INT64, &options->memory_limit,
         "bytes of the modeled device (default: no limit)", "BYTES"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &options->seed, "of parameters and data (default 1)", "N"},
        {"costs", 0, 0, G_OPTION_ARG_NONE, &options->costs,
         "no PLAN: measure what calls, lanes and collectives cost here", NULL},
        {0}};
    g_autoptr(GOptionContext) context = g_option_context_new("PLAN");
    g_option_context_set_summary(context, "Plays a plan on CPU ranks: one process a rank, under "
                                          "mpirun or srun; alone for one rank.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error)) {
        return false;
    }
    if (*argc != (options->costs ? 1 : 2) || options->steps < 1 || options->steps > 1000000 ||
        options->threads < 1 || options->memory_limit < 1 || options->seed < 0 ||
        options->token_bytes < 1 || options->token_bytes > 2) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "give one PLAN; steps, threads and memory limit are positive, the seed is not "
                    "negative, a token has 1 or 2 bytes");
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    Options options = {
        .steps = 6, .threads = 1, .memory_limit = G_MAXINT64 / 4, .seed = 1, .token_bytes = 1};
    g_autoptr(GError) error = NULL;
    if (!read_options(&argc, &argv, &options, &error)) { /* --help needs no MPI */
        fprintf(stderr, "foreshard-exec: %s\n", error->message);
        return 2;
    }
    Run run = {.options = &options};
    run.mpi = exec_mpi_open(&argc, &argv, &run.comm, &error);
    if (!run.mpi) {
        return complain(&run, error);
    }
    kernel_set_threads(options.threads);
    run.losses = g_new0(double, options.steps);
    run.step_ms = g_new0(double, options.steps);
    int status = options.costs ? print_costs(&run) : run_plan(&run, argv[1]);
    if (status) {
        exec_mpi_abort(run.mpi, status);
    }
    exec_mpi_close(run.mpi);
    g_free(run.losses);
    g_free(run.step_ms);
    g_free(options.trace);
    g_free(options.load);
    g_free(options.save);
    g_free(options.data);
    g_free(options.pace);
    return 0;
}
