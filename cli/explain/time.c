/* Steps, rates, lanes and collectives: from op rows to the number. */
#include "cli/explain/private.h"
#include "cli/predict/predict.h"
#include "sim/costs/compute.h"
#include "sim/costs/issue.h"
#include "sim/figures.h"
#include "trace/fullest.h"
#include "trace/idle.h"

enum {
    MOST_ROWS = 24
};

static double ms(double ns) {
    return ns / 1e6;
}

/* Says so, where the play left no steady step: then there is nothing to take a mean of. */
static bool lacks_steps(GString *text, const CliSubject *subject, const char *name) {
    bool lacks = trace_summary_spread(subject->summary).n == 0;
    if (lacks) {
        g_string_append_printf(text, "%s: no steady step was recorded\n", name);
    }
    return lacks;
}

/* ---- the step ---- */

void explain_step(GString *text, const CliSubject *subject) {
    const TraceSummary *summary = subject->summary;
    TraceSpread spread = trace_summary_spread(summary);
    guint n = spread.n;
    if (lacks_steps(text, subject, "step_ms")) {
        return;
    }
    g_string_append_printf(text,
                           "step_ms = %.6f: the median of %u steady steps (all but the first "
                           "two)\n",
                           ms(spread.median_ns), n);
    g_string_append_printf(text, "step_ms_p95 = %.6f: at least 95 %% of them take no longer\n",
                           ms(spread.p95_ns));
    g_string_append(text,
                    "a step lasts from the end of the compute lane's last op in the step before to "
                    "the end of its own last op there\n");
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (step->step >= 0) {
            g_string_append_printf(text, "  step %-3d %12.6f ms to %12.6f ms: %12.6f ms%s\n",
                                   step->step, ms((double)step->start_ns), ms((double)step->end_ns),
                                   ms((double)trace_step_time_ns(step)),
                                   trace_summary_is_steady(summary, i) ? "" : "  not steady");
        }
    }
    g_string_append(text,
                    "by phase: ops of the compute lane, each with the wait before it; mean of the "
                    "steady steps\n");
    for (guint phase = 0; phase < subject->trace->phases->len; phase++) {
        double sum = 0;
        for (guint i = 0; i < summary->n_steps; i++) {
            sum +=
                trace_summary_is_steady(summary, i) ? (double)summary->steps[i].phase_ns[phase] : 0;
        }
        if (sum > 0) {
            g_string_append_printf(text, "  %-12s %12.6f ms\n",
                                   (const char *)subject->trace->phases->pdata[phase], ms(sum / n));
        }
    }
}

/* ---- rates ---- */

void explain_rate(GString *text, const CliSubject *subject) {
    double step_ns = trace_summary_spread(subject->summary).median_ns;
    if (!(step_ns > 0)) { /* NAN without a step, 0 where it ends before its first kernel */
        g_string_append(text, "tokens_per_s_per_gpu, tflops_per_gpu and mfu: no steady step with "
                              "a kernel was recorded\n");
        return;
    }
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    double flops = subject->prediction->flops;
    double peak_ns = subject->prediction->mfu * (double)subject->prediction->median_step_ns;
    double tokens = (double)subject->plan->tokens_per_rank;
    g_string_append_printf(text,
                           "tokens_per_s_per_gpu = %.3f = %.0f tokens of a rank in a step / "
                           "%.6f ms\n",
                           tokens / (step_ns / 1e9), tokens, ms(step_ns));
    g_string_append_printf(text,
                           "tflops_per_gpu = %.6f = %.6e operations of a step / %.6f ms / 1e12\n"
                           "  operations of matrix products and attention, two for a multiply-add; "
                           "recomputation is not counted\n",
                           flops / step_ns / 1e3, flops, ms(step_ns));
    g_string_append_printf(
        text,
        "mfu = %.6f = %.6f ms / %.6f ms: the time of those operations at the peak "
        "rate of their dtype on %s, and the step\n",
        peak_ns / step_ns, ms(peak_ns), ms(step_ns), subject->cluster->name);
}

/* ---- busy, host, idle ---- */

void explain_busy(GString *text, const CliSubject *subject) {
    TraceIdleBook book = trace_idle_book(subject->trace, subject->summary);
    guint n = book.n_steps;
    if (lacks_steps(text, subject, "compute_ms")) {
        return;
    }
    g_string_append_printf(text,
                           "compute_ms = %.6f: the mean of %u steady steps, in which %u ops of the "
                           "compute lane take %.6f ms\nby kind, mean of a step\n",
                           ms((double)book.busy_ns / n), n, book.n_ops, ms((double)book.busy_ns));
    for (guint kind = 0; kind < subject->trace->kinds->len; kind++) {
        TraceKindTime time = trace_summary_kind(subject->summary, kind);
        bool collective = trace_kind(subject->trace, kind)->kind_class == TRACE_KIND_COLLECTIVE;
        if (time.count > 0 && !collective) {
            g_string_append_printf(text, "  %-24s %6u x, %12.6f ms\n",
                                   trace_kind(subject->trace, kind)->name, time.count / n,
                                   ms((double)time.total_ns / n));
        }
    }
}

