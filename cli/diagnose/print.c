/* cli/diagnose/print.c - a diagnosis as foreshard diagnose and report print it. */
#include <math.h>
#include <string.h>

#include "cli/diagnose/diagnose.h"
#include "cli/options/setting.h"
#include "sim/figures.h"
#include "trace/ended.h"
#include "trace/scale.h"

static void append_bytes(GString *text, double bytes, bool is_change) {
    if (is_change && bytes == 0) {
        g_string_append(text, "unchanged");
        return;
    }
    TraceScale scale = trace_scale_bytes(fabs(bytes));
    g_string_append_printf(text, is_change ? "%+.2f %s" : "%.2f %s", bytes / scale.per_unit,
                           scale.unit);
}

static char *time_text(double ns, bool is_change) {
    if (is_change && ns == 0) {
        return g_strdup("unchanged");
    }
    TraceScale scale = trace_scale_time(fabs(ns));
    return g_strdup_printf(is_change ? "%+.3f %s" : "%.3f %s", ns / scale.per_unit, scale.unit);
}

static const CliRemedy *remedy_at(const CliDiagnosis *diagnosis, guint i) {
    return &g_array_index(diagnosis->remedies, CliRemedy, i);
}

/* A setting lowers a category when it takes at least 1 % of the peak off it, and adds no more
 * elsewhere. */
static bool lowers(const CliDiagnosis *diagnosis, const CliRemedy *remedy, double change) {
    return remedy->changes != NULL && remedy->reserved_bytes <= 0 &&
           change < -0.01 * (double)diagnosis->base->peak_reserved_bytes;
}

static const CliRemedy *best_for_category(const CliDiagnosis *diagnosis, unsigned category) {
    const CliRemedy *best = NULL;
    for (guint i = 0; i < diagnosis->remedies->len; i++) {
        const CliRemedy *remedy = remedy_at(diagnosis, i);
        double change = remedy->category_bytes[category];
        if (lowers(diagnosis, remedy, change) &&
            (best == NULL || change < best->category_bytes[category])) {
            best = remedy;
        }
    }
    return best;
}

/* ---- 1: memory ---- */

static void append_memory(GString *text, const CliDiagnosis *diagnosis) {
    const Trace *trace = diagnosis->trace;
    const TracePeak *peak = &diagnosis->memory->peaks[TRACE_ALLOCATED];
    g_string_append(text, "1. memory\n");
    if (!peak->known) {
        g_string_append(text, "   the trace has no memory rows\n");
        return;
    }
    g_string_append(text, "   peak allocated ");
    append_bytes(text, (double)peak->bytes, false);
    g_autofree char *place = trace_place_name(trace, peak->phase, peak->unit);
    g_autofree char *when = trace_step_name(peak->step);
    g_string_append_printf(text, ", in %s, %s; predicted peak reserved ", when, place);
    append_bytes(text, (double)diagnosis->base->peak_reserved_bytes, false);
    g_string_append(text, " of ");
    append_bytes(text, (double)diagnosis->base->allocator_bytes, false);
    g_string_append_printf(text, ": %s\n", diagnosis->base->fits ? "fits" : "does NOT fit");
    for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
        const char *name = plan_category_name(category);
        uint64_t held = trace_peak_category(trace, peak, name);
        if (held == 0) {
            continue;
        }
        g_string_append_printf(text, "   %-14s", name);
        append_bytes(text, (double)held, false);
        const CliRemedy *best = best_for_category(diagnosis, category);
        if (best != NULL) {
            g_autofree char *step = time_text(best->step_ns, true);
            g_string_append_printf(text, "; with %s ", best->changes);
            if (diagnosis->base->fits) { /* else the trace ends before the peak does */
                append_bytes(text, best->category_bytes[category], true);
                g_string_append(text, " (");
            }
            g_string_append(text, "peak reserved ");
            append_bytes(text, best->reserved_bytes, true);
            g_string_append_printf(text, ", step %s%s", step, diagnosis->base->fits ? ")" : "");
        }
        g_string_append_c(text, '\n');
    }
}

