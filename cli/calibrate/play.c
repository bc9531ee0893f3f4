/* cli/calibrate/play.c - the networks that are played to be measured; their ops' times. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/calibrate/calibrate.h"
#include "cli/launch/ranks.h"
#include "cli/options/command.h"
#include "cli/source/plan-source.h"
#include "models/network.h"
#include "plan/op/work.h"
#include "plan/strategy/strategy.h"
#include "plan/text/text.h"
#include "sim/costs/compute.h"
#include "trace/from-plan.h"
#include "trace/quantile.h"
#include "trace/text.h"

enum {
    STEPS = 4 /* the first, which touches fresh memory, is left out */
};

typedef struct {
    const char *name, *network, *strategy;
} Play;

/* Between them they have every op that the host knows at sizes of real training, and products from
 * small to large. */
static const Play on_host[] = {
    {"gpt", "family=gpt layers=2 width=768 heads=12 vocab=8192 seq=256",
     "sharding=none micro_batch=4"},
    {"llama", "family=llama layers=2 width=512 heads=8 kv_heads=4 ffn=1408 vocab=8192 seq=256",
     "flavour=fsdp2 micro_batch=2 optimizer=momentum clip=1"},
    {"t5", "family=t5 layers=1 width=512 heads=8 head_dim=64 ffn=1024 vocab=8192 seq=128 gated=yes",
     "flavour=fsdp1 micro_batch=4 optimizer_kernel=loop"},
    {"gpt-small", "family=gpt layers=2 width=128 heads=4 vocab=512 seq=64 attention=math gelu=erf",
     "sharding=none micro_batch=2 optimizer_kernel=fused accumulate=2"},
    {"llama-small", "family=llama layers=2 width=128 heads=4 ffn=384 vocab=512 seq=64",
     "sharding=none micro_batch=8"},
    {"gpt-bf16", "family=gpt layers=1 width=768 heads=12 vocab=2048 seq=256",
     "flavour=fsdp2 micro_batch=4 param_dtype=bf16"},
    {"gpt-fp16", "family=gpt layers=1 width=768 heads=12 vocab=2048 seq=256",
     "flavour=fsdp2 micro_batch=4 param_dtype=fp16"},
};

/* The same for a GPU, where only large ops say how fast they are. */
static const Play on_gpu[] = {
    {"gpt", "family=gpt layers=2 width=1600 heads=25 vocab=50304 seq=1024",
     "flavour=fsdp2 micro_batch=8 param_dtype=bf16"},
    {"llama", "family=llama layers=1 width=4096 heads=32 kv_heads=8 ffn=14336 vocab=32000 seq=2048",
     "flavour=fsdp2 micro_batch=2 param_dtype=bf16 optimizer_kernel=fused clip=1"},
    {"llama-fused",
     "family=llama layers=1 width=4096 heads=32 kv_heads=8 ffn=14336 vocab=32000 seq=2048",
     "flavour=fsdp2 micro_batch=2 param_dtype=bf16 kernels=fused optimizer=momentum accumulate=2"},
    {"gpt-fused", "family=gpt layers=2 width=1600 heads=25 vocab=50304 seq=1024",
     "flavour=fsdp1 micro_batch=8 param_dtype=bf16 kernels=fused"},
    {"t5",
     "family=t5 layers=1 width=1024 heads=16 head_dim=128 ffn=4096 vocab=32128 seq=512 gated=yes",
     "flavour=fsdp1 micro_batch=8 param_dtype=bf16 optimizer_kernel=loop"},
    {"gpt-math",
     "family=gpt layers=2 width=1024 heads=16 vocab=8192 seq=1024 attention=math gelu=erf",
     "sharding=none micro_batch=8 model_dtype=bf16 optimizer_kernel=fused"},
};

/* ---- from words to a plan ------------------------------------------------------------------- */

static ModelNetwork *network_of(const char *name, const char *words, GError **error) {
    g_autoptr(GString) text = g_string_new("[network]\n");
    g_string_append(text, words);
    g_strdelimit(text->str, " ", '\n');
    return model_network_read(text->str, text->len, name, error);
}

static Plan *plan_of(const Play *play, GError **error) {
    PlanStrategy strategy;
    g_autofree char *words = g_strconcat("ranks=1 ", play->strategy, NULL);
    g_autoptr(ModelNetwork) network = network_of(play->name, play->network, error);
    return network && plan_strategy_of_words(&strategy, words, error)
               ? model_network_plan(network, &strategy, PLAN_FORM_WHOLE, error)
               : NULL;
}

