#include "plan/autograd/offload.h"

#include "plan/autograd/init.h"
#include "plan/autograd/launch.h"

static PlanCheckpoint *checkpoint_at(PlanRun *run, uint32_t id) {
    return &run->tape.checkpoints.items[id];
}

static PlanTensor *argument_of(PlanRun *run, const PlanCheckpoint *c) {
    return &run->tape.saved.items[c->arguments];
}

/* The value that the argument is of: its storage moves. */
static uint32_t value_of(const PlanRun *run, const PlanCheckpoint *c) {
    const PlanGraphStep *step = plan_graph_step_at(run->graph, c->enter_step);
    uint32_t value = plan_graph_ref(run->graph, step->values);
    return plan_graph_value_at(run->graph, value)->base;
}

void plan_offload_send(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = checkpoint_at(run, id);
    PlanTensor *argument = argument_of(run, c);
    uint8_t lane = plan_offload_lane(run, PLAN_LANE_TO_HOST);
    if (run->strategy->offload != PLAN_OFFLOAD_ACTIVATIONS ||
        id + 1 == run->modules.n_checkpointed) {
        return;
    }
    uint32_t buffer = plan_run_buffer_of(run, *argument);
    if (plan_builder_at(&run->builder, buffer)->sub == PLAN_ACTIVATIONS_INPUT) {
        return; /* the batch, which the training loop holds anyway: nothing would be saved */
    }
    c->dtype = plan_builder_at(&run->builder, buffer)->dtype;
    c->is_away = true;
    plan_builder_wait_lane(&run->builder, lane, PLAN_LANE_COMPUTE);
    plan_offload_move(run, PLAN_OP_TO_HOST, id, plan_run_operand_of(run, *argument), lane);
    plan_builder_mark(&run->builder, buffer, lane);
    c->moved_event = plan_builder_record(&run->builder, lane);
    plan_run_unref(run, *argument);
}

/* Asks for it; compute may not use it yet. */
static void fetch(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = checkpoint_at(run, id);
    PlanTensor *argument = argument_of(run, c);
    uint8_t lane = plan_offload_lane(run, PLAN_LANE_FROM_HOST);
    if (!c->is_away) {
        return;
    }
    *argument = plan_run_new_tensor(run, argument->elements, (PlanDtype)c->dtype, "from_host");
    uint32_t buffer = plan_run_buffer_of(run, *argument);
    plan_builder_at(&run->builder, buffer)->sub = PLAN_ACTIVATIONS_SAVED;
    run->tape.storage_of_value[value_of(run, c)] = argument->storage;
    plan_builder_wait_lane(&run->builder, lane,
                           PLAN_LANE_COMPUTE); /* whoever had this memory before */
    plan_builder_wait(&run->builder, lane, c->moved_event);
    plan_offload_move(run, PLAN_OP_FROM_HOST, id, plan_run_operand_of(run, *argument), lane);
    c->moved_event = plan_builder_record(&run->builder, lane);
    c->is_away = false;
    c->is_back = true;
}

void plan_offload_bring_back(PlanRun *run, uint32_t id) {
    fetch(run, id);
    if (checkpoint_at(run, id)->is_back) {
        plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, checkpoint_at(run, id)->moved_event);
    }
    if (id > 0) {
        fetch(run, id - 1);
    }
}

/* ---- parameters on the host ------------------------------------------------------------------ */

bool plan_offload_constructs(const PlanRun *run) {
    return plan_offload_has_params(run) && run->strategy->init == PLAN_CONSTRUCTION_SHARD;
}

/* Bytes of a parameter in 4 bits. */
static void init_nibbles(PlanRun *run, uint32_t p, PlanAxis axis, uint64_t rank_stride,
                         uint64_t offset, uint64_t elements) {
    const PlanGraphParameter *parameter = plan_run_parameter(run, p);
    uint64_t size = plan_dtype_bytes((PlanDtype)parameter->own_dtype);
    plan_builder_begin_op(
        &run->builder, PLAN_OP_HOST_INIT_NIBBLES, axis,
        (int64_t[]){[HOST_INIT_NIBBLES_PARAMETER] = p,
                    [HOST_INIT_NIBBLES_N] = (int64_t)(elements * size),
                    [HOST_INIT_NIBBLES_RANK_STRIDE] = (int64_t)(rank_stride * size),
                    [HOST_INIT_NIBBLES_OFFSET] = (int64_t)(offset * size),
                    [HOST_INIT_NIBBLES_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER),
                    [HOST_INIT_NIBBLES_CODE] = plan_four_bit_code(run),
                    [HOST_INIT_NIBBLES_MADE] = parameter->copied_in},
        &parameter->init_value);
    plan_builder_host_op(&run->builder);
}

