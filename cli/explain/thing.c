/* Units, kinds of ops and single instructions. */
#include <string.h>

#include "cli/explain/private.h"
#include "plan/op/work.h"
#include "sim/costs/compute.h"
#include "sim/costs/network.h"
#include "sim/costs/ops.h"

enum {
    MOST_ROWS = 40
};

static double ms(double ns) {
    return ns / 1e6;
}

/* Mean duration of an instruction over the steady steps in which it has a row. */
static double mean_ns(const CliSubject *subject, uint32_t instruction, guint *ret_n) {
    double sum = 0;
    guint n = 0;
    for (guint i = 0; i < subject->trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(subject->trace, i);
        if (row->rank == subject->summary->rank && row->instruction == instruction) {
            sum += (double)(row->end_ns - row->start_ns);
            n++;
        }
    }
    *ret_n = n;
    return n > 0 ? sum / n : 0;
}

static const TraceInstruction *instruction_at(const CliSubject *subject, uint32_t number) {
    return trace_instruction(subject->trace, subject->summary->role, number);
}

static void append_op_line(GString *text, const CliSubject *subject, uint32_t number) {
    const TraceInstruction *op = instruction_at(subject, number);
    g_autofree char *place = explain_place(subject, number);
    guint n;
    double ns = mean_ns(subject, number, &n);
    g_autofree char *time = n > 0 ? g_strdup_printf("%.6f ms", ms(ns)) : g_strdup("not recorded");
    g_string_append_printf(text, "  %15s  %-18s on lane %-9s %s%s%s\n", time,
                           trace_kind(subject->trace, op->kind)->name,
                           (const char *)subject->trace->lanes->pdata[op->lane], place,
                           op->module != TRACE_NONE ? ", module " : "",
                           trace_name(subject->trace->modules, op->module, ""));
}

/* Steady ops of a unit (kind TRACE_NONE) or of a kind (unit TRACE_NONE). */
static void append_ops(GString *text, const CliSubject *subject, uint32_t unit, uint32_t kind) {
    const GArray *table = trace_instructions(subject->trace, subject->summary->role);
    guint n = 0;
    for (guint i = 0; i < table->len; i++) {
        const TraceInstruction *op = instruction_at(subject, i);
        bool meant = op->section == TRACE_SECTION_STEADY &&
                     (op->what == TRACE_OP || op->what == TRACE_HOST_OP) &&
                     (kind == TRACE_NONE ? op->unit == unit : op->kind == kind);
        if (meant && n++ < MOST_ROWS) {
            append_op_line(text, subject, i);
        }
    }
    if (n > MOST_ROWS) {
        g_string_append_printf(text, "  and %u more\n", n - MOST_ROWS);
    }
}

/* ---- a unit ---- */

static void append_parameters(GString *text, const CliSubject *subject, uint32_t unit) {
    const PlanUnit *row = &subject->plan->units[unit];
    g_string_append_printf(text,
                           "%" G_GUINT64_FORMAT " elements; a rank keeps %" G_GUINT64_FORMAT
                           " of them, padding included\n",
                           (guint64)row->elements, (guint64)row->shard_elements);
    for (uint32_t i = 0; i < subject->plan->n_parameters; i++) {
        const PlanParameter *parameter = &subject->plan->parameters[i];
        if (parameter->unit == unit) {
            g_string_append_printf(text, "  %16" G_GUINT64_FORMAT " %s\n",
                                   (guint64)parameter->elements, parameter->name);
        }
    }
}

/* What the unit's own instructions allocate in a steady step, by category. */
static void append_allocations(GString *text, const CliSubject *subject, uint32_t unit) {
    const Trace *trace = subject->trace;
    const GArray *table = trace_instructions(trace, subject->summary->role);
    g_string_append(text, "allocated for it in a steady step\n");
    for (guint category = 0; category < trace->categories->len; category++) {
        uint64_t bytes = 0;
        guint n = 0;
        for (guint i = 0; i < table->len; i++) {
            const TraceInstruction *row = instruction_at(subject, i);
            if (row->section == TRACE_SECTION_STEADY && row->what == TRACE_ALLOC &&
                row->unit == unit && row->category == category) {
                bytes += row->bytes;
                n++;
            }
        }
        if (n > 0) {
            g_string_append_printf(text, "  %-26s %16" G_GUINT64_FORMAT " B in %u buffer%s\n",
                                   (const char *)trace->categories->pdata[category], (guint64)bytes,
                                   n, n == 1 ? "" : "s");
        }
    }
}

void explain_unit(GString *text, const CliSubject *subject, uint32_t unit) {
    g_string_append_printf(text, "unit %s\n", (const char *)subject->trace->units->pdata[unit]);
    if (subject->plan != NULL) {
        append_parameters(text, subject, unit);
    }
    append_allocations(text, subject, unit);
    g_string_append(text, "its ops in the order of issue, with mean durations\n");
    append_ops(text, subject, unit, TRACE_NONE);
}

/* ---- a kind of op, and one op ---- */

/* Of all of them, for the list may end before they do. */
static void append_sum(GString *text, const CliSubject *subject, uint32_t kind) {
    const TraceSummary *summary = subject->summary;
    TraceKindTime time = trace_summary_kind(summary, kind);
    double ns = (double)time.total_ns, steps_ns = 0;
    guint n_steps = 0;
    for (guint i = 0; i < summary->n_steps; i++) {
        if (trace_summary_is_steady(summary, i)) {
            n_steps++;
            steps_ns += (double)trace_step_time_ns(&summary->steps[i]);
        }
    }
    if (time.count > 0 && steps_ns > 0) {
        g_string_append_printf(text, "%u in a step, %.6f ms together, %.1f %% of the step\n",
                               time.count / n_steps, ms(ns / n_steps), 100 * ns / steps_ns);
    }
}