/* What else there is to say of a prediction's memory, after `before`. */
static void append_room(GString *text, const char *before, bool fits, uint64_t n_retries,
                        unsigned n_steps) {
    if (!fits) {
        g_string_append_printf(text, "%sdoes not fit", before);
    } else if (n_retries > 0) {
        g_autofree char *retries = trace_retries_text(n_retries, n_steps);
        g_string_append_printf(text, "%s%s", before, retries);
    }
}

/* ---- 2 to 5: time ---- */

static void append_collectives(GString *text, const CliDiagnosis *diagnosis) {
    const Trace *trace = diagnosis->trace;
    double n = diagnosis->idle.n_steps;
    g_string_append(text, "2. communication in a step, mean of the steady ones\n");
    guint n_said = 0;
    for (guint kind = 0; kind < trace->kinds->len; kind++) {
        TraceKindTime time = trace_summary_kind(diagnosis->summary, kind);
        if (trace_kind(trace, kind)->kind_class != TRACE_KIND_COLLECTIVE || time.total_ns == 0) {
            continue;
        }
        g_autofree char *total = time_text((double)time.total_ns / n, false);
        g_autofree char *exposed = time_text((double)time.exposed_ns / n, false);
        g_string_append_printf(text, "   %-16s %12s, exposed %12s, %3.0f %% hidden\n",
                               trace_kind(trace, kind)->name, total, exposed,
                               100 * (1 - (double)time.exposed_ns / (double)time.total_ns));
        n_said++;
    }
    if (n_said == 0) {
        g_string_append(text, "   none\n");
    }
}

static void append_jitter(GString *text, const CliDiagnosis *diagnosis) {
    TraceSpread spread = trace_summary_spread(diagnosis->summary);
    if (spread.n == 0) {
        g_string_append(text, "3. jitter: no steady step was recorded\n");
        return;
    }
    g_autofree char *low = time_text(spread.least_ns, false);
    g_autofree char *high = time_text(spread.most_ns, false);
    if (spread.n == 1) {
        g_string_append_printf(text, "3. jitter: unknown, since one step was recorded (%s)\n", low);
        return;
    }
    if (spread.least_ns == spread.most_ns) {
        g_string_append_printf(text, "3. jitter: none, each of %u steady steps takes %s\n",
                               spread.n, low);
        return;
    }
    g_string_append_printf(text, "3. jitter: %u steady steps from %s to %s (%.1f %%)\n", spread.n,
                           low, high, 100 * (spread.most_ns / spread.least_ns - 1));
}

/* The share of a step from which waiting for the host is called host-bound. Assumed: a threshold
 * for one word; the shares themselves are printed below it. */
#define MOST_SHARE_IDLE_FOR_HOST 0.2

/* A predicted step may be host-bound although its kernels mostly wait for collectives, as those are
 * issued late. A measured trace does not tell how long its host was busy. */
static bool is_host_bound(const CliDiagnosis *diagnosis, double step_ns) {
    bool is_predicted = g_str_equal(trace_get(diagnosis->trace, "side"), "predicted");
    return (double)diagnosis->idle.idle_ns[TRACE_IDLE_HOST] > MOST_SHARE_IDLE_FOR_HOST * step_ns ||
           (is_predicted && sim_is_host_bound(diagnosis->base));
}

