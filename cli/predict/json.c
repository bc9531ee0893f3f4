/* cli/predict/json.c - a prediction for programs: see predict.h. */
#include "cli/predict/predict.h"
#include "plan/mesh.h"

#include "cli/predict/edge.h"
#include "cli/predict/evaluation.h"
#include "cli/predict/every-rank-report.h"
#include "cli/predict/how-sure.h"
#include "cli/say/output.h"
#include "cli/what-if/ways-to-fit.h"
#include "sim/figures.h"
#include "sim/spending.h"
#include "sim/trains-well.h"
#include "trace/json.h"

static void add_categories(JsonBuilder *json, const char *key, const uint64_t *by_sub) {
    trace_json_begin_object(json, key);
    for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
        trace_json_add_int(json, plan_category_name(category),
                           sim_category_bytes(by_sub, category));
    }
    json_builder_end_object(json);
}

static void add_comm(JsonBuilder *json, const SimPrediction *prediction) {
    trace_json_begin_object(json, "comm");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        if (sum->count) {
            trace_json_begin_object(json, plan_op_info(kind)->name);
            trace_json_add_int(json, "count", sum->count);
            trace_json_add_real(json, "total_ms", sim_ms(sum->total_ns));
            trace_json_add_real(json, "exposed_ms", sim_ms(sum->exposed_ns));
            trace_json_add_int(json, "bytes", (uint64_t)sum->bytes);
            json_builder_end_object(json);
        }
    }
    json_builder_end_object(json);
}

static void add_oom(JsonBuilder *json, const CliPredictReport *report) {
    const SimOom *oom = &report->prediction->oom;
    trace_json_begin_object(json, "oom");
    if (report->prediction->n_ranks || report->plan->axes[PLAN_AXIS_PIPELINE] > 1) {
        trace_json_add_int(json, "rank", oom->rank);
    }
    trace_json_add_text(json, "buffer", oom->buffer);
    trace_json_add_text(json, "category", plan_subcategory_name(oom->sub));
    trace_json_add_int(json, "bytes", oom->bytes);
    trace_json_add_text(json, "section", plan_section_name(oom->at.section));
    trace_json_add_int(json, "instruction", oom->at.index);
    trace_json_add_text(json, "phase", plan_phase_name(oom->at.phase));
    if (oom->at.unit != PLAN_NONE) {
        trace_json_add_text(json, "unit", report->plan->units[oom->at.unit].name);
    }
    trace_json_add_int(json, "allocated_bytes", oom->at.allocated_bytes);
    trace_json_add_int(json, "reserved_bytes", oom->at.reserved_bytes);
    add_categories(json, "held_by_category", oom->by_sub);
    json_builder_end_object(json);
}

/* Of a pipeline a rank of each stage was played: whose memory and times the figures are. */
static void add_stages(JsonBuilder *json, const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    const Plan *plan = report->plan;
    if (plan->axes[PLAN_AXIS_PIPELINE] > 1) {
        trace_json_begin_object(json, "pipeline");
        trace_json_add_int(json, "stages", plan->axes[PLAN_AXIS_PIPELINE]);
        trace_json_add_int(json, "memory_of_rank", prediction->memory_rank);
        trace_json_add_int(json, "memory_of_stage",
                           plan_rank_on_axis(plan, prediction->memory_rank, PLAN_AXIS_PIPELINE));
        trace_json_add_int(json, "times_of_rank", prediction->time_rank);
        trace_json_add_int(json, "times_of_stage",
                           plan_rank_on_axis(plan, prediction->time_rank, PLAN_AXIS_PIPELINE));
        trace_json_add_real(json, "bubbles_ms", sim_ms(prediction->cause_ns[SIM_CAUSE_RANKS]));
        trace_json_add_real(json, "schedule_bubbles_ms",
                            sim_schedule_bubble_ns(report->plan, report->prediction) / 1e6);
        json_builder_end_object(json);
    }
}

static void add_figures(JsonBuilder *json, const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    add_stages(json, report);
    trace_json_add_real(json, "step_ms", sim_ms(prediction->median_step_ns));
    trace_json_add_real(json, "step_ms_p95", sim_ms(sim_p95_step_ns(prediction)));
    trace_json_add_real(json, "tokens_per_s_per_gpu",
                        sim_a_second(prediction, (double)report->plan->tokens_per_rank));
    trace_json_add_real(json, "tflops_per_gpu", sim_a_second(prediction, prediction->flops) / 1e12);
    trace_json_add_real(json, "mfu", prediction->mfu);
    trace_json_add_int(json, "peak_allocated_bytes", prediction->peak.at.allocated_bytes);
    trace_json_add_int(json, "peak_active_bytes", prediction->peak_active_bytes);
    trace_json_add_int(json, "peak_reserved_bytes", prediction->peak_reserved_bytes);
    trace_json_add_real(json, "peak_at_ms", sim_ms(prediction->peak.at.host_ns));
    add_categories(json, "peak_by_category", prediction->peak.by_sub);
    trace_json_add_int(json, "outside_allocator_bytes", prediction->outside_allocator_bytes);
    trace_json_add_int(json, "allocator_bytes", prediction->allocator_bytes);
    trace_json_add_int(json, "workspace_bytes", prediction->workspace_bytes);
    CliEdge edge = cli_edge_of(report->plan, report->cluster, report->asked, prediction);
    cli_edge_add_json(&edge, prediction, json);
    trace_json_add_int(json, "alloc_retries", prediction->alloc_retries);
    trace_json_begin_object(json, "alloc_retry_rate");
    trace_json_add_int(json, "steps", prediction->n_steps);
    trace_json_add_real(json, "per_step", prediction->retries_per_step);
    json_builder_end_object(json);
    cli_evaluation_add_json(report, json);
    add_comm(json, prediction);
    trace_json_add_real(json, "compute_ms", sim_ms(prediction->compute_ns));
    trace_json_add_real(json, "host_ms", sim_ms(prediction->host_ns));
    trace_json_add_text(json, "bound_by", prediction->bound_by);
    SimSpending spent = sim_spending(report->plan, report->cluster, prediction);
    if (spent.kwh_per_million > 0) {
        trace_json_add_real(json, "kwh_per_million_tokens", spent.kwh_per_million);
    }
    if (spent.price_per_million > 0) {
        trace_json_add_real(json, "price_per_million_tokens", spent.price_per_million);
    }
    g_auto(CliHowSure) sure = {0};
    cli_how_sure(report, &sure);
    cli_how_sure_add_json(&sure, json);
    cli_every_rank_add_json(&report->asked->jitter, prediction, report->cluster, json);
}

void cli_predict_print_json(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(report->plan));
    trace_json_add_text(json, "cluster", report->cluster->name);
    trace_json_add_bool(json, "fits", prediction->fits && !prediction->unsupported_dtype);
    trace_json_add_bool(json, "trains_well", sim_trains_well(prediction));
    if (prediction->unsupported_dtype) {
        trace_json_add_text(json, "unsupported_dtype", prediction->unsupported_dtype);
    } else {
        add_figures(json, report);
    }
    if (!prediction->fits) {
        add_oom(json, report);
    }
    if (!prediction->fits || cli_predict_needs_calm(report)) {
        g_autoptr(GArray) ways = cli_predict_ways(report);
        cli_ways_add_json(json, ways, prediction->fits);
    }
    json_builder_end_object(json);
    cli_output_print_json(json);
}