void explain_kind(GString *text, const CliSubject *subject, uint32_t kind) {
    const TraceKind *row = trace_kind(subject->trace, kind);
    if (row->kind_class == TRACE_KIND_COLLECTIVE) {
        explain_collective(text, subject, kind);
    }
    append_sum(text, subject, kind);
    g_string_append_printf(text, "each %s (%s) of a steady step, with mean durations\n", row->name,
                           trace_kind_class_name(row->kind_class));
    append_ops(text, subject, TRACE_NONE, kind);
}

static const PlanOp *plan_op_of(const CliSubject *subject, uint32_t number) {
    const TraceInstruction *row = instruction_at(subject, number);
    const PlanRole *role = &subject->plan->roles[subject->summary->role];
    return &role->ops[role->sections[row->section][row->index].arg];
}

static void append_kernel_cost(GString *text, const CliSubject *subject, const PlanOp *op) {
    const PlanRole *role = &subject->plan->roles[subject->summary->role];
    PlanOpWork work = plan_op_work(role, op);
    const ModelCluster *node = explain_node(subject);
    SimStrategy strategy = {.plan = subject->plan};
    SimKernels kernels = sim_kernels_chosen(&strategy, role, node);
    SimComputeCost cost;
    g_string_append_printf(text, "work: %.6e operations, %.6e bytes to and from memory\n",
                           work.flops, work.bytes);
    if (!sim_compute_cost(node, role, op, kernels, &cost)) {
        g_string_append_printf(text, "%s cannot compute in its dtype\n", node->name);
        return;
    }
    g_string_append_printf(text,
                           "predicted alone on %s: gap %.6f ms + the larger of arithmetic %.6f ms "
                           "and memory traffic %.6f ms = %.6f ms (longer below where collectives "
                           "run at the same time)\n",
                           node->name, ms(cost.overhead_ns), ms(cost.flops_ns), ms(cost.bytes_ns),
                           ms((double)sim_compute_time(&cost)));
}

static void append_collective_cost(GString *text, const CliSubject *subject, const PlanOp *op) {
    const PlanRole *role = &subject->plan->roles[subject->summary->role];
    double bytes = plan_op_work(role, op).bytes;
    SimNetworkPath path = sim_op_path(subject->cluster, subject->plan, role, op);
    SimNetworkCost cost = sim_network_cost(subject->cluster, &path, op->kind, bytes);
    g_string_append_printf(text, "a tensor of %.0f bytes among %u ranks on %u nodes", bytes,
                           path.ranks, path.nodes);
    if (path.nccl) {
        SimNcclChoice choice = sim_network_choice(subject->cluster, &path, op->kind, bytes);
        g_string_append_printf(text, ", by NCCL's %s with %s", sim_nccl_algo_name(choice.algo),
                               sim_nccl_proto_name(choice.proto));
    }
    g_string_append_printf(text,
                           "\npredicted alone on %s: latency %.6f ms + transfer %.6f ms = %.6f ms "
                           "(sim/costs/network.h has the formula)\n",
                           subject->cluster->name, ms(cost.latency_ns), ms(cost.transfer_ns),
                           ms((double)sim_network_time(&cost)));
}

void explain_instruction(GString *text, const CliSubject *subject, uint32_t number) {
    const Trace *trace = subject->trace;
    const TraceInstruction *row = instruction_at(subject, number);
    g_autofree char *place = explain_place(subject, number);
    g_string_append_printf(text, "%s %s, %s:%u of the plan\n", trace_what_name(row->what), place,
                           trace_section_name(row->section), row->index);
    if (row->category != TRACE_NONE) {
        g_string_append_printf(text, "buffer %u: %s, %" G_GUINT64_FORMAT " bytes asked for\n",
                               row->buffer, (const char *)trace->categories->pdata[row->category],
                               (guint64)row->bytes);
    }
    if (row->kind != TRACE_NONE) {
        g_string_append_printf(text, "op %s\n", trace_kind(trace, row->kind)->name);
    }
    if (row->what == TRACE_OP && subject->plan != NULL && subject->cluster != NULL) {
        const PlanOp *op = plan_op_of(subject, number);
        if (plan_op_is_collective(op->kind)) {
            append_collective_cost(text, subject, op);
        } else {
            append_kernel_cost(text, subject, op);
        }
    }
    g_string_append(text, "in this trace\n");
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *op = trace_op(trace, i);
        if (op->rank == subject->summary->rank && op->instruction == number) {
            g_autofree char *step = trace_step_name(op->step);
            g_string_append_printf(text,
                                   "  %s: issued at %.6f ms, from %.6f ms to %.6f ms: %.6f ms\n",
                                   step, ms((double)op->host_issue_ns), ms((double)op->start_ns),
                                   ms((double)op->end_ns), ms((double)(op->end_ns - op->start_ns)));
        }
    }
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *memory = trace_memory(trace, i);
        if (memory->rank == subject->summary->rank && memory->instruction == number) {
            g_autofree char *step = trace_step_name(memory->step);
            g_string_append_printf(text,
                                   "  %s: at %.6f ms, %+" G_GINT64_FORMAT
                                   " B; then allocated %" G_GUINT64_FORMAT " B\n",
                                   step, ms((double)memory->host_ns), (gint64)memory->delta,
                                   (guint64)memory->allocated);
        }
    }
}
