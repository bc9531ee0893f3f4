#include "plan/start.h"

static void make_parameters(PlanRun *run, bool adapters, PlanStartParameter *make, gpointer data) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = 0; i < graph->parameters->len && make; i++) {
        const PlanGraphParameter *p = plan_graph_at(graph->parameters, PlanGraphParameter, i);
        if (p->of_adapter == adapters) {
            make(run, i, data);
        }
    }
}

static PlanTensor make_input(PlanRun *run, uint32_t value, const char *name) {
    const PlanGraphValue *v = plan_graph_at(run->graph->values, PlanGraphValue, value);
    PlanTensor tensor = plan_run_new_tensor(run, v->elements, (PlanDtype)v->dtype, name);
    plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->sub = PLAN_ACTIVATIONS_INPUT;
    run->storage_of_value[value] = tensor.storage;
    return tensor;
}

static void make_rope_tables(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    PlanTensor cosines = make_input(run, graph->rope_cos, "cos");
    PlanTensor sines = make_input(run, graph->rope_sin, "sin");
    plan_builder_begin_op(&run->builder, PLAN_OP_ROPE_TABLES, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)graph->rope_seq, (int64_t)graph->rope_dim},
                          &graph->rope_base);
    plan_run_operand(run, cosines);
    plan_run_operand(run, sines);
    plan_builder_launch(&run->builder, 0);
}

static void make_buffers(PlanRun *run) {
    const GArray *buffers = run->graph->buffers;
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    if (run->graph->rope_cos != PLAN_NONE) {
        make_rope_tables(run);
    }
    for (uint32_t i = 0; i < buffers->len; i++) {
        PlanTensor tensor = make_input(run, g_array_index(buffers, uint32_t, i), "buffer");
        plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                              (int64_t[]){(int64_t)tensor.elements}, (double[]){1});
        plan_run_operand(run, tensor);
        plan_builder_launch(&run->builder, 0);
    }
}

static void make_batch(PlanRun *run) {
    const GArray *inputs = run->graph->inputs;
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    for (uint32_t i = 0; i < inputs->len; i++) {
        make_input(run, g_array_index(inputs, uint32_t, i), "input");
    }
}

void plan_start(PlanRun *run, PlanStartParameter *make, gpointer data) {
    make_parameters(run, false, make, data);
    make_buffers(run);
    make_parameters(run, true, make, data);
    make_batch(run);
}