/* ---- ranks that run beside each other ------------------------------------------------------- */

static GSubprocess *start(const char *device, const char *plan_path, const char *trace_path,
                          GError **error) {
    g_autoptr(GPtrArray) argv = cli_ranks_command(1, device, error);
    if (!argv) {
        return NULL;
    }
    cli_ranks_add(argv, "%s", plan_path);
    cli_ranks_add(argv, "--steps=%d", STEPS);
    cli_ranks_add(argv, "--trace=%s", trace_path);
    g_ptr_array_add(argv, NULL);
    g_autoptr(GSubprocessLauncher) launcher = cli_ranks_launcher(G_SUBPROCESS_FLAGS_STDOUT_SILENCE);
    return g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
}

static bool run_copies(const char *device, unsigned n, const char *plan_path, char **trace_paths,
                       GError **error) {
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func(g_object_unref);
    bool ok = true;
    for (unsigned i = 0; ok && i < n; i++) {
        GSubprocess *copy = start(device, plan_path, trace_paths[i], error);
        ok = copy != NULL;
        if (copy) {
            g_ptr_array_add(copies, copy);
        }
    }
    for (guint i = 0; i < copies->len; i++) {
        ok = g_subprocess_wait_check(copies->pdata[i], NULL, ok ? error : NULL) && ok;
    }
    return ok;
}

/* Whether it refused what it was given, as a build without CUDA does a GPU, and why. */
static bool is_refused(GSubprocess *ranks, const char *said, GError **error) {
    const char *why = cli_ranks_own_words(said);
    if (!why || !g_subprocess_get_if_exited(ranks) ||
        g_subprocess_get_exit_status(ranks) != CLI_BAD_INPUT) {
        return false;
    }
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%.*s", (int)strcspn(why, "\n"),
                why);
    return true;
}

enum {
    ATTENTIONS = 6 /* lines between two times that what there is so far is told of */
};

/* Attention is timed last of what a GPU cannot do without, and cuDNN plans it for a second each. */
static bool read_lines(GSubprocess *ranks, GString *lines, CliCostsSoFar *so_far, gpointer data,
                       GError **error) {
    g_autoptr(GDataInputStream) said = g_data_input_stream_new(g_subprocess_get_stdout_pipe(ranks));
    GError *why = NULL;
    unsigned attentions = 0;
    for (char *line; (line = g_data_input_stream_read_line(said, NULL, NULL, &why));) {
        if (g_str_has_prefix(line, "attention ") && attentions++ % ATTENTIONS == 0) {
            so_far(data);
        }
        g_string_append_printf(lines, "%s\n", line);
        g_free(line);
    }
    if (why) {
        g_propagate_error(error, why);
    }
    return !why;
}

bool cli_calibrate_costs(const char *device, unsigned n, const char *folder, GString *lines,
                         CliCostsSoFar *so_far, gpointer data, GError **error) {
    g_autoptr(GPtrArray) argv = cli_ranks_command(n, device, error);
    if (!argv) {
        return false;
    }
    cli_ranks_add(argv, "--costs");
    g_ptr_array_add(argv, NULL);
    g_autofree char *path = g_build_filename(folder, "costs.said", NULL), *said = NULL;
    g_autoptr(GSubprocessLauncher) launcher = cli_ranks_launcher(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
    g_subprocess_launcher_set_stderr_file_path(launcher, path);
    g_autoptr(GSubprocess) ranks =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
    if (!ranks || !read_lines(ranks, lines, so_far, data, error)) {
        return false;
    }
    g_autoptr(GError) failure = NULL;
    g_subprocess_wait_check(ranks, NULL, &failure);
    if (g_file_get_contents(path, &said, NULL, NULL) && is_refused(ranks, said, error)) {
        return false;
    }
    fputs(said ? said : "", stderr);
    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return true;
}

/* ---- from traces to samples ----------------------------------------------------------------- */

/* The op that a row's number names. */
static const PlanOp **ops_by_number(const PlanRole *role) {
    uint32_t n =
        trace_instruction_number(role, PLAN_SECTION_STEADY, role->n_instrs[PLAN_SECTION_STEADY]);
    const PlanOp **ops = g_new0(const PlanOp *, n);
    for (PlanSection s = PLAN_SECTION_CONSTRUCT; s < PLAN_N_SECTIONS; s++) {
        for (uint32_t i = 0; i < role->n_instrs[s]; i++) {
            const PlanInstr *instr = &role->sections[s][i];
            if (instr->kind == PLAN_LAUNCH) {
                ops[trace_instruction_number(role, s, i)] = &role->ops[instr->arg];
            }
        }
    }
    return ops;
}

/* Every row's time, by op; and the gaps on lane 0 where the next op had long been given. */
static void sort_rows(const Trace *trace, const PlanRole *role, GArray **times, GArray *gaps_ns) {
    g_autofree const PlanOp **ops = ops_by_number(role);
    const TraceOpRow *before = NULL;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step < 1) {
            continue;
        }
        double ns = (double)(row->end_ns - row->start_ns);
        gsize op = (gsize)(ops[row->instruction] - role->ops);
        times[op] = times[op] ? times[op] : g_array_new(FALSE, FALSE, sizeof(double));
        g_array_append_val(times[op], ns);
        if (row->lane == 0) {
            double gap = before ? (double)(row->start_ns - before->end_ns) : -1;
            if (gap >= 0 && row->host_issue_ns < before->start_ns) {
                g_array_append_val(gaps_ns, gap);
            }
            before = row;
        }
    }
}

