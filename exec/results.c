#include "exec/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/mesh.h"
#include "trace/from-plan.h"
#include "trace/json.h"
#include "trace/quantile.h"
#include "trace/scale.h"
#include "trace/text.h"

void exec_results_init(ExecResults *results, const Plan *plan, const ExecComm *comm,
                       uint32_t steps) {
    *results = (ExecResults){.plan = plan,
                             .comm = comm,
                             .losses = g_new0(double, steps),
                             .step_ms = g_new0(double, steps)};
}

void exec_results_clear(ExecResults *results) {
    g_clear_pointer(&results->losses, g_free);
    g_clear_pointer(&results->step_ms, g_free);
}

/* In a pipeline only the last stage's ranks have a loss. */
bool exec_results_add_step(ExecResults *results, const ExecPlay *play, GError **error) {
    unsigned step = results->n_steps;
    double loss = play->losses[step], has_one = !isnan(loss);
    double values[3] = {has_one ? loss : 0, has_one, exec_play_step_ms(play, step)};
    if (!results->comm->mean(results->comm->self, values, 3, error)) {
        g_prefix_error(error, "the mean loss of step %u: ", step);
        return false;
    }
    results->losses[step] = values[0] / values[1];
    results->step_ms[step] = values[2];
    results->n_steps++;
    return true;
}

/* A line of /proc/self/status in bytes; 0 where there is none. */
static uint64_t resident(const char *key) {
    g_autofree char *status = NULL;
    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL)) {
        return 0;
    }
    const char *line = strstr(status, key);
    return line ? g_ascii_strtoull(line + strlen(key), NULL, 10) * 1024 : 0;
}

static Trace *make_trace(const ExecResults *results, const ExecPlay *play) {
    Trace *trace = trace_new();
    trace_describe_plan(trace, results->plan);
    trace_set(trace, "side", "measured");
    trace_set(trace, "device", play->device->name);
    trace_set(trace, "allocator", "caching");
    trace_set(trace, "paced", play->options.pace ? "yes" : "no");
    if (play->options.pace) {
        trace_set(trace, "pace", exec_pace_cluster(play->options.pace));
    }
    trace_set(trace, "comm", results->comm->name);
    trace_set_uint(trace, "steps", results->n_steps);
    trace_set_uint(trace, "seed", play->options.seed);
    if (play->options.memory_limit_bytes < EXEC_PLAY_NO_LIMIT) {
        trace_set_uint(trace, "memory_limit_bytes", play->options.memory_limit_bytes);
    }
    if (results->comm->rehearsed) {
        trace_set(trace, "rehearsed", "yes");
    }
    if (exec_results_speaks(results->comm)) {
        trace_set_uint(trace, "resident_bytes", resident("VmRSS:"));
        trace_set_uint(trace, "resident_peak_bytes", resident("VmHWM:"));
    }
    uint64_t host_bytes = exec_slots_bytes(play->context.slots);
    if (host_bytes) {
        trace_set_uint(trace, "host_bytes", host_bytes); /* of what is offloaded */
    }
    play->device->describe(play, trace);
    exec_play_add_rows(play, trace);
    return trace;
}

static bool merge(Trace *trace, const char *text, uint32_t rank, GError **error) {
    g_autofree char *name = g_strdup_printf("(trace of rank %u)", rank);
    g_autoptr(Trace) other = trace_read(text, strlen(text), name, error);
    return other && trace_merge(trace, other, error);
}

/* Rank by rank. Those that have sent theirs stay until the last one's is: each wait is for one
 * rank, however many there are. */
static bool merge_others(const ExecComm *comm, Trace *trace, const char *mine,
                         ExecWatchdog *watchdog, GError **error) {
    for (uint32_t from = 1; from < comm->world; from++) {
        g_autofree char *text = NULL;
        if (!comm->collect(comm->self, from, mine, &text, error) ||
            (text && !merge(trace, text, from, error)) || !comm->barrier(comm->self, error)) {
            return false;
        }
        exec_watchdog_beat(watchdog);
    }
    return true;
}

bool exec_results_write_trace(const ExecResults *results, const ExecPlay *play, const char *path,
                              ExecWatchdog *watchdog, GError **error) {
    const ExecComm *comm = results->comm;
    bool speaks = exec_results_speaks(comm);
    g_autoptr(Trace) trace = make_trace(results, play);
    g_autoptr(GString) mine = speaks ? g_string_new(NULL) : trace_text(trace, error);
    if (!mine || !merge_others(comm, trace, mine->str, watchdog, error)) {
        g_prefix_error(error, "the trace of all ranks, %s: ", path);
        return false;
    }
    return !speaks || trace_write_file(trace, path, error);
}

