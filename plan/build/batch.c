#include "plan/build/batch.h"

#include "plan/autograd/traced.h"

void plan_next_batch(PlanRun *run, uint64_t n_passes) {
    const PlanGraph *graph = run->graph;
    uint32_t first = g_array_index(graph->inputs, uint32_t, 0);
    const PlanGraphValue *v = plan_graph_value_at(graph, first);
    bool has_targets = graph->inputs->len > 1 && !graph->traced;
    uint32_t second = has_targets ? g_array_index(graph->inputs, uint32_t, 1) : first;
    uint64_t targets = plan_graph_value_at(graph, second)->elements;
    int64_t passes = (int64_t)n_passes;
    int64_t at_once = run->owner.stages ? passes : 1; /* a schedule takes all of a step */
    plan_run_at(run, plan_run_forward_phase(run), 0);
    plan_builder_begin_op(
        &run->builder, PLAN_OP_BATCH, PLAN_AXIS_NONE,
        (int64_t[]){[BATCH_SAMPLES] = (int64_t)graph->samples * at_once,
                    [BATCH_SAMPLE_ELEMENTS] = (int64_t)(v->elements / graph->samples),
                    [BATCH_TARGET_ELEMENTS] = (int64_t)(targets / graph->samples),
                    [BATCH_BOUND] = (int64_t)v->bound,
                    [BATCH_PASS] = (int64_t)run->pass.number,
                    [BATCH_PASSES] = passes / at_once},
        NULL);
    for (unsigned i = 0; i < 2; i++) {
        bool is_there = i < graph->inputs->len && !graph->traced;
        uint32_t input = is_there || !i ? i : v->bound ? 0 : PLAN_NONE; /* a trace's own */
        plan_run_operand(run,
                         input == PLAN_NONE
                             ? PLAN_NO_TENSOR
                             : plan_run_value(run, g_array_index(graph->inputs, uint32_t, input)));
    }
    plan_builder_launch(&run->builder, PLAN_LANE_COMPUTE);
    for (uint32_t i = 1; i < graph->inputs->len && graph->traced; i++) {
        plan_traced_fill_input(run, i);
    }
}
