/* The verdicts of a prediction, and what it was asked: whether it fits, where memory ended,
 * whether it trains well, what it costs, who waits for whom. */
#include "cli/explain/private.h"
#include "cli/predict/how-sure.h"
#include "cli/spending.h"
#include "cli/trains-well.h"
#include "trace/ended.h"

static bool needs_prediction(GString *text, const CliSubject *subject) {
    if (subject->prediction == NULL) {
        g_string_append(text, "the trace's plan cannot be predicted again, so this is not known; "
                              "give the plan or the network, and --cluster\n");
    }
    return subject->prediction == NULL;
}

void explain_fits(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (needs_prediction(text, subject)) {
        return;
    }
    g_string_append_printf(
        text,
        "fits = %s: whether every allocation is granted\n"
        "allocator_bytes = %" G_GUINT64_FORMAT " = memory of %s, %" G_GUINT64_FORMAT
        " B, less outside_allocator_bytes\n"
        "outside_allocator_bytes = %" G_GUINT64_FORMAT
        ": contexts, libraries and NCCL's buffers, as the cluster's file says\n"
        "workspace_bytes = %" G_GUINT64_FORMAT
        ": of PyTorch's allocator too, in no peak here: a workspace of cuBLAS for forward's thread "
        "and one for backward's, by the cluster's compute_capability\n"
        "peak_reserved_bytes = %" G_GUINT64_FORMAT "%s\n",
        prediction->fits ? "true" : "false", (guint64)prediction->allocator_bytes,
        subject->cluster->name, (guint64)prediction->memory_bytes,
        (guint64)prediction->outside_allocator_bytes, (guint64)prediction->workspace_bytes,
        (guint64)prediction->peak_reserved_bytes, prediction->fits ? "" : ", had it memory enough");
    if (!prediction->fits) {
        explain_oom(text, subject);
    }
}

void explain_oom(GString *text, const CliSubject *subject) {
    g_autofree char *oom = trace_oom_text(subject->trace);
    if (oom == NULL) {
        g_string_append(text, "oom: this play did not run out of memory\n");
        return;
    }
    g_string_append_printf(text, "oom: %s\n", oom);
    explain_held_at_end(text, subject);
}

void explain_trains_well(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (needs_prediction(text, subject)) {
        return;
    }
    g_string_append_printf(
        text,
        "trains_well = %s: wanted are that it fits (here: %s), that the allocator gives no memory "
        "back (here: %" G_GUINT64_FORMAT " times), and that the compute lane works at least %.0f "
        "%% of a step (here: %.1f %%, arithmetic and memory bandwidth below)\n",
        cli_trains_well(prediction) ? "true" : "false", prediction->fits ? "yes" : "no",
        (guint64)prediction->alloc_retries, 100 * CLI_WORKS_WELL,
        100 * cli_working_share(prediction));
    explain_idle(text, subject);
}

static void append_errors(GString *text, const char *what, const CliErrors *errors) {
    if (errors->runs > 0) {
        g_string_append_printf(text,
                               "%s: of %u published runs half were predicted within %.1f %%, nine "
                               "in ten within %.1f %%\n",
                               what, errors->runs, errors->median_percent, errors->p90_percent);
    }
}

void explain_published(GString *text, const CliSubject *subject) {
    if (needs_prediction(text, subject)) {
        return;
    }
    const CliPredictReport report = {
        .plan = subject->plan, .cluster = subject->cluster, .prediction = subject->prediction};
    g_auto(CliHowSure) sure = {0};
    cli_how_sure(&report, &sure);
    if (sure.kind == NULL) {
        g_string_append(text, "published_errors: of this kind of device no run was published\n");
        return;
    }
    g_string_append_printf(
        text,
        "published_errors = those of runs %s, on %s: by bound_by, "
        "alloc_retries, fits, float8 and context, and by the kind of GPU where "
        "20 runs or more are of it\nread from models/published/errors.ini, which "
        "foreshard validate --kinds writes; nothing fitted to a run's own "
        "table predicts it there\n",
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
            text, "not known, for the cluster's file has no %s; give it in a copy\n", needs);
    }
}

void explain_spending(GString *text, const CliSubject *subject) {
    if (needs_prediction(text, subject)) {
        return;
    }
    CliSpending spent = cli_spending(subject->plan, subject->cluster, subject->prediction);
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
    g_string_append_printf(text, "%s = %s: %s\n", name, value != NULL ? value : "not known",
                           meaning);
}

static void append_fact(GString *text, const CliSubject *subject, const char *key,
                        const char *meaning) {
    append_named_fact(text, subject, key, key, meaning);
}

void explain_identity(GString *text, const CliSubject *subject) {
    append_named_fact(text, subject, "plan_digest", "digest",
                      "of the plan's canonical text, which foreshard plan -o "
                      "writes; traces of one digest can be compared");
    append_fact(text, subject, "cluster", "the machine that was modeled");
    append_fact(text, subject, "cluster_digest", "of that machine's file");
}

void explain_ranks(GString *text, const CliSubject *subject) {
    const SimPrediction *prediction = subject->prediction;
    if (needs_prediction(text, subject)) {
        return;
    }
    if (prediction->n_ranks == 0) {
        g_string_append(text, "one rank stood for all; play each by foreshard predict "
                              "--every-rank\n");
        return;
    }
    append_fact(text, subject, "seed", "of the jitter's generator");
    append_fact(text, subject, "jitter_percent", "standard deviation of a kernel's duration");
    append_fact(text, subject, "spread_percent", "the same among GPUs, all along");
    append_fact(text, subject, "host_jitter_percent", "the same of a host's costs");
    append_fact(text, subject, "link_jitter_percent", "the same of a collective");
    g_string_append_printf(text,
                           "memory_of_rank = %u, which reserves most of what it has; times_of_rank "
                           "= %u, which loses least to others\n"
                           "of a steady step in the mean: step between a rank's own ends; compute: "
                           "its compute lane works;\nexposed: that has nothing to do while a "
                           "collective waits or runs; lost: of it, until the last rank came\n",
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