char *exec_results_oom_path(const ExecPlay *play, const char *path) {
    return trace_oom_path(path, play->oom.rank);
}

bool exec_results_write_oom(const ExecResults *results, const ExecPlay *play, const char *path,
                            GError **error) {
    g_autofree char *beside = exec_results_oom_path(play, path);
    g_autoptr(Trace) trace = make_trace(results, play);
    trace_set_oom(trace, &play->oom);
    return trace_write_file(trace, beside, error);
}

static double median_step_ms(const ExecResults *results) {
    unsigned from = results->n_steps > 3 ? 2 : 0, n = results->n_steps - from;
    g_autofree double *sorted = g_memdup2(results->step_ms + from, n * sizeof *sorted);
    return trace_median(sorted, n);
}

bool exec_results_speaks(const ExecComm *comm) {
    return comm->rank == 0 || comm->rehearsed;
}

static const char *between(const ExecResults *results, const ExecPlay *play) {
    return play->device->between ? play->device->between(play) : results->comm->name;
}

static const char *attention_refused(const ExecPlay *play) {
    return play->device->attention_refused ? play->device->attention_refused(play) : NULL;
}

static void add_of_steps(JsonBuilder *json, const ExecResults *results, const char *key,
                         const double *values) {
    trace_json_begin_array(json, key);
    for (unsigned i = 0; i < results->n_steps; i++) {
        trace_json_add_element(json, values[i]);
    }
    json_builder_end_array(json);
}

void exec_results_print_json(const ExecResults *results, const ExecPlay *play) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    const MemoryPeak *peak = memory_ledger_peak_allocated(play->ledger);
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(results->plan));
    trace_json_add_int(json, "ranks", results->comm->world);
    trace_json_add_text(json, "comm", between(results, play));
    if (results->comm->rehearsed) {
        trace_json_add_int(json, "rehearsed_rank", results->comm->rank);
    }
    if (play->options.pace) {
        trace_json_add_text(json, results->comm->rehearsed ? "rehearsed_as" : "paced_as",
                            exec_pace_cluster(play->options.pace));
    }
    if (!results->comm->rehearsed) {
        add_of_steps(json, results, "losses", results->losses);
    }
    add_of_steps(json, results, "steps_ms", results->step_ms);
    trace_json_add_real(json, "step_ms", median_step_ms(results));
    trace_json_add_real(json, "tokens_per_s",
                        (double)results->plan->tokens_per_rank * results->comm->world /
                            median_step_ms(results) * 1e3);
    trace_json_add_int(json, "peak_allocated_bytes", peak->totals.allocated_bytes);
    trace_json_add_int(json, "peak_reserved_bytes",
                       memory_ledger_peak_reserved(play->ledger)->totals.reserved_bytes);
    trace_json_add_int(json, "resident_peak_bytes", resident("VmHWM:"));
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    printf("%s\n", text);
}

void exec_results_print_summary(const ExecResults *results, const ExecPlay *play) {
    MemoryLedger *ledger = play->ledger;
    double ms = median_step_ms(results);
    if (results->comm->rehearsed) {
        printf("rehearsed  rank %u of %u by itself\n"
               "stand-ins  for collectives take at least as long as on %s\n",
               results->comm->rank, results->comm->world, exec_pace_cluster(play->options.pace));
    } else if (play->options.pace) {
        printf("paced      collectives take at least as long as on %s\n",
               exec_pace_cluster(play->options.pace));
    }
    if (results->comm->world > 1 && !results->comm->rehearsed) {
        printf("transport  %s\n", between(results, play));
    }
    if (attention_refused(play)) {
        printf("attention  by own kernels, without tensor cores: %s\n", attention_refused(play));
    }
    printf("step time  %.3f ms (median), %.0f tokens/s over all ranks\n", ms,
           (double)results->plan->tokens_per_rank * results->comm->world / ms * 1e3);
    g_autofree char *allocated =
        trace_bytes_text((double)memory_ledger_peak_allocated(ledger)->totals.allocated_bytes);
    g_autofree char *reserved =
        trace_bytes_text((double)memory_ledger_peak_reserved(ledger)->totals.reserved_bytes);
    g_autofree char *process = trace_bytes_text((double)resident("VmHWM:"));
    g_autofree char *rank = plan_rank_text(results->plan, results->comm->rank);
    printf("memory     peak of %s: allocated %s, reserved %s, process %s\n", rank, allocated,
           reserved, process);
}
