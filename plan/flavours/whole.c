#include "plan/flavours/whole.h"

#include "plan/autograd/four-bit.h"
#include "plan/autograd/init.h"
#include "plan/flavours/start.h"
#include "plan/optimizer/groups.h"

static uint32_t make_whole(PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    plan_run_at(run, PLAN_PHASE_SETUP, p->module);
    if (p->numbers) {
        return plan_four_bit_make(run, parameter);
    }
    uint32_t buffer =
        plan_builder_new(&run->builder, p->elements,
                         plan_graph_dtype_of(p, plan_strategy_param_dtype(run->strategy)),
                         PLAN_PARAMETERS_UNSHARDED, 0, run->owner.parameters[parameter].name);
    plan_init_parameter(run, parameter, buffer, PLAN_AXIS_NONE, 0, 0);
    return buffer;
}

static void make(PlanRun *run, uint32_t parameter, gpointer data) {
    ((PlanWhole *)data)->buffers[parameter] = make_whole(run, parameter);
}

void plan_whole_construct(PlanRun *run, PlanWhole *whole) {
    whole->buffers = g_new(uint32_t, run->graph->parameters.len);
    plan_start(run, make, whole);
}

PlanOperand plan_whole_operand(PlanRun *run, const PlanWhole *whole, uint32_t parameter) {
    return (PlanOperand){.buffer = whole->buffers[parameter],
                         .elements = plan_run_parameter(run, parameter)->elements};
}

PlanOperand plan_whole_gradient(PlanRun *run, uint32_t parameter) {
    PlanTensor gradient = run->gradients[parameter];
    g_assert(gradient.storage != PLAN_NONE);
    return plan_run_operand_of(run, gradient);
}

void plan_whole_drop_gradient(PlanRun *run, uint32_t parameter) {
    plan_run_drop(run, &run->gradients[parameter]);
}

void plan_whole_drop_gradients(PlanRun *run) {
    unsigned n = plan_n_groups(run);
    for (unsigned group = 0; group < n; group++) {
        for (uint32_t i = 0; i < run->graph->parameters.len; i++) {
            if (plan_group_of(run, i) == group) {
                plan_whole_drop_gradient(run, i);
            }
        }
    }
}

void plan_ignored_make(PlanRun *run, uint32_t parameter) {
    if (!run->ignored) {
        run->ignored = g_new0(uint32_t, run->graph->parameters.len);
    }
    run->ignored[parameter] = make_whole(run, parameter);
}

PlanOperand plan_ignored_operand(PlanRun *run, uint32_t parameter) {
    const PlanWhole whole = {run->ignored};
    return plan_whole_operand(run, &whole, parameter);
}
