#include "plan/whole.h"

void plan_init_parameter(PlanRun *run, uint32_t parameter, uint32_t buffer, PlanAxis axis,
                         uint64_t n, uint64_t rank_stride) {
    const PlanGraphParameter *p =
        plan_graph_at(run->graph->parameters, PlanGraphParameter, parameter);
    int64_t normal[] = {parameter, (int64_t)n, (int64_t)rank_stride}, fill[] = {(int64_t)n};
    switch (p->init) {
    case PLAN_INIT_NORMAL:
        plan_builder_begin_op(&run->builder, PLAN_OP_INIT_NORMAL, axis, normal, &p->init_value);
        break;
    case PLAN_INIT_FILL:
        plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE, fill, &p->init_value);
        break;
    }
    plan_builder_whole(&run->builder, buffer);
    plan_builder_launch(&run->builder, 0);
}

void plan_whole_construct(PlanRun *run, PlanWhole *whole) {
    const PlanGraph *graph = run->graph;
    whole->buffers = g_new(uint32_t, graph->parameters->len);
    for (uint32_t i = 0; i < graph->parameters->len; i++) {
        const PlanGraphParameter *p = plan_graph_at(graph->parameters, PlanGraphParameter, i);
        plan_run_at(run, PLAN_PHASE_SETUP, p->module);
        whole->buffers[i] = plan_builder_buffer(&run->builder, p->elements, PLAN_FP32,
                                                PLAN_PARAMETERS_UNSHARDED, 0, p->name);
        plan_builder_alloc(&run->builder, whole->buffers[i]);
        plan_init_parameter(run, i, whole->buffers[i], PLAN_AXIS_NONE, p->elements, 0);
    }
}

PlanOperand plan_whole_operand(PlanRun *run, const PlanWhole *whole, uint32_t parameter) {
    return (PlanOperand){
        .buffer = whole->buffers[parameter],
        .elements = plan_graph_at(run->graph->parameters, PlanGraphParameter, parameter)->elements};
}

PlanOperand plan_whole_gradient(PlanRun *run, uint32_t parameter) {
    PlanTensor gradient = run->gradients[parameter];
    g_assert(gradient.storage != PLAN_NONE);
    return (PlanOperand){.buffer = plan_run_buffer_of(run, gradient),
                         .elements = gradient.elements};
}

void plan_whole_zero_grad(PlanRun *run) {
    for (uint32_t i = 0; i < run->graph->parameters->len; i++) {
        plan_run_unref(run, run->gradients[i]);
        run->gradients[i] = PLAN_NO_TENSOR;
    }
}
