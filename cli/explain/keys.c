/* cli/explain/keys.c - the keys of `foreshard predict --json`, and what explains each. */
#include "cli/explain/private.h"
#include "sim/time.h"

static void explain_allocated(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_ALLOCATED);
}

static void explain_peak_time(GString *text, const CliSubject *subject) {
    const TracePeak *peak = &subject->summary->peaks[TRACE_ALLOCATED];
    if (peak->known) {
        g_string_append_printf(text,
                               "peak_at_ms = %.6f: host time since the first step began, when "
                               "most is allocated\n",
                               sim_ms(peak->host_ns));
    }
    explain_allocated(text, subject);
}

static void explain_active(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_ACTIVE);
}

static void explain_reserved(GString *text, const CliSubject *subject) {
    explain_peak(text, subject, TRACE_RESERVED);
}

static void explain_all_held(GString *text, const CliSubject *subject) {
    explain_held(text, subject, NULL);
}

static void explain_collectives(GString *text, const CliSubject *subject) {
    bool any = false;
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        if (trace_summary_has_kind(subject->summary, kind) &&
            trace_kind(subject->trace, kind)->kind_class == TRACE_KIND_COLLECTIVE) {
            explain_collective(text, subject, kind);
            any = true;
        }
    }
    g_string_append(text, any ? "" : "comm: this play has no collectives\n");
}

const ExplainKey explain_keys[] = {
    {"step_ms", "time", explain_step},
    {"step_ms_p95", "time", explain_step},
    {"compute_ms", "time", explain_busy},
    {"host_ms", "time", explain_host},
    {"bound_by", "time", explain_idle},
    {"comm", "time", explain_collectives},
    {"pipeline", "time", explain_pipeline},
    {"evaluation", "time", explain_evaluation},
    {"tokens_per_s_per_gpu", "rate, price", explain_rate},
    {"tflops_per_gpu", "rate, price", explain_rate},
    {"mfu", "rate, price", explain_rate},
    {"kwh_per_million_tokens", "rate, price", explain_spending},
    {"price_per_million_tokens", "rate, price", explain_spending},
    {"peak_allocated_bytes", "memory", explain_allocated},
    {"peak_active_bytes", "memory", explain_active},
    {"peak_reserved_bytes", "memory", explain_reserved},
    {"peak_at_ms", "memory", explain_peak_time},
    {"peak_by_category", "memory", explain_all_held},
    {"alloc_retries", "memory", explain_retries},
    {"alloc_retry_rate", "memory", explain_retries},
    {"allocator_bytes", "memory", explain_fits},
    {"outside_allocator_bytes", "memory", explain_fits},
    {"workspace_bytes", "memory", explain_fits},
    {"fits", "verdicts", explain_fits},
    {"near_edge", "verdicts", explain_near_edge},
    {"oom", "verdicts", explain_oom},
    {"ways_to_fit", "verdicts", explain_ways_to_fit},
    {"ways_without_retries", "verdicts", explain_ways_without_retries},
    {"unsupported_dtype", "verdicts", explain_dtypes},
    {"trains_well", "verdicts", explain_trains_well},
    {"published_errors", "verdicts", explain_published},
    {"plan_digest", "what was played", explain_identity},
    {"cluster", "what was played", explain_identity},
    {"every_rank", "what was played", explain_ranks},
};
const guint explain_n_keys = G_N_ELEMENTS(explain_keys);
