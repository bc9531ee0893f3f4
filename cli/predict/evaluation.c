#include "cli/predict/evaluation.h"

#include "cli/say/prose.h"
#include "plan/strategy/strategy.h"
#include "sim/figures.h"
#include "trace/json.h"
#include "trace/scale.h"

bool cli_evaluation_of(const Plan *plan, const SimPrediction *prediction, CliEvaluation *ret) {
    PlanStrategy strategy;
    if (!prediction->evaluation_ns || !plan_strategy_of_text(&strategy, plan->strategy, NULL)) {
        return false;
    }
    *ret = (CliEvaluation){
        .passes = strategy.eval_batches,
        .sequences = plan_strategy_evaluated_at_once(&strategy),
        .steps = (double)prediction->evaluation_ns / (double)MAX(prediction->median_step_ns, 1),
        .holds_the_peak = prediction->peak.at.phase == PLAN_PHASE_EVALUATION,
    };
    return true;
}

void cli_evaluation_print(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    CliEvaluation asked;
    if (!cli_evaluation_of(report->plan, prediction, &asked)) {
        return;
    }
    g_autofree char *most = trace_bytes_text((double)prediction->evaluation_allocated_bytes);
    g_autofree char *reserved = trace_bytes_text((double)prediction->evaluation_reserved_bytes);
    printf("\nevaluation, between the first step and the second\n");
    cli_say("  %" G_GUINT64_FORMAT " pass%s of %" G_GUINT64_FORMAT
            " sequence%s a GPU: %.3f ms, as long as %.1f steps\n",
            asked.passes, asked.passes == 1 ? "" : "es", asked.sequences,
            asked.sequences == 1 ? "" : "s", sim_ms(prediction->evaluation_ns), asked.steps);
    cli_say("  %s allocated at most, %s; %s reserved behind it\n", most,
            asked.holds_the_peak ? "which is the peak above" : "below training's peak", reserved);
}

void cli_evaluation_add_json(const CliPredictReport *report, JsonBuilder *json) {
    const SimPrediction *prediction = report->prediction;
    CliEvaluation asked;
    if (!cli_evaluation_of(report->plan, prediction, &asked)) {
        return;
    }
    trace_json_begin_object(json, "evaluation");
    trace_json_add_int(json, "passes", asked.passes);
    trace_json_add_int(json, "sequences", asked.sequences);
    trace_json_add_real(json, "ms", sim_ms(prediction->evaluation_ns));
    trace_json_add_real(json, "steps", asked.steps);
    trace_json_add_int(json, "allocated_bytes", prediction->evaluation_allocated_bytes);
    trace_json_add_int(json, "reserved_bytes", prediction->evaluation_reserved_bytes);
    trace_json_add_bool(json, "holds_the_peak", asked.holds_the_peak);
    json_builder_end_object(json);
}
