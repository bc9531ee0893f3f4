#include "plan/autograd/stages/parts.h"

#include "plan/autograd/passes/eager.h"
#include "plan/autograd/passes/engine.h"
#include "plan/flavours/fsdp2.h"

const char *const plan_stage_lanes[] = {"stage_before", "stage_behind", "stages", NULL};

enum {
    LANE_BEFORE,
    LANE_BEHIND,
    LANE_STAGES
};

/* ---- tapes ---------------------------------------------------------------------------------- */

/* As the run's was when the network had been made. */
static void make_tape(const PlanRun *run, PlanStages *s, PlanTape *tape) {
    const PlanTape *made = &run->tape;
    tape->storage_of_value =
        g_memdup2(made->storage_of_value, s->n_values * sizeof *made->storage_of_value);
    tape->producer_of_value =
        g_memdup2(made->producer_of_value, s->n_values * sizeof *made->producer_of_value);
    tape->node_of_op = g_memdup2(made->node_of_op, s->n_ops * sizeof *made->node_of_op);
    tape->n_contributions =
        g_memdup2(made->n_contributions, s->n_parameters * sizeof *made->n_contributions);
}

static void exchange_tapes(PlanRun *run, PlanStageChunk *chunk) {
    PlanTape tape = run->tape;
    run->tape = chunk->tape;
    chunk->tape = tape;
}

/* A microbatch is a part of each tensor of the batch. */
static void cut_inputs(PlanRun *run, PlanStageChunk *chunk, uint32_t number) {
    const GArray *inputs = run->graph->inputs;
    for (uint32_t i = 0; i < inputs->len; i++) {
        uint32_t value = g_array_index(inputs, uint32_t, i);
        const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
        PlanStorage whole = run->storages.items[run->tape.storage_of_value[value]];
        PlanStorage part = {
            .buffer = whole.buffer, .refs = 1, .first = (uint64_t)number * v->elements};
        plan_vector_push(&run->storages, part);
        chunk->tape.storage_of_value[value] = run->storages.len - 1;
    }
}

PlanStages *plan_stages_new(PlanRun *run) {
    PlanStages *s = g_new0(PlanStages, 1);
    s->n_chunks = (uint32_t)run->strategy->accumulate;
    s->chunks = g_new0(PlanStageChunk, s->n_chunks);
    s->n_values = run->graph->values.len;
    s->n_ops = run->graph->ops.len;
    s->n_parameters = run->graph->parameters.len;
    s->result = s->gradient = s->loss = s->arrived = PLAN_NO_TENSOR;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        PlanStageChunk *chunk = &s->chunks[i];
        chunk->taken = chunk->gradient = chunk->result = chunk->loss = chunk->made = PLAN_NO_TENSOR;
        make_tape(run, s, &chunk->tape);
        cut_inputs(run, chunk, i);
    }
    return s;
}

void plan_stages_free(PlanStages *s) {
    if (s) {
        for (uint32_t i = 0; i < s->n_chunks; i++) {
            plan_tape_free(&s->chunks[i].tape);
        }
        plan_vector_clear(&s->sent);
        g_free(s->chunks);
        g_free(s);
    }
}

/* ---- what comes and goes -------------------------------------------------------------------- */

void plan_stage_replace(PlanRun *run, PlanTensor *variable, PlanTensor tensor) {
    PlanTensor old = *variable;
    *variable = tensor;
    plan_run_unref(run, old);
}

static PlanTensor receiver(PlanRun *run, uint32_t value, PlanSubcategory sub, const char *name) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    PlanTensor tensor = plan_run_new_empty(run, v->elements, (PlanDtype)v->dtype, name);
    plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->sub = sub;
    return tensor;
}

void plan_stage_make_receivers(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    for (uint32_t i = 0; i < s->n_chunks && plan_stage_takes(run); i++) {
        s->chunks[i].taken = receiver(run, run->graph->arrives, PLAN_ACTIVATIONS_SAVED, "received");
    }
}

void plan_stage_make_gradient_receivers(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    for (uint32_t i = 0; i < s->n_chunks && plan_stage_gives(run); i++) {
        s->chunks[i].gradient =
            receiver(run, run->graph->leaves, PLAN_TEMPORARY_OP, "received_gradient");
    }
}

static uint32_t places_of(const PlanRun *run) {
    return (uint32_t)run->strategy->pipeline;
}

/* The pipeline rank of the stage before, or behind; with several stages a rank they go round. */
static int64_t peer(const PlanRun *run, bool is_before) {
    uint32_t stage = run->graph->pipeline.stage;
    return (is_before ? stage - 1 : stage + 1) % places_of(run);
}

/* Two ranks have one communicator for what either gives the other by itself, whatever stages they
 * have. */
