#include "plan/autograd/stages.h"

#include "plan/flavours/fsdp2.h"

const char *const plan_stage_lanes[] = {"stage_before", "stage_behind", "stages", NULL};

enum {
    LANE_BEFORE,
    LANE_BEHIND,
    LANE_STAGES
};

/* What has been sent by itself: its tensor and what to wait for. */
typedef struct {
    PlanTensor tensor;
    uint32_t event;
} Sent;

typedef PLAN_VECTOR(Sent) SentList;

typedef struct {
    PlanTape tape;
    PlanTensor taken;    /* what the stage before gave */
    PlanTensor gradient; /* what the stage behind gives */
    PlanTensor result;   /* until its backward */
    PlanTensor loss;
} Chunk;

struct _PlanStages {
    Chunk *chunks;
    uint32_t n_chunks, now; /* microbatches, and the one that is played */
    uint32_t n_values, n_ops, n_parameters;
    PlanTensor result, gradient, loss; /* what local variables hold */
    PlanTensor arrived;                /* the gradient that backward has just made; no reference */
    SentList sent;                     /* who are to be waited for */
    PlanPhase phase;                   /* of the last chunk */
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

static void exchange_tapes(PlanRun *run, Chunk *chunk) {
    PlanTape tape = run->tape;
    run->tape = chunk->tape;
    chunk->tape = tape;
}

static void free_tape(PlanTape *tape) {
    plan_vector_clear(&tape->nodes);
    plan_vector_clear(&tape->edges);
    plan_vector_clear(&tape->slots);
    plan_vector_clear(&tape->saved);
    plan_vector_clear(&tape->hooks);
    plan_vector_clear(&tape->checkpoints);
    plan_vector_clear(&tape->kept);
    plan_vector_clear(&tape->largest);
    g_free(tape->storage_of_value);
    g_free(tape->producer_of_value);
    g_free(tape->node_of_op);
    g_free(tape->n_contributions);
}

/* A microbatch is a part of each tensor of the batch. */
static void cut_inputs(PlanRun *run, Chunk *chunk, uint32_t number) {
    const GArray *inputs = run->graph->inputs;
    for (uint32_t i = 0; i < inputs->len; i++) {
        uint32_t value = g_array_index(inputs, uint32_t, i);
        const PlanGraphValue *v = plan_graph_at(run->graph->values, PlanGraphValue, value);
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
    s->chunks = g_new0(Chunk, s->n_chunks);
    s->n_values = run->graph->values->len;
    s->n_ops = run->graph->ops->len;
    s->n_parameters = run->graph->parameters->len;
    s->result = s->gradient = s->loss = s->arrived = PLAN_NO_TENSOR;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        Chunk *chunk = &s->chunks[i];
        chunk->taken = chunk->gradient = chunk->result = chunk->loss = PLAN_NO_TENSOR;
        make_tape(run, s, &chunk->tape);
        cut_inputs(run, chunk, i);
    }
    return s;
}

void plan_stages_free(PlanStages *s) {
    if (s) {
        for (uint32_t i = 0; i < s->n_chunks; i++) {
            free_tape(&s->chunks[i].tape);
        }
        plan_vector_clear(&s->sent);
        g_free(s->chunks);
        g_free(s);
    }
}

/* ---- what comes and goes -------------------------------------------------------------------- */

static void replace(PlanRun *run, PlanTensor *variable, PlanTensor tensor) {
    PlanTensor old = *variable;
    *variable = tensor;
    plan_run_unref(run, old);
}

static PlanTensor receiver(PlanRun *run, uint32_t value, PlanSubcategory sub, const char *name) {
    const PlanGraphValue *v = plan_graph_at(run->graph->values, PlanGraphValue, value);
    PlanTensor tensor = plan_run_new_empty(run, v->elements, (PlanDtype)v->dtype, name);
    plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->sub = sub;
    return tensor;
}

/* The stage before, or the one behind. */
static int64_t peer(const PlanRun *run, bool is_before) {
    return (int64_t)run->graph->stage + (is_before ? -1 : 1);
}

static uint8_t lane_of(const PlanRun *run, uint32_t lane) {
    return (uint8_t)(run->n_flavour_lanes + lane);
}

/* Returns the lane, which knows of all that compute was given. */
static uint8_t issue(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                     PlanTensor taken) {
    bool swaps = kind == PLAN_OP_EXCHANGE;
    uint8_t lane = lane_of(run, swaps ? LANE_STAGES : to_before ? LANE_BEFORE : LANE_BEHIND);
    uint64_t elements = kind == PLAN_OP_RECEIVE ? taken.elements : given.elements;
    plan_run_at(run, run->stages->phase, 0);
    plan_builder_wait_lane(&run->builder, lane, PLAN_FSDP2_COMPUTE);
    plan_builder_begin_op(
        &run->builder, kind, PLAN_AXIS_PIPELINE,
        (int64_t[]){(int64_t)elements, (int64_t)run->graph->n_stages, peer(run, to_before)}, NULL);
    if (kind != PLAN_OP_RECEIVE) {
        plan_run_operand(run, given);
    }
    if (kind != PLAN_OP_SEND) {
        plan_run_operand(run, taken);
    }
    plan_builder_launch(&run->builder, lane);
    return lane;
}

static void issue_and_wait(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                           PlanTensor taken) {
    uint8_t lane = issue(run, kind, to_before, given, taken);
    plan_builder_wait_lane(&run->builder, PLAN_FSDP2_COMPUTE, lane);
}

static bool takes(const PlanRun *run) {
    return run->graph->arrives != PLAN_NONE;
}

static bool gives(const PlanRun *run) {
    return !plan_graph_is_last_stage(run->graph);
}

static void receive_input(PlanRun *run, uint32_t chunk) {
    if (takes(run)) {
        issue_and_wait(run, PLAN_OP_RECEIVE, true, PLAN_NO_TENSOR,
                       run->stages->chunks[chunk].taken);
    }
}

static void receive_gradient(PlanRun *run, uint32_t chunk) {
    if (gives(run)) {
        issue_and_wait(run, PLAN_OP_RECEIVE, false, PLAN_NO_TENSOR,
                       run->stages->chunks[chunk].gradient);
    }
}

static void wait_for_sent(PlanRun *run) {
    SentList *sent = &run->stages->sent;
    for (uint32_t i = 0; i < sent->len; i++) {
        plan_builder_wait(&run->builder, PLAN_FSDP2_COMPUTE, sent->items[i].event);
    }
}

/* From the last to the first, as a list of Python's. */
static void let_go_of_sent(PlanRun *run, uint32_t n) {
    SentList *sent = &run->stages->sent;
    for (uint32_t i = n; i-- > 0;) {
        plan_run_unref(run, sent->items[i].tensor);
    }
    for (uint32_t i = n; i < sent->len; i++) {
        sent->items[i - n] = sent->items[i];
    }
    sent->len -= n;
}

static void send(PlanRun *run, bool to_before, PlanTensor tensor) {
    SentList *sent = &run->stages->sent;
    uint8_t lane = issue(run, PLAN_OP_SEND, to_before, tensor, PLAN_NO_TENSOR);
    Sent last = {plan_run_ref(run, tensor), plan_builder_record(&run->builder, lane)};
    plan_vector_push(sent, last);
}

static void make_receivers(PlanRun *run) {
    PlanStages *s = run->stages;
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    for (uint32_t i = 0; i < s->n_chunks && takes(run); i++) {
        s->chunks[i].taken = receiver(run, run->graph->arrives, PLAN_ACTIVATIONS_SAVED, "received");
    }
    for (uint32_t i = 0; i < s->n_chunks && gives(run); i++) {
        s->chunks[i].gradient =
            receiver(run, run->graph->leaves, PLAN_TEMPORARY_OP, "received_gradient");
    }
}

static void begin_forward(PlanRun *run) {
    run->stages->phase = PLAN_PHASE_FORWARD;
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    plan_run_hook(run, run->flavour->begin_pass);
}

/* What differs between steps and roles, before the passes that do not. */
void plan_stages_begin(PlanRun *run) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    run->stages->phase = PLAN_PHASE_FORWARD;
    if (is_first) {
        make_receivers(run);
    }
    receive_input(run, 0);
    if (is_first) {
        plan_fsdp2_pad_again(run);
    }
    begin_forward(run);
}