static void append_idle(GString *text, const CliDiagnosis *diagnosis) {
    const TraceIdleBook *idle = &diagnosis->idle;
    double all_ns = (double)idle->busy_ns;
    for (guint i = 0; i < TRACE_N_IDLES; i++) {
        all_ns += (double)idle->idle_ns[i];
    }
    if (all_ns == 0) {
        g_string_append_printf(text, "4. compute lane: no %s was recorded\n",
                               idle->n_steps == 0 ? "steady step" : "op of a steady step");
        return;
    }
    bool host_bound = is_host_bound(diagnosis, all_ns);
    bool retries = host_bound && idle->n_returns > 0;
    const char *why = retries ? ", by allocation retries (see 5) too" : "";
    g_string_append_printf(text,
                           "4. %shost-bound%s: the compute lane is busy for %.1f %% of a step\n",
                           host_bound ? "" : "not ", why, 100 * (double)idle->busy_ns / all_ns);
    for (guint i = 0; i < TRACE_N_IDLES; i++) {
        double percent = 100 * (double)idle->idle_ns[i] / all_ns;
        if (percent >= 0.05) { /* a row of 0.0 % says nothing */
            g_string_append_printf(text, "   %-36s %5.1f %%\n", trace_idle_name(i), percent);
        }
    }
    if (idle->n_ops > 0) {
        g_autofree char *mean = time_text((double)idle->busy_ns / idle->n_ops, false);
        g_string_append_printf(text, "   %u kernels in a step, %s each on average\n",
                               idle->n_ops / idle->n_steps, mean);
    }
}

static void append_allocator(GString *text, const CliDiagnosis *diagnosis) {
    guint n_returns = diagnosis->idle.n_returns;
    guint64 retries = diagnosis->base->alloc_retries;
    if (n_returns == 0 && retries == 0) {
        g_string_append(text, "5. allocator: no retries, neither in the trace nor predicted\n");
        return;
    }
    g_autofree char *predicted = trace_retries_text(retries, diagnosis->base->n_steps);
    g_string_append_printf(text,
                           "5. allocator: freed cached memory %u time%s in the trace; %s "
                           "predicted\n",
                           n_returns, n_returns == 1 ? "" : "s", predicted);
}

/* ---- 6: settings ---- */

/* Neither "+0.0 %" nor "-0.0 %". */
static void append_share(GString *text, double share) {
    bool is_none = fabs(100 * share) < 0.05;
    g_string_append_printf(text, is_none ? " %6.1f %%" : " %+6.1f %%", is_none ? 0 : 100 * share);
}

static void append_remedy(GString *text, const CliDiagnosis *diagnosis, const CliRemedy *remedy) {
    g_string_append_printf(text, "   %-35s", remedy->changes);
    append_share(text, remedy->step_ns / (double)diagnosis->base->median_step_ns);
    g_string_append_c(text, ' ');
    append_share(text, remedy->reserved_bytes / (double)diagnosis->base->peak_reserved_bytes);
    append_room(text, "  ", remedy->fits, remedy->retries, remedy->n_steps);
    g_string_append_c(text, '\n');
}

static void append_remedies(GString *text, const CliDiagnosis *diagnosis) {
    g_autoptr(GString) inert = g_string_new(NULL);
    double step_ns = (double)diagnosis->base->median_step_ns;
    double reserved = (double)diagnosis->base->peak_reserved_bytes;
    g_string_append(text, "6. one setting changed at a time (step, peak reserved)\n");
    for (guint i = 0; i < diagnosis->remedies->len; i++) {
        const CliRemedy *remedy = remedy_at(diagnosis, i);
        if (remedy->changes == NULL) {
            continue;
        }
        if (fabs(remedy->step_ns) < 1e-3 * step_ns &&
            fabs(remedy->reserved_bytes) < 1e-3 * reserved) {
            g_string_append_printf(inert, "%s%s", inert->len > 0 ? ", " : "", remedy->changes);
            continue;
        }
        append_remedy(text, diagnosis, remedy);
    }
    g_string_append_printf(text, "   no effect: %s\n", inert->len > 0 ? inert->str : "none");
    if (diagnosis->uneven.changes != NULL) {
        g_string_append(text, "   if the router is uneven, and of ranks that share experts the "
                              "busiest gets that many\n   times its share of rows:\n");
        append_remedy(text, diagnosis, &diagnosis->uneven);
    }
}

/* ---- 7: verdict ---- */

