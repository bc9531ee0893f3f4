#include "plan/autograd/offload.h"

#include "plan/autograd/four-bit.h"

enum {
    TO_HOST, /* counted from the flavour's last lane */
    FROM_HOST
};

const char *const plan_offload_lanes[] = {"to_host", "from_host", NULL};

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

static uint8_t lane_of(const PlanRun *run, unsigned which) {
    return (uint8_t)(run->lanes.n_of_flavour + which);
}

void plan_offload_move(PlanRun *run, PlanOpKind kind, uint32_t slot, PlanOperand tensor,
                       uint8_t lane) {
    LAUNCH_ON(run, lane, kind, PLAN_AXIS_NONE,
              DIMS([TO_HOST_N] = (int64_t)tensor.elements, [TO_HOST_SLOT] = slot), NULL, tensor);
}

void plan_offload_fetch(PlanRun *run, uint32_t slot, PlanOperand tensor, uint8_t lane) {
    plan_offload_move(run, PLAN_OP_TO_HOST, slot, tensor, lane);
    plan_builder_host_wait_lane(&run->builder, lane);
}

void plan_offload_send(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = checkpoint_at(run, id);
    PlanTensor *argument = argument_of(run, c);
    uint8_t lane = lane_of(run, TO_HOST);
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
    uint8_t lane = lane_of(run, FROM_HOST);
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

/* ---- the optimizer on the host --------------------------------------------------------------- */

/* Whose slots hold the parameter: with parameters offloaded FSDP1's are parts of flat ones. */
static uint32_t owner_of(const PlanRun *run, uint32_t p) {
    bool is_flat = plan_offload_has_params(run) && run->flavour->flatten;
    return is_flat ? plan_run_parameter_of(run, run->unit_of_parameter[p], 0) : p;
}

uint32_t plan_offload_slot(const PlanRun *run, uint32_t parameter, PlanOnHost which) {
    return run->modules.n_checkpointed + owner_of(run, parameter) * PLAN_N_ON_HOST + which;
}

uint32_t plan_offload_slots_end(const PlanRun *run) {
    return run->modules.n_checkpointed + run->graph->parameters.len * PLAN_N_ON_HOST;
}

static bool is_adam(const PlanStrategy *s) {
    return s->optimizer == PLAN_OPTIMIZER_ADAMW || s->optimizer == PLAN_OPTIMIZER_ADAM;
}

/* Numbers that the host moves for one of a parameter. In one pass: gradient, parameter and the
 * optimizer's state read, all but the gradient written. */
static int64_t moves_in_one_pass(const PlanStrategy *s) {
    unsigned states = is_adam(s) ? 2 : s->optimizer == PLAN_OPTIMIZER_MOMENTUM;
    return 3 + 2 * states;
}

/* As PyTorch's loop, which is its default there, op by op (torch/optim/adam.py, sgd.py): lerp 3,
 * mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4; or mul 2, add 3, and add 3. Decay scales the
 * parameter (2), or makes a new gradient of it and of the parameter (3). */
static int64_t moves_op_by_op(const PlanStrategy *s) {
    int64_t decay = s->weight_decay == 0 ? 0 : s->optimizer == PLAN_OPTIMIZER_ADAMW ? 2 : 3;
    int64_t step = is_adam(s) ? 18 : s->optimizer == PLAN_OPTIMIZER_MOMENTUM ? 8 : 3;
    return step + decay;
}

static int64_t moves_of(const PlanStrategy *s) {
    bool one_pass =
        s->offload == PLAN_OFFLOAD_OPTIMIZER || s->optimizer_kernel == PLAN_KERNEL_FUSED;
    return one_pass ? moves_in_one_pass(s) : moves_op_by_op(s);
}

static void optimize_on_host(PlanRun *run, uint32_t slot, uint64_t offset, uint64_t elements) {
    const PlanStrategy *s = run->strategy;
    double momentum = s->optimizer == PLAN_OPTIMIZER_MOMENTUM ? s->momentum : 0;
    double sgd[] = {s->lr, momentum, s->weight_decay};
    double adam[] = {s->lr,  s->beta1,        s->beta2,
                     s->eps, s->weight_decay, s->optimizer == PLAN_OPTIMIZER_ADAMW};
    plan_builder_begin_op(&run->builder, is_adam(s) ? PLAN_OP_HOST_ADAM : PLAN_OP_HOST_SGD,
                          PLAN_AXIS_NONE,
                          (int64_t[]){[HOST_ADAM_N] = (int64_t)elements,
                                      [HOST_ADAM_SLOT] = slot,
                                      [HOST_ADAM_OFFSET] = (int64_t)offset,
                                      [HOST_ADAM_MOVED] = moves_of(s)},
                          is_adam(s) ? adam : sgd);
    plan_builder_host_op(&run->builder);
}

static uint32_t send_gradient(PlanRun *run, uint32_t p, bool first) {
    uint8_t lane = lane_of(run, TO_HOST);
    plan_run_at_unit(run, run->unit_of_parameter[p]);
    if (first) {
        plan_offload_move(run, PLAN_OP_TO_HOST, plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER),
                          run->flavour->owned(run, p), lane);
    }
    plan_offload_move(run, PLAN_OP_TO_HOST, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                      run->flavour->gradient(run, p), lane);
    return plan_builder_record(&run->builder, lane);
}