/* What units, parameters, lists, shared layers, checkpoints and further kernels cost beside the
 * instructions; 0 where no plan is at hand. */
static double python_us(const CliSubject *subject) {
    if (subject->plan == NULL) {
        return 0;
    }
    const PlanRole *role = &subject->plan->roles[subject->summary->role];
    const ModelCluster *node = explain_node(subject);
    SimStrategy strategy = {.plan = subject->plan};
    g_autoptr(SimIssueCosts) costs = sim_issue_costs_new(&strategy, role, node);
    SimKernels kernels = sim_kernels_chosen(&strategy, role, node);
    double us = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind == PLAN_LAUNCH) {
            const PlanOp *op = &role->ops[instr->arg];
            bool collective = plan_op_is_collective(op->kind);
            SimComputeCost cost;
            us += (double)sim_issue_cost(costs, instr) / 1e3 -
                  (collective ? costs->collective_us : costs->launch_us);
            if (!collective && sim_compute_cost(node, role, op, kernels, &cost)) {
                us += (double)sim_issue_further_cost(costs, op->kind, cost.kernels) / 1e3;
            }
        }
    }
    return us;
}

/* What a prediction of the host has beyond the instructions, where its rank is the rows'. */
static double allocator_calls_us(const CliSubject *subject, double instructions_us) {
    static const double ROUNDED = 1e-3; /* each instruction's cost is a whole number of ns */
    const SimPrediction *prediction = subject->prediction;
    bool is_its = prediction != NULL && trace_rank_beside(subject->trace, prediction->time_rank) ==
                                            subject->summary->rank;
    double beyond = is_its ? (double)prediction->host_ns / 1e3 - instructions_us : 0;
    return beyond > ROUNDED * instructions_us ? beyond : 0;
}

/* Of a steady step, by what they are; collectives stand apart from the other ops. */
typedef struct {
    guint counts[TRACE_N_WHATS], collectives;
} Instructions;

static Instructions steady_instructions(const CliSubject *subject) {
    const GArray *table = trace_instructions(subject->trace, subject->summary->role);
    Instructions steady = {0};
    for (guint i = 0; i < table->len; i++) {
        const TraceInstruction *row = &g_array_index(table, TraceInstruction, i);
        if (row->section == TRACE_SECTION_STEADY) {
            bool collective =
                row->what == TRACE_OP &&
                trace_kind(subject->trace, row->kind)->kind_class == TRACE_KIND_COLLECTIVE;
            steady.counts[row->what] += !collective;
            steady.collectives += collective;
        }
    }
    return steady;
}

void explain_host(GString *text, const CliSubject *subject) {
    if (subject->cluster == NULL) {
        g_string_append(text,
                        "the trace names no cluster, so what an instruction costs the host is "
                        "unknown; give --cluster\n");
        return;
    }
    Instructions steady = steady_instructions(subject);
    const guint *counts = steady.counts;
    const ModelCluster *cluster = explain_node(subject);
    double f = cluster->host_cpu_factor;
    const struct {
        const char *name;
        guint count;
        double us;
    } rows[] = {
        {"alloc", counts[TRACE_ALLOC], f * cluster->host_alloc_us},
        {"free", counts[TRACE_FREE], f * cluster->host_free_us},
        {"mark", counts[TRACE_MARK], f * cluster->host_mark_us},
        {"launch of a kernel", counts[TRACE_OP], f * cluster->host_launch_us},
        {"launch of a collective", steady.collectives, f * cluster->host_collective_us},
        {"record", counts[TRACE_RECORD], f * cluster->host_record_us},
        {"wait", counts[TRACE_WAIT], f * cluster->host_wait_us},
        {"host wait", counts[TRACE_HOST_WAIT], f * cluster->host_host_wait_us},
        {"host op", counts[TRACE_HOST_OP], f * cluster->host_host_op_us},
        {"Python around launches", 1, python_us(subject)},
    };
    double sum = 0;
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        sum += rows[i].count * rows[i].us;
    }
    double calls = allocator_calls_us(subject, sum);
    g_string_append_printf(text,
                           "host_ms = %.6f: the instructions of a steady step, each at its host "
                           "cost in %s, and calls of the allocator to the device%s\n",
                           (sum + calls) / 1e3, cluster->name,
                           subject->prediction != NULL ? "" : ", which are not counted here");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_string_append_printf(text, "  %6u x %-24s %8.3f us = %12.6f ms\n", rows[i].count,
                               rows[i].name, rows[i].us, rows[i].count * rows[i].us / 1e3);
    }
    if (calls > 0) {
        g_string_append_printf(text,
                               "  %12.6f ms of calls of the allocator to the device, a steady "
                               "step's mean\n",
                               calls / 1e3);
    }
    if (counts[TRACE_HOST_WAIT] > 0) {
        g_string_append(
            text, "a host wait costs that much on top of the waiting, in which the host issues "
                  "nothing: at the end of a step (step_sync), to read a number (host_reads, "
                  "optimizer_count), in FSDP1's limiter, for what is offloaded\n");
    }
}