static char *memory_verdict(const CliDiagnosis *diagnosis) {
    GString *text = g_string_new("memory: ");
    append_bytes(text, (double)diagnosis->base->peak_reserved_bytes, false);
    g_string_append(text, " needed, ");
    append_bytes(text, (double)diagnosis->base->allocator_bytes, false);
    g_string_append(text, " available");
    const CliWay *best = cli_ways_best(diagnosis->ways_to_fit);
    if (best != NULL) {
        g_autofree char *options = cli_settings_as_options(best->changes);
        g_string_append_printf(text, "; it fits with %s", options);
    } else {
        g_string_append(text, "; " CLI_NO_WAY_TO_FIT);
    }
    return g_string_free(text, FALSE);
}

char *cli_diagnosis_verdict(const CliDiagnosis *diagnosis) {
    if (!diagnosis->base->fits) {
        return memory_verdict(diagnosis);
    }
    if (diagnosis->causes->len == 0) {
        return g_strdup_printf("nothing tried saves 2 %% of a step; it is bound by %s",
                               diagnosis->base->bound_by);
    }
    const CliRemedy *first = remedy_at(diagnosis, g_array_index(diagnosis->causes, guint, 0));
    return g_strdup_printf("%s; %s", first->cause, first->remedy);
}

static void append_causes(GString *text, const CliDiagnosis *diagnosis) {
    g_autofree char *verdict = cli_diagnosis_verdict(diagnosis);
    g_string_append_printf(text, "7. bottleneck: %s\n", verdict);
    for (guint i = 0; diagnosis->ways_to_fit != NULL && i < diagnosis->ways_to_fit->len; i++) {
        const CliWay *way = &g_array_index(diagnosis->ways_to_fit, CliWay, i);
        g_autoptr(GString) reserved = g_string_new(NULL);
        append_bytes(reserved, way->reserved_bytes, false);
        g_autofree char *line = cli_way_text(way, reserved->str);
        g_string_append_printf(text, "   fits with %s\n", line);
    }
    for (guint i = 0; i < diagnosis->causes->len && i < 4; i++) {
        const CliRemedy *remedy = remedy_at(diagnosis, g_array_index(diagnosis->causes, guint, i));
        static const char *const prices[] = {
            [CLI_PRICE_NONE] = "a setting",
            [CLI_PRICE_MEMORY] = "a setting that costs memory",
            [CLI_PRICE_PRECISION] = "a setting that costs precision",
            [CLI_PRICE_PROGRAM] = "a change to the program",
            [CLI_PRICE_MACHINE] = "a faster machine",
        };
        g_autofree char *saved = time_text(-remedy->step_ns, false);
        g_string_append_printf(text, "   %u. %s: %s a step (%.1f %%) saved by %s", i + 1,
                               remedy->cause, saved, -100 * remedy->step_ns / remedy->whole_ns,
                               prices[remedy->price]);
        append_room(text, ", but with ", remedy->fits, remedy->retries, remedy->n_steps);
        g_string_append_c(text, '\n');
    }
}

/* What memory is left for. */
static void append_batch(GString *text, const CliDiagnosis *diagnosis) {
    if (diagnosis->larger_batch == 0) {
        return;
    }
    g_string_append_printf(text,
                           "   there is memory for --micro-batch %" G_GUINT64_FORMAT
                           ", which takes %.1f %% less time a token (",
                           (guint64)diagnosis->larger_batch,
                           100 * (1 - diagnosis->larger_batch_share));
    append_bytes(text, diagnosis->larger_batch_bytes, false);
    g_string_append(text, " reserved) and makes the global batch larger\n");
}

/* Against the best of the simple strategies; 1 % is called equal. */
static void append_match(GString *text, const CliDiagnosis *diagnosis, const CliBaseline *best) {
    double step_ns = (double)diagnosis->base->median_step_ns;
    if (best == NULL) {
        g_string_append(text, "   none of them fits\n");
    } else if (!diagnosis->base->fits) {
        g_string_append_printf(text, "   this strategy does not fit, %s does: use that\n",
                               best->name);
    } else if (best->step_ns < 0.99 * step_ns) {
        g_string_append_printf(
            text, "   this strategy LOSES to %s by %.1f %%: use that, or improve this\n",
            best->name, 100 * (step_ns / best->step_ns - 1));
    } else if (best->step_ns > 1.01 * step_ns) {
        g_string_append_printf(text, "   this strategy beats the best of them, %s, by %.1f %%\n",
                               best->name, 100 * (best->step_ns / step_ns - 1));
    } else {
        g_string_append_printf(text, "   this strategy is as fast as the best of them, %s\n",
                               best->name);
    }
}