static void step_on_host(PlanRun *run, uint32_t p, uint32_t sent) {
    PlanOperand owned = run->flavour->owned(run, p);
    plan_run_at_unit(run, run->unit_of_parameter[p]);
    plan_builder_host_wait(&run->builder, sent, 0);
    optimize_on_host(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), 0, owned.elements);
    plan_offload_move(run, PLAN_OP_FROM_HOST, plan_offload_slot(run, p, PLAN_ON_HOST_PARAMETER),
                      owned, lane_of(run, FROM_HOST));
}

/* FSDP1's original parameters are parts of one buffer: in the first step, which sends them, none
 * may come back before the last of them is there. */
void plan_offload_step(const PlanOver *all, bool first) {
    PlanRun *run = all->run;
    g_autofree uint32_t *sent = g_new(uint32_t, all->to);
    g_autofree uint32_t *last_sent = g_new(uint32_t, run->builder.buffers.len); /* by buffer */
    plan_builder_wait_lane(&run->builder, lane_of(run, TO_HOST), PLAN_LANE_COMPUTE);
    plan_builder_wait_lane(&run->builder, lane_of(run, FROM_HOST), PLAN_LANE_COMPUTE);
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            sent[p] = send_gradient(run, p, first);
            last_sent[run->flavour->owned(run, p).buffer] = sent[p];
        }
    }
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            uint32_t last = last_sent[run->flavour->owned(run, p).buffer];
            if (first && last != sent[p]) {
                plan_builder_wait(&run->builder, lane_of(run, FROM_HOST), last);
            }
            step_on_host(run, p, sent[p]);
        }
    }
    plan_builder_wait_lane(&run->builder, PLAN_LANE_COMPUTE, lane_of(run, FROM_HOST));
    plan_run_at_unit(run, PLAN_NONE);
}

/* ---- parameters on the host ------------------------------------------------------------------ */

bool plan_offload_has_params(const PlanRun *run) {
    return run->strategy->offload == PLAN_OFFLOAD_PARAMS;
}

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
        holds |= owner_of(run, p) == owner && plan_run_parameter(run, p)->numbers > 0;
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

void plan_offload_step_params(const PlanOver *all) {
    PlanRun *run = all->run;
    uint64_t size = plan_dtype_bytes(plan_strategy_model_dtype(run->strategy));
    for (uint32_t p = all->from; p < all->to; p++) {
        PlanOperand owned = all->owned[p];
        if (owned.elements) {
            plan_run_at_unit(run, run->unit_of_parameter[p]);
            optimize_on_host(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                             owned.offset_bytes / size, owned.elements);
        }
    }
    plan_run_at_unit(run, PLAN_NONE);
}
