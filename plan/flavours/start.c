#include "plan/flavours/start.h"

#include "plan/autograd/evaluation.h"
#include "plan/autograd/traced.h"

static PlanTensor make_inputs(PlanRun *run, uint32_t value, uint64_t times, const char *name) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    PlanTensor tensor = plan_run_new_tensor(run, times * v->elements, (PlanDtype)v->dtype, name);
    plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->sub = PLAN_ACTIVATIONS_INPUT;
    run->tape.storage_of_value[value] = tensor.storage;
    return tensor;
}

static PlanTensor make_input(PlanRun *run, uint32_t value, const char *name) {
    return make_inputs(run, value, 1, name);
}

static void make_rope_tables(PlanRun *run, const PlanGraphRope *rope) {
    bool is_complex = plan_graph_rope_is_complex(rope);
    PlanTensor first = make_input(run, rope->cosines, is_complex ? "turns" : "cos");
    PlanTensor second = is_complex ? PLAN_NO_TENSOR : make_input(run, rope->sines, "sin");
    plan_builder_begin_op(
        &run->builder, is_complex ? PLAN_OP_TURN_TABLE : PLAN_OP_ROPE_TABLES, PLAN_AXIS_NONE,
        (int64_t[]){[TURN_TABLE_SEQ] = (int64_t)rope->seq, [TURN_TABLE_DIM] = (int64_t)rope->dim},
        &rope->base);
    plan_run_operand(run, first);
    if (!is_complex) {
        plan_run_operand(run, second);
    }
    plan_builder_launch(&run->builder, PLAN_LANE_COMPUTE);
}

static PlanGraphNumbers numbers_of(const PlanGraph *graph, uint32_t value) {
    for (unsigned i = 0; i < graph->n_numbers; i++) {
        if (graph->numbers[i].value == value) {
            return graph->numbers[i];
        }
    }
    return (PlanGraphNumbers){.value = value, .number = 1}; /* any will do */
}

static void make_buffer(PlanRun *run, uint32_t value) {
    PlanGraphNumbers numbers = numbers_of(run->graph, value);
    bool is_rope = numbers.dim;
    PlanTensor tensor = make_input(run, value, is_rope ? "frequencies" : "buffer");
    int64_t n = is_rope ? (int64_t)numbers.dim : (int64_t)tensor.elements;
    if (run->graph->traced) {
        plan_traced_launch_first(run, value, tensor);
        return;
    }
    LAUNCH_ON(run, PLAN_LANE_COMPUTE, is_rope ? PLAN_OP_ROPE_FREQUENCIES : PLAN_OP_FILL,
              PLAN_AXIS_NONE, &n, &numbers.number, plan_run_operand_of(run, tensor));
}

/* Those that are made behind so many parameters. */
static void make_buffers(PlanRun *run, uint32_t behind) {
    const GArray *buffers = run->graph->buffers;
    for (uint32_t i = 0; i < buffers->len; i++) {
        uint32_t value = g_array_index(buffers, uint32_t, i);
        if (plan_graph_value_at(run->graph, value)->behind != behind) {
            continue;
        }
        plan_run_at(run, PLAN_PHASE_SETUP, 0);
        make_buffer(run, value);
    }
}

/* Parameters, each behind the buffers that were registered before it, then those behind all. */
static void make_network(PlanRun *run, PlanStartParameter *make, gpointer data) {
    uint32_t n = run->graph->parameters.len;
    for (uint32_t i = 0; i <= n; i++) {
        make_buffers(run, i);
        uint32_t p = i < run->graph->made->len ? g_array_index(run->graph->made, uint32_t, i) : i;
        if (make && i < n && !plan_run_parameter(run, p)->of_adapter) {
            make(run, p, data);
        }
    }
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    for (unsigned i = 0; i < run->graph->n_ropes; i++) {
        make_rope_tables(run, &run->graph->ropes[i]);
    }
    make_buffers(run, PLAN_NONE);
}

static void make_adapters(PlanRun *run, PlanStartParameter *make, gpointer data) {
    for (uint32_t i = 0; i < run->graph->parameters.len && make; i++) {
        if (plan_run_parameter(run, i)->of_adapter) {
            make(run, i, data);
        }
    }
}

/* A rank's stages have one. */
static void take_batch(PlanRun *run) {
    const PlanRun *other = run->owner.batch_of;
    for (uint32_t i = 0; i < run->graph->inputs->len; i++) {
        uint32_t from = g_array_index(other->graph->inputs, uint32_t, i);
        PlanStorage same = other->storages.items[other->tape.storage_of_value[from]];
        plan_vector_push(&run->storages, same);
        run->tape.storage_of_value[g_array_index(run->graph->inputs, uint32_t, i)] =
            run->storages.len - 1;
    }
}

/* A schedule of stages takes all microbatches at once. */
static void make_batch(PlanRun *run) {
    const GArray *inputs = run->graph->inputs;
    uint64_t times = run->graph->pipeline.n_stages > 1 ? run->strategy->accumulate : 1;
    if (run->owner.batch_of) {
        take_batch(run);
        return;
    }
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    for (uint32_t i = 0; i < inputs->len; i++) {
        make_inputs(run, g_array_index(inputs, uint32_t, i), times, "input");
    }
}

void plan_start(PlanRun *run, PlanStartParameter *make, gpointer data) {
    make_network(run, make, data);
    make_adapters(run, make, data);
    make_batch(run);
    if (run->evaluation.graph) {
        plan_evaluation_begin(run);
        make_batch(run);
        plan_evaluation_end(run);
    }
}
