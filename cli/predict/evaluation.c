#include "cli/predict/evaluation.h"

#include "cli/say/prose.h"
#include "plan/strategy/strategy.h"
#include "sim/figures.h"
#include "trace/json.h"
#include "trace/scale.h"

typedef struct {
    uint64_t passes, sequences; /* of each pass, on a rank */
} Asked;

static bool is_asked(const CliPredictReport *report, Asked *ret) {
    PlanStrategy strategy;
    if (!report->prediction->evaluation_ns ||
        !plan_strategy_of_text(&strategy, report->plan->strategy, NULL)) {
        return false;
    }
    *ret = (Asked){strategy.eval_batches, plan_strategy_evaluated_at_once(&strategy)};
    return true;
}

static bool holds_the_peak(const SimPrediction *prediction) {
    return prediction->peak.at.phase == PLAN_PHASE_EVALUATION;
}

static double steps_of(const SimPrediction *prediction) {
    return (double)prediction->evaluation_ns / (double)MAX(prediction->median_step_ns, 1);
}

void cli_evaluation_print(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    Asked asked;
    if (!is_asked(report, &asked)) {
        return;
    }
    g_autofree char *most = trace_bytes_text((double)prediction->evaluation_allocated_bytes);
    g_autofree char *reserved = trace_bytes_text((double)prediction->evaluation_reserved_bytes);
    printf("\nevaluation, between the first step and the second\n");
    cli_say("  %" G_GUINT64_FORMAT " pass%s of %" G_GUINT64_FORMAT
            " sequence%s a GPU: %.3f ms, as long as %.1f steps\n",
            asked.passes, asked.passes == 1 ? "" : "es", asked.sequences,
            asked.sequences == 1 ? "" : "s", sim_ms(prediction->evaluation_ns),
            steps_of(prediction));
    cli_say("  %s allocated at most, %s; %s reserved behind it\n", most,
            holds_the_peak(prediction) ? "which is the peak above" : "below training's peak",
            reserved);
}

void cli_evaluation_add_json(const CliPredictReport *report, JsonBuilder *json) {
    const SimPrediction *prediction = report->prediction;
    Asked asked;
    if (!is_asked(report, &asked)) {
        return;
    }
    trace_json_begin_object(json, "evaluation");
    trace_json_add_int(json, "passes", asked.passes);
    trace_json_add_int(json, "sequences", asked.sequences);
    trace_json_add_real(json, "ms", sim_ms(prediction->evaluation_ns));
    trace_json_add_real(json, "steps", steps_of(prediction));
    trace_json_add_int(json, "allocated_bytes", prediction->evaluation_allocated_bytes);
    trace_json_add_int(json, "reserved_bytes", prediction->evaluation_reserved_bytes);
    trace_json_add_bool(json, "holds_the_peak", holds_the_peak(prediction));
    json_builder_end_object(json);
}
