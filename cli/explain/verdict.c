/* The verdicts of a prediction, and what it was asked: whether it fits, where memory ended,
 * whether it trains well, what it costs, who waits for whom. */
#include "cli/explain/private.h"
#include "cli/predict/edge.h"
#include "cli/predict/how-sure.h"
#include "cli/what-if/ways-to-fit.h"
#include "sim/settled.h"
#include "sim/spending.h"
#include "sim/trains-well.h"
#include "trace/ended.h"

void explain_fits(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    g_string_append_printf(
        text,
        "fits = %s: whether every allocation finds room\n"
        "allocator_bytes = %" G_GUINT64_FORMAT " = memory of %s, %" G_GUINT64_FORMAT
        " B, less outside_allocator_bytes\n"
        "outside_allocator_bytes = %" G_GUINT64_FORMAT
        ": contexts, libraries and NCCL's buffers, from the cluster's file, and workspace_bytes\n"
        "workspace_bytes = %" G_GUINT64_FORMAT
        ": cuBLAS workspaces (one for forward's thread, one for backward's, sized by the cluster's "
        "compute_capability); PyTorch's allocator holds them, but no peak here counts them\n"
        "peak_reserved_bytes = %" G_GUINT64_FORMAT "%s\n",
        prediction->fits ? "true" : "false", (guint64)prediction->allocator_bytes,
        subject->cluster->name, (guint64)prediction->memory_bytes,
        (guint64)prediction->outside_allocator_bytes, (guint64)prediction->workspace_bytes,
        (guint64)prediction->peak_reserved_bytes,
        prediction->fits ? "" : ": of a whole step, if memory sufficed");
    if (!prediction->fits) {
        explain_oom(text, subject);
    }
}

void explain_oom(GString *text, const CliSubject *asked) {
    const CliSubject *subject = asked->until_oom != NULL ? asked->until_oom : asked;
    g_autofree char *oom = trace_oom_text(subject->trace);
    if (oom == NULL) {
        g_string_append(text, "oom: this did not run out of memory\n");
        return;
    }
    g_string_append_printf(text, "oom: %s\n", oom);
    explain_held_at_end(text, subject);
}

/* fits: those that do without retries. */
static void append_ways(GString *text, const CliSubject *subject, bool fits) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliWhatIf) what_if = cli_what_if_on(subject->trace, subject->cluster, &error);
    if (what_if == NULL) {
        g_string_append_printf(text, "%s\n", error->message);
        return;
    }
    g_autoptr(GArray) ways = cli_ways(what_if, fits);
    g_string_append(text, fits ? "a list of changes, the least first, each predicted by itself, "
                                 "that do without\n"
                               : "a list of changes, the least first, each predicted by itself; "
                                 "the first that fits, the first without allocation retries, and "
                                 "the quickest of these\n");
    for (guint i = 0; i < ways->len; i++) {
        const CliWay *way = &g_array_index(ways, CliWay, i);
        g_autofree char *reserved = g_strdup_printf("%.0f B", way->reserved_bytes);
        g_autofree char *line = cli_way_text(way, reserved);
        g_string_append_printf(text, "  %s\n", line);
    }
    if (ways->len == 0) {
        g_string_append(text, fits ? "  no single change does\n" : "  " CLI_NO_WAY_TO_FIT "\n");
    }
}

void explain_ways_to_fit(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    g_string_append(text, "ways_to_fit: ");
    if (subject->prediction->fits) {
        g_string_append(text, "this fits as it is\n");
    } else {
        append_ways(text, subject, false);
    }
}

void explain_ways_without_retries(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    g_string_append(text, "ways_without_retries: ");
    if (!subject->prediction->fits || !sim_keeps_retrying(subject->prediction)) {
        g_string_append(text, "the allocator does not give memory back again and again here\n");
    } else {
        append_ways(text, subject, true);
    }
}

/* Of what lacks one nothing is predicted, nor explained. */
void explain_dtypes(GString *text, const CliSubject *subject) {
    if (!explain_needs_prediction(text, subject)) {
        g_string_append_printf(text, "unsupported_dtype: none; %s can compute in all of them\n",
                               subject->cluster->name);
    }
}

void explain_near_edge(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    const SimOptions asked = {.steps = SIM_STEPS_IT_TAKES};
    CliEdge edge = cli_edge_of(subject->plan, subject->cluster, &asked, subject->prediction);
    g_autofree char *said = cli_edge_text(&edge, subject->prediction);
    g_string_append_printf(text,
                           "near_edge: where less than %.0f %% is left, or where it does not fit "
                           "although tensors alone (peak_active_bytes) would\n%s",
                           100 * CLI_EDGE_SHARE, edge.is_near ? said : "  this is not near\n");
}