void plan_offload_init_parameter(PlanRun *run, uint32_t p, PlanAxis axis, uint64_t rank_stride,
                                 uint64_t offset, uint64_t elements) {
    static const PlanOpKind kinds[] = {
        [PLAN_INIT_NORMAL] = PLAN_OP_HOST_INIT_NORMAL, [PLAN_INIT_FILL] = PLAN_OP_HOST_INIT_FILL};
    const PlanGraphParameter *parameter = plan_run_parameter(run, p);
    if (parameter->numbers) {
        init_nibbles(run, p, axis, rank_stride, offset, elements);
        return;
    }
    plan_builder_begin_op(
        &run->builder, kinds[parameter->init], axis,
        (int64_t[]){[HOST_INIT_NORMAL_PARAMETER] = p,
                    [HOST_INIT_NORMAL_N] = (int64_t)elements,
                    [HOST_INIT_NORMAL_RANK_STRIDE] = (int64_t)rank_stride,
                    [HOST_INIT_NORMAL_OFFSET] = (int64_t)offset,
                    [HOST_INIT_NORMAL_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER)},
        &parameter->init_value);
    plan_builder_host_op(&run->builder);
}

static bool holds_nibbles(const PlanRun *run, uint32_t owner) {
    const GArray *all = run->units[run->unit_of_parameter[owner]].parameters;
    bool holds = false;
    for (uint32_t i = 0; i < all->len; i++) {
        uint32_t p = g_array_index(all, uint32_t, i);
        holds |= plan_offload_owner(run, p) == owner && plan_run_parameter(run, p)->numbers > 0;
    }
    return holds;
}

/* Bytes among them are no numbers that rounding leaves alone. */
void plan_offload_end_init(PlanRun *run, uint32_t p, uint64_t elements) {
    PlanDtype dtype = plan_strategy_model_dtype(run->strategy);
    if (dtype != PLAN_FP32 && !holds_nibbles(run, p)) {
        plan_offload_round(run, plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER), elements, dtype);
    }
}

void plan_offload_put_shard(PlanRun *run, uint32_t p, uint32_t buffer, uint8_t lane) {
    plan_offload_fetch(run, plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER), all_of(run, buffer),
                       lane);
}

void plan_offload_get_shard(PlanRun *run, uint32_t p, uint32_t buffer, uint8_t lane) {
    plan_offload_move(run, PLAN_OP_FROM_HOST, plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER),
                      all_of(run, buffer), lane);
}

void plan_offload_put_gradient(PlanRun *run, uint32_t p, PlanOperand gradient, uint8_t lane) {
    plan_offload_move(run, PLAN_OP_TO_HOST, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                      gradient, lane);
}

void plan_offload_put_gradient_and_wait(PlanRun *run, uint32_t p, PlanOperand gradient,
                                        uint8_t lane) {
    plan_offload_fetch(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), gradient, lane);
}

void plan_offload_add_gradient(PlanRun *run, uint32_t p, PlanOperand gradient, uint8_t lane) {
    plan_offload_fetch(run, plan_offload_slots_end(run) + PLAN_OFFLOAD_ARRIVED, gradient, lane);
    plan_offload_do(
        run, PLAN_OP_HOST_ADD, PLAN_AXIS_NONE,
        (int64_t[]){[HOST_ADD_N] = (int64_t)gradient.elements,
                    [HOST_ADD_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                    [HOST_ADD_FROM] = plan_offload_slots_end(run) + PLAN_OFFLOAD_ARRIVED},
        NULL);
}

void plan_offload_round_gradient(PlanRun *run, uint32_t p, uint64_t elements, PlanDtype dtype) {
    plan_offload_round(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), elements, dtype);
}
