/* cli/measured/time.c - a predicted rank's times beside a profile's (measured.h). */
#include <math.h>

#include "cli/measured/measured.h"
#include "plan/op/op.h"
#include "trace/quantile.h"
#include "trace/summary.h"

/* One figure of a step of either side; a NAN is left out of the median. */
typedef enum {
    STEP_TIME,
    COMPUTE,
    COMMUNICATION,
    EXPOSED,
    HIDDEN,
    MATMUL,
    ATTENTION,
    OTHER,
    COLLECTIVES,
    COPIES,
    KERNELS,
    N_FIGURES
} Figure;

static const struct {
    const char *name;
    MeasuredUnit unit;
} figures[N_FIGURES] = {[STEP_TIME] = {"step time", MEASURED_NS},
                        [COMPUTE] = {"computing", MEASURED_NS},
                        [COMMUNICATION] = {"communication", MEASURED_NS},
                        [EXPOSED] = {"communication, exposed", MEASURED_NS},
                        [HIDDEN] = {"communication, hidden", MEASURED_NS},
                        [MATMUL] = {"matrix products, sum", MEASURED_NS},
                        [ATTENTION] = {"attention, sum", MEASURED_NS},
                        [OTHER] = {"other kernels, sum", MEASURED_NS},
                        [COLLECTIVES] = {"collectives, sum", MEASURED_NS},
                        [COPIES] = {"copies and fills, sum", MEASURED_NS},
                        [KERNELS] = {"kernels that compute", MEASURED_COUNT}};

static double median_of(const GArray *steps, Figure figure) {
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < steps->len; i++) {
        double value = g_array_index(steps, double, i *N_FIGURES + figure);
        if (!isnan(value)) {
            g_array_append_val(values, value);
        }
    }
    return values->len > 0 ? trace_median_of(values) : NAN;
}

/* ---- the run --------------------------------------------------------------------------------- */

static GArray *measured_figures(const GArray *steps, bool has_kernels) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(double) * N_FIGURES);
    for (guint i = 0; i < steps->len; i++) {
        const ProfileStep *step = &g_array_index(steps, ProfileStep, i);
        double values[N_FIGURES] = {[COMPUTE] = (double)step->compute_ns,
                                    [COMMUNICATION] = (double)step->communication_ns,
                                    [EXPOSED] = (double)step->exposed_ns,
                                    [HIDDEN] = (double)(step->communication_ns - step->exposed_ns),
                                    [MATMUL] = (double)step->class_ns[PROFILE_MATMUL],
                                    [ATTENTION] = (double)step->class_ns[PROFILE_ATTENTION],
                                    [OTHER] = (double)step->class_ns[PROFILE_OTHER],
                                    [COLLECTIVES] = (double)step->class_ns[PROFILE_NCCL],
                                    [COPIES] = (double)step->class_ns[PROFILE_COPY],
                                    [KERNELS] = step->n_kernels};
        for (guint k = 0; k < N_FIGURES && !has_kernels; k++) {
            values[k] = NAN;
        }
        values[STEP_TIME] = step->time_ns >= 0 ? (double)step->time_ns : NAN;
        g_array_append_val(all, values);
    }
    return all;
}

/* ---- the prediction -------------------------------------------------------------------------- */

static Figure figure_of_kind(const TraceKind *kind) {
    PlanOpKind op;
    if (kind->kind_class == TRACE_KIND_COLLECTIVE) {
        return COLLECTIVES;
    }
    if (kind->kind_class == TRACE_KIND_COPY) {
        return COPIES;
    }
    if (!plan_op_kind_parse(kind->name, &op)) {
        return OTHER;
    }
    switch (plan_op_info(op)->op_class) {
    case PLAN_CLASS_MATMUL:
        return MATMUL;
    case PLAN_CLASS_ATTENTION:
        return ATTENTION;
    case PLAN_CLASS_MEMORY:
    case PLAN_CLASS_INPUT:
    case PLAN_CLASS_HOST_LINK:
    case PLAN_CLASS_COLLECTIVE:
        return OTHER;
    }
    g_assert_not_reached();
}

/* What the host does itself is no kernel. */
static void add_ops(const Trace *trace, const TraceSummary *summary, int32_t step,
                    double values[N_FIGURES]) {
    uint32_t compute = trace_compute_lane(trace);
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->rank != summary->rank || row->step != step) {
            continue;
        }
        const TraceInstruction *instruction =
            trace_instruction(trace, summary->role, row->instruction);
        const TraceKind *kind = trace_kind(trace, instruction->kind);
        double took_ns = (double)(row->end_ns - row->start_ns);
        if (instruction->what != TRACE_OP) {
            continue;
        }
        values[figure_of_kind(kind)] += took_ns;
        if (row->lane == compute && kind->kind_class != TRACE_KIND_COLLECTIVE) {
            values[COMPUTE] += took_ns;
            values[KERNELS]++;
        }
    }
}