void explain_trains_well(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    g_string_append_printf(
        text,
        "trains_well = %s: true if it fits (here: %s), without allocation retries in the later "
        "half of the steps (here: %" G_GUINT64_FORMAT
        " in all %u steps, %.2f in each of the later half), and the %s works for at least %.0f %% "
        "of a step (here: %.1f %%, the sum of arithmetic and memory bandwidth %s)\n",
        sim_trains_well(prediction) ? "true" : "false", prediction->fits ? "yes" : "no",
        (guint64)prediction->alloc_retries, prediction->n_steps, prediction->retries_per_step,
        model_cluster_device_word(subject->cluster), 100 * SIM_WORKS_WELL,
        100 * sim_working_share(prediction),
        prediction->n_ranks ? "in the mean of all ranks" : "below");
    explain_idle(text, subject);
}

static void append_errors(GString *text, const char *what, const CliErrors *errors) {
    if (errors->runs > 0) {
        g_string_append_printf(
            text,
            "%s: of %u published runs, half were predicted within %.1f %% and nine "
            "in ten within %.1f %%\n",
            what, errors->runs, errors->median_percent, errors->p90_percent);
    }
}

void explain_published(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    const CliPredictReport report = {
        .plan = subject->plan, .cluster = subject->cluster, .prediction = subject->prediction};
    g_auto(CliHowSure) sure = {0};
    cli_how_sure(&report, &sure);
    if (sure.kind == NULL) {
        g_string_append(text, "published_errors: no run on this kind of device was published\n");
        return;
    }
    g_string_append_printf(
        text,
        "published_errors = those of runs %s, on %s: runs are told apart by bound_by, "
        "alloc_retries, fits, float8 and context, and by GPU where 20 runs or more are on "
        "it\nread from models/published/errors.ini, which foreshard validate --kinds writes; no "
        "run there is predicted by what was fitted to its own table\n",
        sure.kind, sure.gpu != NULL ? sure.gpu : "any GPU");
    append_errors(text, "step_time", &sure.time);
    append_errors(text, "peak_memory", &sure.memory);
}

static void append_cost(GString *text, const char *key, double cost, const char *formula,
                        const char *needs) {
    g_string_append_printf(text, "%s = %.6g: ", key, cost);
    if (cost > 0) {
        g_string_append_printf(text, "%s\n", formula);
    } else {
        g_string_append_printf(
            text, "unknown, since the cluster's file has no %s; give it in a copy\n", needs);
    }
}

void explain_spending(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    SimSpending spent = sim_spending(subject->plan, subject->cluster, subject->prediction);
    append_cost(text, "kwh_per_million_tokens", spent.kwh_per_million,
                "every GPU's [device] watts / 1000 x hours of a median step / millions of tokens "
                "in it, of all ranks",
                "[device] watts");
    append_cost(text, "price_per_million_tokens", spent.price_per_million,
                "every GPU's [device] price_per_hour x hours of a median step / millions of "
                "tokens in it, of all ranks",
                "[device] price_per_hour");
}

/* name: of predict --json, where the trace's header has another. */
static void append_named_fact(GString *text, const CliSubject *subject, const char *name,
                              const char *key, const char *meaning) {
    const char *value = trace_get(subject->trace, key);
    g_string_append_printf(text, "%s = %s: %s\n", name, value != NULL ? value : "unknown", meaning);
}

static void append_fact(GString *text, const CliSubject *subject, const char *key,
                        const char *meaning) {
    append_named_fact(text, subject, key, key, meaning);
}

void explain_identity(GString *text, const CliSubject *subject) {
    append_named_fact(text, subject, "plan_digest", "digest",
                      "the digest of the plan's text, which foreshard plan -o "
                      "writes; only traces of the same plan can be compared");
    append_fact(text, subject, "cluster", "the machine that was modeled");
    append_fact(text, subject, "cluster_digest", "the digest of that machine's file");
}

void explain_ranks(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    if (prediction->n_ranks == 0) {
        g_string_append(text, "one rank stands for all here; foreshard predict --every-rank plays "
                              "each\n");
        return;
    }
    append_fact(text, subject, "seed", "the seed of the jitter");
    append_fact(text, subject, "jitter_percent", "standard deviation of kernel durations");
    append_fact(text, subject, "spread_percent", "the same between GPUs, throughout the run");
    append_fact(text, subject, "host_jitter_percent", "the same of host costs");
    append_fact(text, subject, "link_jitter_percent", "the same of collectives");
    g_string_append_printf(text,
                           "memory_of_rank = %u: it reserves the largest share of its memory\n"
                           "times_of_rank = %u: it waits least for others\n"
                           "mean of a rank's steady steps; compute: its compute lane is busy; "
                           "exposed: idle while a collective waits or runs; lost: the part of it "
                           "until the last rank came\n",
                           prediction->memory_rank, prediction->time_rank);
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        const SimRankBook *book = &prediction->ranks[rank];
        g_string_append_printf(text,
                               "  rank %-5u step %12.6f ms  compute %12.6f  exposed %12.6f  lost "
                               "%12.6f\n",
                               rank, (double)book->step_ns / 1e6, (double)book->compute_ns / 1e6,
                               (double)book->exposed_ns / 1e6, (double)book->lost_ns / 1e6);
    }
}