static void append_idle(GString *text, const TraceIdleBook *book) {
    guint n = book->n_steps;
    g_string_append(text, "time of the compute lane by the trace's rows, mean of a steady step\n");
    g_string_append_printf(text, "  %-46s %12.6f ms\n", "busy", ms((double)book->busy_ns / n));
    for (guint i = 0; i < TRACE_N_IDLES; i++) {
        g_string_append_printf(text, "  %-46s %12.6f ms\n", trace_idle_name(i),
                               ms((double)book->idle_ns[i] / n));
    }
}

void explain_idle(GString *text, const CliSubject *subject) {
    TraceIdleBook book = trace_idle_book(subject->trace, subject->summary);
    const SimPrediction *prediction = subject->prediction;
    if (!lacks_steps(text, subject, "the compute lane's time")) {
        append_idle(text, &book);
    }
    if (prediction == NULL) {
        return;
    }
    g_string_append_printf(
        text, "bound_by = %s: %s, predicted on %s\n", prediction->bound_by,
        sim_is_host_bound(prediction)
            ? "it issues for nearly all of a step, whatever the compute lane does"
            : "the largest of these shares",
        subject->cluster->name);
    for (guint i = 0; i < SIM_N_CAUSES; i++) {
        if (prediction->cause_ns[i] > 0) {
            g_string_append_printf(text, "  %-46s %12.6f ms\n", prediction->cause_names[i],
                                   ms((double)prediction->cause_ns[i]));
        }
    }
}

/* ---- collectives ---- */

/* Of the tensors, in all steady steps. */
static double collective_bytes(const CliSubject *subject, uint32_t kind) {
    const Trace *trace = subject->trace;
    double bytes = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        const TraceInstruction *op =
            row->rank == subject->summary->rank
                ? trace_instruction(trace, subject->summary->role, row->instruction)
                : NULL;
        if (op != NULL && op->kind == kind &&
            trace_summary_step_is_steady(subject->summary, row->step)) {
            bytes += (double)op->bytes;
        }
    }
    return bytes;
}

void explain_collective(GString *text, const CliSubject *subject, uint32_t kind) {
    const Trace *trace = subject->trace;
    const char *name = trace_kind(trace, kind)->name;
    guint n = trace_summary_spread(subject->summary).n;
    if (lacks_steps(text, subject, name)) {
        return;
    }
    TraceKindTime time = trace_summary_kind(subject->summary, kind);
    g_string_append_printf(text,
                           "comm.%s.total_ms = %.6f: the sum of %u durations, mean of %u steady "
                           "steps\ncomm.%s.exposed_ms = %.6f: the part during which the compute "
                           "lane runs no kernel\ncomm.%s.count = %u: in a step\n"
                           "comm.%s.bytes = %.0f: of their tensors, in a step\n"
                           "in the first steady step\n",
                           name, ms((double)time.total_ns / n), time.count / n, n, name,
                           ms((double)time.exposed_ns / n), name, time.count / n, name,
                           collective_bytes(subject, kind) / n);
    guint shown = 0;
    int32_t step = INT32_MIN;
    for (guint i = 0; i < trace->ops->len && shown < MOST_ROWS; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        const TraceInstruction *op =
            row->rank == subject->summary->rank
                ? trace_instruction(trace, subject->summary->role, row->instruction)
                : NULL;
        if (op == NULL || op->kind != kind ||
            !trace_summary_step_is_steady(subject->summary, row->step) ||
            (step != INT32_MIN && row->step != step)) {
            continue;
        }
        step = row->step;
        shown++;
        g_autofree char *place = explain_place(subject, row->instruction);
        g_string_append_printf(text, "  %12.6f ms, from %12.6f ms, %" G_GUINT64_FORMAT " B, %s\n",
                               ms((double)(row->end_ns - row->start_ns)), ms((double)row->start_ns),
                               (guint64)op->bytes, place);
    }
    if (time.count / n > shown) {
        g_string_append_printf(text, "  and %u more\n", time.count / n - shown);
    }
}
