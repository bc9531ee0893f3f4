#include "plan/flavours/construct.h"

#include "plan/autograd/four-bit.h"
#include "plan/flavours/start.h"
#include "plan/flavours/whole.h"

static bool is_whole_first(const PlanRun *run) {
    return run->strategy->init != PLAN_CONSTRUCTION_SHARD;
}

static bool is_in_four_bits(const PlanRun *run, uint32_t p) {
    return plan_run_parameter(run, p)->numbers > 0;
}

static void make(PlanRun *run, uint32_t p, gpointer data) {
    const PlanConstruct *construct = data;
    const PlanGraphParameter *parameter = plan_run_parameter(run, p);
    plan_run_at(run, PLAN_PHASE_SETUP, run->units[run->unit_of_parameter[p]].module);
    construct->whole[p] =
        plan_builder_new(&run->builder, parameter->elements,
                         plan_graph_dtype_of(parameter, plan_strategy_model_dtype(run->strategy)),
                         PLAN_PARAMETERS_UNSHARDED, 0, "parameter");
}

/* A weight is quantized when it comes to the device, before anything is sharded; what stands beside
 * it stays whole. */
static void make_whole(PlanRun *run, uint32_t p, gpointer data) {
    PlanConstruct *construct = data;
    if (plan_run_is_ignored(run, p)) {
        plan_ignored_make(run, p);
    } else if (is_in_four_bits(run, p)) {
        plan_run_at(run, PLAN_PHASE_SETUP, run->units[run->unit_of_parameter[p]].module);
        construct->whole[p] = plan_four_bit_make(run, p);
    } else {
        make(run, p, data);
    }
}

static void make_beside(PlanRun *run, uint32_t p, gpointer data) {
    if (plan_run_is_ignored(run, p)) {
        plan_ignored_make(run, p);
    } else if (is_in_four_bits(run, p)) {
        make_whole(run, p, data);
        plan_builder_free(&run->builder, ((PlanConstruct *)data)->whole[p]);
    }
}

void plan_construct_init(PlanConstruct *construct, PlanRun *run) {
    construct->whole = g_new(uint32_t, run->graph->parameters.len);
    plan_start(run, run->strategy->init == PLAN_CONSTRUCTION_WHOLE ? make_whole : make_beside,
               construct);
}

void plan_construct_clear(PlanConstruct *construct) {
    g_clear_pointer(&construct->whole, g_free);
}

void plan_construct_begin_unit(PlanConstruct *construct, PlanRun *run, uint32_t unit) {
    bool is_by_unit = run->strategy->init == PLAN_CONSTRUCTION_UNIT;
    for (uint32_t i = 0; i < run->units[unit].parameters->len && is_by_unit; i++) {
        make(run, plan_run_parameter_of(run, unit, i), construct);
    }
}

void plan_construct_end_unit(const PlanConstruct *construct, PlanRun *run, uint32_t unit) {
    for (uint32_t i = 0; i < run->units[unit].parameters->len && is_whole_first(run); i++) {
        plan_builder_free(&run->builder, construct->whole[plan_run_parameter_of(run, unit, i)]);
    }
}