static uint8_t lane_of(const PlanRun *run, bool swaps, bool to_before) {
    bool is_pair = places_of(run) == 2;
    bool before = is_pair ? run->graph->pipeline.stage % 2 == 1 : to_before;
    return (uint8_t)(run->lanes.n_of_flavour + (swaps    ? LANE_STAGES
                                                : before ? LANE_BEFORE
                                                         : LANE_BEHIND));
}

uint8_t plan_stage_issue(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                         PlanTensor taken) {
    uint8_t lane = lane_of(run, kind == PLAN_OP_EXCHANGE, to_before);
    uint64_t elements = kind == PLAN_OP_RECEIVE ? taken.elements : given.elements;
    plan_run_at(run, run->owner.stages->phase, 0);
    plan_builder_wait_lane(&run->builder, lane, PLAN_LANE_COMPUTE);
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_PIPELINE,
                          (int64_t[]){[STAGE_COLLECTIVE_ELEMENTS] = (int64_t)elements,
                                      [STAGE_COLLECTIVE_RANKS] = (int64_t)places_of(run),
                                      [STAGE_COLLECTIVE_PEER] = peer(run, to_before)},
                          NULL);
    if (kind != PLAN_OP_RECEIVE) {
        plan_run_operand(run, given);
    }
    if (kind != PLAN_OP_SEND) {
        plan_run_operand(run, taken);
    }
    plan_builder_launch(&run->builder, lane);
    return lane;
}

void plan_stage_send(PlanRun *run, PlanStageSentList *sent, bool to_before, PlanTensor tensor) {
    uint8_t lane = plan_stage_issue(run, PLAN_OP_SEND, to_before, tensor, PLAN_NO_TENSOR);
    PlanStageSent last = {run, plan_run_ref(run, tensor), plan_builder_record(&run->builder, lane)};
    plan_vector_push(sent, last);
}

void plan_stage_begin_forward(PlanRun *run) {
    run->owner.stages->phase = PLAN_PHASE_FORWARD;
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    plan_run_hook(run, run->flavour->begin_pass);
}

/* ---- chunks --------------------------------------------------------------------------------- */

static void hold_result(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    PlanTensor result = plan_run_value(run, run->graph->leaves);
    s->chunks[run->pass.microbatch].result = plan_run_ref(run, result);
    plan_stage_replace(run, &s->result, plan_run_ref(run, result));
}

/* What the stage was given ends in a node of its own, which hands its gradient out. */
static void begin_tape(PlanRun *run, const PlanStageChunk *chunk) {
    if (!plan_stage_takes(run)) {
        return;
    }
    uint32_t value = run->graph->arrives;
    PlanTensor none = PLAN_NO_TENSOR;
    PlanNode node = {.op = PLAN_NONE,
                     .unit = PLAN_NONE,
                     .n_slots = 1,
                     .first_hook = PLAN_NONE,
                     .checkpoint = PLAN_NONE};
    plan_vector_push(&run->tape.slots, none);
    plan_vector_push(&run->tape.nodes, node);
    run->tape.storage_of_value[value] = chunk->taken.storage;
    run->tape.producer_of_value[value] = (PlanEdge){0, 0};
}

void plan_stage_forward(PlanRun *run, uint32_t number) {
    PlanStages *s = run->owner.stages;
    PlanStageChunk *chunk = &s->chunks[number];
    run->pass.microbatch = number;
    exchange_tapes(run, chunk);
    begin_tape(run, chunk);
    uint32_t next = plan_run_forward_root(run);
    hold_result(run);
    plan_run_forward_rest(run, next);
    PlanTensor last = plan_run_value(run, run->graph->loss);
    if (plan_stage_gives(run)) {
        plan_run_unref(run, last); /* the result, which is held by now */
    } else {
        chunk->loss = last;
    }
    exchange_tapes(run, chunk);
}

void plan_stage_backward(PlanRun *run, uint32_t number) {
    PlanStages *s = run->owner.stages;
    PlanStageChunk *chunk = &s->chunks[number];
    run->pass.microbatch = number;
    s->n_backwards = s->n_backwards % s->n_chunks + 1;
    s->phase = PLAN_PHASE_BACKWARD;
    run->pass.reduces = !plan_stage_is_sharded(run) && s->n_backwards == s->n_chunks;
    plan_stage_replace(run, &s->loss, plan_run_ref(run, chunk->loss));
    exchange_tapes(run, chunk);
    s->arrived = plan_run_stage_backward(run, chunk->gradient);
    run->pass.reduces = false;
    exchange_tapes(run, chunk);
    plan_stage_replace(run, &chunk->result, PLAN_NO_TENSOR);
}

void plan_stage_reduce(PlanRun *run) {
    if (!plan_stage_is_sharded(run)) {
        return;
    }
    run->pass.reduces = true;
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_run_at_unit(run, u);
        plan_fsdp2_post_backward(run, u);
    }
    plan_fsdp2_end_backward(run);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
}
