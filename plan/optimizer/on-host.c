#include "plan/optimizer/on-host.h"

#include "plan/autograd/offload-slots.h"

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
    uint8_t lane = plan_offload_lane(run, PLAN_LANE_TO_HOST);
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
                      owned, plan_offload_lane(run, PLAN_LANE_FROM_HOST));
}

/* FSDP1's original parameters are parts of one buffer: in the first step, which sends them, none
 * may come back before the last of them is there. */
void plan_offload_step(const PlanOver *all, bool first) {
    PlanRun *run = all->run;
    g_autofree uint32_t *sent = g_new(uint32_t, all->to);
    g_autofree uint32_t *last_sent = g_new(uint32_t, run->builder.buffers.len); /* by buffer */
    plan_builder_wait_lane(&run->builder, plan_offload_lane(run, PLAN_LANE_TO_HOST),
                           PLAN_LANE_COMPUTE);
    plan_builder_wait_lane(&run->builder, plan_offload_lane(run, PLAN_LANE_FROM_HOST),
                           PLAN_LANE_COMPUTE);
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
                plan_builder_wait(&run->builder, plan_offload_lane(run, PLAN_LANE_FROM_HOST), last);
            }
            step_on_host(run, p, sent[p]);
        }
    }
    plan_builder_wait_lane(&run->builder, PLAN_LANE_COMPUTE,
                           plan_offload_lane(run, PLAN_LANE_FROM_HOST));
    plan_run_at_unit(run, PLAN_NONE);
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
