/* cli/explain/parts.c - what only some plans have: stages, and an evaluation between two steps. */
#include "cli/explain/private.h"
#include "cli/predict/evaluation.h"
#include "plan/mesh.h"
#include "sim/figures.h"

void explain_pipeline(GString *text, const CliSubject *subject) {
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    const Plan *plan = subject->plan;
    const SimPrediction *prediction = subject->prediction;
    uint32_t stages = plan->axes[PLAN_AXIS_PIPELINE];
    if (stages == 1) {
        g_string_append(text, "pipeline: this has no stages; --pipeline N makes some\n");
        return;
    }
    g_string_append_printf(
        text,
        "pipeline.stages = %u: groups of ranks with layers of their own (--pipeline); one rank of "
        "each was played%s\n"
        "pipeline.memory_of_rank = %u: it reserves the largest share of its memory\n"
        "pipeline.memory_of_stage = %u: that rank's stage, counted from 0\n"
        "pipeline.times_of_rank = %u: it waits least for others\n"
        "pipeline.times_of_stage = %u: that rank's stage\n"
        "pipeline.bubbles_ms = %.6f: that rank's compute lane has nothing to do since another "
        "stage has yet to come, mean of a steady step\n"
        "pipeline.schedule_bubbles_ms = %.6f = compute_ms, %.6f ms, x (%u stages - 1) / %.0f turns "
        "of a rank (its stages x microbatches): the part of that which remains if all stages have "
        "equally much to do and links take no time\n",
        stages, prediction->n_ranks > 0 ? ", or more" : "", prediction->memory_rank,
        plan_rank_on_axis(plan, prediction->memory_rank, PLAN_AXIS_PIPELINE), prediction->time_rank,
        plan_rank_on_axis(plan, prediction->time_rank, PLAN_AXIS_PIPELINE),
        sim_ms(prediction->cause_ns[SIM_CAUSE_RANKS]),
        sim_schedule_bubble_ns(plan, prediction) / 1e6, sim_ms(prediction->compute_ns), stages,
        (double)prediction->compute_ns * (stages - 1) /
            MAX(sim_schedule_bubble_ns(plan, prediction), 1));
}

void explain_evaluation(GString *text, const CliSubject *subject) {
    CliEvaluation evaluation;
    if (explain_needs_prediction(text, subject)) {
        return;
    }
    const SimPrediction *prediction = subject->prediction;
    if (!cli_evaluation_of(subject->plan, prediction, &evaluation)) {
        g_string_append(text, "evaluation: this has none; --eval-batches N puts one between the "
                              "first step and the second\n");
        return;
    }
    g_string_append_printf(
        text,
        "evaluation.passes = %" G_GUINT64_FORMAT ": batches of a GPU (--eval-batches)\n"
        "evaluation.sequences = %" G_GUINT64_FORMAT ": of each batch on a GPU\n"
        "evaluation.ms = %.6f: between the first step and the second\n"
        "evaluation.steps = %.6f = that / step_ms, %.6f ms\n"
        "evaluation.allocated_bytes = %" G_GUINT64_FORMAT ": the most that is allocated in it\n"
        "evaluation.reserved_bytes = %" G_GUINT64_FORMAT ": what is reserved behind it\n"
        "evaluation.holds_the_peak = %s: whether peak_allocated_bytes is in it\n",
        evaluation.passes, evaluation.sequences, sim_ms(prediction->evaluation_ns),
        evaluation.steps, sim_ms(prediction->median_step_ns),
        (guint64)prediction->evaluation_allocated_bytes,
        (guint64)prediction->evaluation_reserved_bytes,
        evaluation.holds_the_peak ? "true" : "false");
}