/* ---- chunks --------------------------------------------------------------------------------- */

void plan_stages_returned(PlanRun *run) {
    PlanStages *s = run->stages;
    PlanTensor result = plan_run_value(run, run->graph->leaves);
    s->chunks[s->now].result = plan_run_ref(run, result);
    replace(run, &s->result, plan_run_ref(run, result));
}

void plan_stages_arrived(PlanRun *run, PlanTensor gradient) {
    run->stages->arrived = gradient;
}

/* What the stage was given ends in a node of its own, which hands its gradient out. */
static void begin_tape(PlanRun *run, const Chunk *chunk) {
    if (!takes(run)) {
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

static void forward(PlanRun *run, uint32_t number) {
    PlanStages *s = run->stages;
    Chunk *chunk = &s->chunks[number];
    s->now = number;
    if (number > 0) { /* the first has begun */
        begin_forward(run);
    }
    exchange_tapes(run, chunk);
    begin_tape(run, chunk);
    plan_run_forward(run);
    PlanTensor last = plan_run_value(run, run->graph->loss);
    if (gives(run)) {
        plan_run_unref(run, last); /* the result, which is held by now */
    } else {
        chunk->loss = last;
    }
    exchange_tapes(run, chunk);
}

static void backward(PlanRun *run, uint32_t number) {
    PlanStages *s = run->stages;
    Chunk *chunk = &s->chunks[number];
    s->now = number;
    s->phase = PLAN_PHASE_BACKWARD;
    replace(run, &s->loss, plan_run_ref(run, chunk->loss));
    exchange_tapes(run, chunk);
    s->arrived = PLAN_NO_TENSOR;
    plan_run_stage_backward(run, chunk->gradient);
    exchange_tapes(run, chunk);
    replace(run, &chunk->result, PLAN_NO_TENSOR);
}

/* Its variable is given what the last backward made. */
static void take_gradient(PlanRun *run) {
    replace(run, &run->stages->gradient, run->stages->arrived);
}

/* ---- schedules ------------------------------------------------------------------------------ */

/* What is sent by itself is waited for before the next is. */
static void send_next(PlanRun *run, bool to_before, PlanTensor tensor) {
    uint32_t n = run->stages->sent.len;
    send(run, to_before, tensor);
    let_go_of_sent(run, n);
}

static void warm_up(PlanRun *run, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            receive_input(run, i);
        }
        forward(run, i);
        wait_for_sent(run);
        if (gives(run) && i + 1 < n) {
            send_next(run, false, run->stages->result);
        }
    }
}