static void append_baselines(GString *text, const CliDiagnosis *diagnosis) {
    const CliBaseline *best = cli_diagnosis_baseline(diagnosis);
    TraceScale scale = trace_scale_time((double)diagnosis->base->median_step_ns);
    g_string_append(text, "simple strategies for comparison, checkpointed where that is better\n");
    for (guint i = 0; i < CLI_N_BASELINES; i++) {
        const CliBaseline *baseline = &diagnosis->baselines[i];
        if (baseline->refusal != NULL) {
            g_string_append_printf(text, "   %-32s not possible: %s\n", baseline->name,
                                   baseline->refusal);
            continue;
        }
        double per_unit = scale.per_unit;
        g_string_append_printf(text, "   %-32s step %.3f %s, peak reserved ", baseline->name,
                               baseline->step_ns / per_unit, scale.unit);
        append_bytes(text, baseline->reserved_bytes, false);
        g_string_append(text, baseline->less_precise ? ", without fp32 weights" : "");
        append_room(text, ", ", baseline->fits, baseline->retries, baseline->n_steps);
        g_string_append_c(text, '\n');
    }
    append_match(text, diagnosis, best);
}

/* Why it takes longer than where ranks are alike. */
static void append_unlike(GString *text, const CliDiagnosis *diagnosis) {
    const CliWhatIf *what_if = diagnosis->what_if;
    if (what_if->unlike != NULL) {
        g_string_append_printf(
            text,
            "%s has %s: no GPU stands for all there, so every one was played of the plan as it is, "
            "which takes long; of what is changed one on each kind of node, and every one again "
            "where the allocator retries or memory is nearly full\n",
            what_if->cluster->name, what_if->unlike);
    }
}

/* Of stages, whose they are: each holds and waits for something else. */
static void append_ranks(GString *text, const CliDiagnosis *diagnosis) {
    if (trace_get(diagnosis->trace, "stages") != NULL) {
        g_autofree char *memory = trace_rank_text(diagnosis->trace, diagnosis->memory->rank);
        g_autofree char *times = trace_rank_text(diagnosis->trace, diagnosis->summary->rank);
        g_string_append_printf(text, "memory (1) is of %s, times (2 to 5) of %s\n", memory, times);
    }
    g_string_append_c(text, '\n');
}

char *cli_diagnosis_text(const CliDiagnosis *diagnosis) {
    GString *text = g_string_new(NULL);
    const char *title = trace_get(diagnosis->trace, "title");
    g_autofree char *step = time_text((double)diagnosis->base->median_step_ns, false);
    g_string_append_printf(
        text, "%s\na %s trace; changes are predicted on %s, where this plan takes %s a step\n",
        title != NULL ? title : "", trace_get(diagnosis->trace, "side"),
        diagnosis->what_if->cluster->name, step);
    append_unlike(text, diagnosis);
    append_ranks(text, diagnosis);
    if (!diagnosis->base->fits) {
        g_autofree char *oom = trace_oom_text(diagnosis->trace);
        g_string_append_printf(text,
                               "it does NOT fit%s%s\n"
                               "times of the trace (2 to 5) end there; predicted ones (6 and 7) "
                               "are as if memory sufficed\n\n",
                               oom != NULL ? ": " : "", oom != NULL ? oom : "");
    }
    append_memory(text, diagnosis);
    append_collectives(text, diagnosis);
    append_jitter(text, diagnosis);
    append_idle(text, diagnosis);
    append_allocator(text, diagnosis);
    append_remedies(text, diagnosis);
    append_causes(text, diagnosis);
    append_batch(text, diagnosis);
    append_baselines(text, diagnosis);
    return g_string_free(text, FALSE);
}