static GArray *predicted_figures(const Trace *trace, const TraceSummary *summary) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(double) * N_FIGURES);
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (!trace_summary_is_steady(summary, i)) {
            continue;
        }
        double values[N_FIGURES] = {[STEP_TIME] = (double)trace_step_time_ns(step),
                                    [COMMUNICATION] = (double)step->communication_ns,
                                    [EXPOSED] = (double)step->exposed_ns,
                                    [HIDDEN] = (double)(step->communication_ns - step->exposed_ns)};
        add_ops(trace, summary, step->step, values);
        g_array_append_val(all, values);
    }
    return all;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static double median_of_steps(const GArray *steps, bool of_waits) {
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < steps->len; i++) {
        const ProfileStep *step = &g_array_index(steps, ProfileStep, i);
        double value = (double)(of_waits ? step->waits_ns : step->calls_ns);
        g_array_append_val(values, value);
    }
    return values->len > 0 ? trace_median_of(values) : NAN;
}

static void add_host(Measured *measured, const GArray *steps) {
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < steps->len; i++) {
        double n = g_array_index(steps, ProfileStep, i).n_calls;
        g_array_append_val(counts, n);
    }
    measured_add(measured, "host: CUDA calls", MEASURED_COUNT, NAN,
                 counts->len > 0 ? trace_median_of(counts) : NAN);
    measured_add(measured, "host: their time", MEASURED_NS, NAN, median_of_steps(steps, false));
    measured_add(measured, "host: waits for the GPU", MEASURED_NS, NAN,
                 median_of_steps(steps, true));
}

static void note_run(Measured *measured, const Trace *trace, const Profile *profile,
                     const GArray *steps, StepsFrom from) {
    const char *world = trace_get(trace, "world");
    if (profile->kernels->len == 0) {
        measured_note(measured, "the profile has no kernels, only the host's steps: "
                                "record with activities=[ProfilerActivity.CPU, "
                                "ProfilerActivity.CUDA]");
    }
    if (from == STEPS_UNKNOWN) {
        measured_note(measured, "no steps were found in the profile (no ProfilerStep#, no "
                                "Optimizer.step#, no kernels that repeat themselves): call the "
                                "profiler's step() after each");
    } else if (from == STEPS_REPEATED) {
        measured_note(measured, "steps were found by kernels that repeat themselves: each is as "
                                "long as a step, but may begin within one");
    }
    if (profile->kernels->len > 0 && profile->calls->len == 0) {
        measured_note(measured,
                      "the profile has no calls of the host: a kernel counts for the step "
                      "in which it begins");
    }
    if (steps->len == 1) {
        measured_note(measured, "only one step was recorded; a step's time needs two or more, from "
                                "end to end");
    }
    if (world && profile->world >= 0 && g_ascii_strtoll(world, NULL, 10) != profile->world) {
        measured_note(measured, "the run had %" G_GINT64_FORMAT " ranks, the prediction %s",
                      (gint64)profile->world, world);
    }
}

Measured *measured_time(const Trace *trace, const Profile *profile, const MeasuredOptions *options,
                        GError **error) {
    uint32_t rank = measured_rank(trace, options, error);
    if (rank == TRACE_NONE) {
        return NULL;
    }
    StepsFrom from;
    g_autoptr(GArray) steps = profile_steps(profile, &from);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
    g_autoptr(GArray) predicted = predicted_figures(trace, summary);
    g_autoptr(GArray) run = measured_figures(steps, profile->kernels->len > 0);
    g_autoptr(Measured) measured = measured_new("time");
    g_autofree char *run_rank =
        profile->rank >= 0 ? g_strdup_printf("rank %" G_GINT64_FORMAT ", ", (gint64)profile->rank)
                           : g_strdup("");
    measured->paired = NAN;
    measured->sources[0] =
        g_strdup_printf("%s: rank %u, median of %u steady step%s", options->trace_name, rank,
                        predicted->len, predicted->len == 1 ? "" : "s");
    measured->sources[1] = g_strdup_printf(
        "%s: %sdevice %" G_GINT64_FORMAT ", %u kernels and copies, median of %u step%s by %s",
        options->file_name, run_rank, (gint64)profile->device, profile->kernels->len, steps->len,
        steps->len == 1 ? "" : "s", steps_from_text(from));
    for (guint i = 0; i < N_FIGURES; i++) {
        measured_add(measured, figures[i].name, figures[i].unit, median_of(predicted, i),
                     median_of(run, i));
    }
    if (profile->calls->len > 0) {
        add_host(measured, steps);
    }
    if (profile->has_memory) {
        measured_add(measured, "peak allocated", MEASURED_BYTES,
                     (double)summary->peaks[TRACE_ALLOCATED].bytes, (double)profile->allocated);
        measured_add(measured, "peak reserved", MEASURED_BYTES,
                     (double)summary->peaks[TRACE_RESERVED].bytes, (double)profile->reserved);
    }
    note_run(measured, trace, profile, steps, from);
    return g_steal_pointer(&measured);
}