static double fact(const Trace *trace, const char *key) {
    const char *value = trace_get(trace, key);
    return value ? g_ascii_strtod(value, NULL) : 0;
}

static bool take_traces(const Plan *plan, unsigned n, char **paths, CliSamples *samples,
                        GError **error) {
    const PlanRole *role = &plan->roles[0];
    g_autofree GArray **times = g_new0(GArray *, role->n_ops);
    bool ok = true;
    for (unsigned i = 0; ok && i < n; i++) {
        g_autoptr(Trace) trace = trace_read_file(paths[i], error);
        ok = trace != NULL;
        if (ok) {
            sort_rows(trace, role, times, samples->gaps_ns);
            samples->outside_bytes = MAX(samples->outside_bytes, fact(trace, "resident_bytes") -
                                                                     fact(trace, "mapped_bytes"));
        }
    }
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (times[i]) {
            const PlanOp *op = &role->ops[i];
            PlanOpWork work = plan_op_work(role, op);
            CliSample sample = {.kind = (PlanOpKind)op->kind,
                                .dtype = (PlanDtype)op->dtype,
                                .flops = work.flops,
                                .bytes = work.bytes,
                                .rows = sim_attention_rows_of(role, op),
                                .ns = trace_median_of(times[i])};
            g_array_append_val(samples->ops, sample);
            g_array_unref(times[i]);
        }
    }
    return ok;
}

static bool play(const Play *which, const char *device, unsigned n, const char *folder,
                 CliSamples *samples, GError **error) {
    g_autoptr(Plan) plan = plan_of(which, error);
    g_autofree char *plan_path = g_build_filename(folder, "play.plan", NULL);
    g_auto(GStrv) trace_paths = g_new0(char *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        trace_paths[i] = g_strdup_printf("%s/%u.trace", folder, i);
    }
    bool ok = plan && plan_write_file(plan, plan_path, error) &&
              run_copies(device, n, plan_path, trace_paths, error) &&
              take_traces(plan, n, trace_paths, samples, error);
    g_unlink(plan_path);
    for (unsigned i = 0; i < n; i++) {
        g_unlink(trace_paths[i]);
    }
    return ok;
}

unsigned cli_calibrate_plays(const char *device) {
    return cli_ranks_is_cuda(device) ? G_N_ELEMENTS(on_gpu) : G_N_ELEMENTS(on_host);
}

bool cli_calibrate_play(const char *device, unsigned which, unsigned n, const char *folder,
                        FILE *say, CliSamples *samples, GArray *failures) {
    const Play *network = &(cli_ranks_is_cuda(device) ? on_gpu : on_host)[which];
    gint64 start = g_get_monotonic_time();
    GError *error = NULL;
    if (!play(network, device, n, folder, samples, &error)) {
        cli_failures_add(failures, network->name, error, say);
        return false;
    }
    fprintf(say, "%-11s trained on %u rank%s at once, %.1f s\n", network->name, n,
            n == 1 ? "" : "s", (double)(g_get_monotonic_time() - start) / 1e6);
    fflush(say);
    return true;
}