/* The gradient goes back; what was waited for on the way is let go of. */
static void send_gradient(PlanRun *run) {
    if (takes(run)) {
        send_next(run, true, run->stages->gradient);
    } else {
        let_go_of_sent(run, run->stages->sent.len);
    }
}

static void play_1f1b(PlanRun *run) {
    PlanStages *s = run->stages;
    uint32_t n = s->n_chunks, forwards = MIN(n, run->graph->n_stages - run->graph->stage);
    uint32_t backwards = 0;
    warm_up(run, forwards);
    while (true) {
        if (gives(run)) {
            issue_and_wait(run, PLAN_OP_EXCHANGE, false, s->result, s->chunks[backwards].gradient);
        }
        backward(run, backwards++);
        take_gradient(run);
        if (forwards == n) {
            break;
        }
        if (takes(run)) {
            issue_and_wait(run, PLAN_OP_EXCHANGE, true, s->gradient, s->chunks[forwards].taken);
        }
        forward(run, forwards++);
    }
    send_gradient(run);
    while (backwards < n) {
        receive_gradient(run, backwards);
        backward(run, backwards++);
        wait_for_sent(run);
        take_gradient(run);
        send_gradient(run);
    }
    wait_for_sent(run);
}

static void play_gpipe(PlanRun *run) {
    PlanStages *s = run->stages;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        if (i > 0) {
            receive_input(run, i);
        }
        forward(run, i);
        if (gives(run)) {
            send(run, false, s->result);
        }
    }
    wait_for_sent(run);
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        receive_gradient(run, i);
        backward(run, i);
        take_gradient(run);
        if (takes(run)) {
            send(run, true, s->gradient);
        }
    }
    wait_for_sent(run);
}

/* ---- the end of a step ---------------------------------------------------------------------- */

static void let_go_of_losses(PlanRun *run) {
    PlanStages *s = run->stages;
    for (uint32_t i = s->n_chunks; i-- > 0;) {
        replace(run, &s->chunks[i].loss, PLAN_NO_TENSOR);
    }
}

/* As the function returns, in the order of its variables: gpipe has one for all results that were
 * sent, and one for all gradients. */
static void let_go_of_variables(PlanRun *run) {
    PlanStages *s = run->stages;
    bool by_turns = run->strategy->pipeline_schedule == PLAN_PIPELINE_1F1B;
    let_go_of_sent(run, by_turns ? s->sent.len : gives(run) ? s->n_chunks : 0);
    replace(run, &s->result, PLAN_NO_TENSOR);
    if (by_turns) {
        replace(run, &s->loss, PLAN_NO_TENSOR);
    }
    replace(run, &s->gradient, PLAN_NO_TENSOR);
    let_go_of_sent(run, s->sent.len);
    replace(run, &s->loss, PLAN_NO_TENSOR);
}

void plan_stages_play(PlanRun *run) {
    run->reduces = false;
    switch ((PlanPipelineSchedule)run->strategy->pipeline_schedule) {
    case PLAN_PIPELINE_1F1B:
        play_1f1b(run);
        break;
    case PLAN_PIPELINE_GPIPE:
        play_gpipe(run);
        break;
    }
    let_go_of_losses(run);
    run->reduces = true;
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_run_at_unit(run, u);
        plan_fsdp2_post_backward(run, u);
    }
    plan_fsdp2_end_backward(run);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    let_go_of_variables(run);
}
