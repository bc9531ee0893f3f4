/* plan/optimizer/optimizer.c - the end of a training step: clip, step, zero_grad. */
#include "plan/optimizer/optimizer.h"

#include "plan/autograd/offload-slots.h"
#include "plan/optimizer/groups.h"
#include "plan/optimizer/on-host.h"
#include "plan/optimizer/scaler.h"
#include "plan/optimizer/steps.h"

static bool owns_something(const PlanOver *all) {
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            return true;
        }
    }
    return false;
}

static void make_states(const PlanOver *all) {
    switch ((PlanOptimizer)all->run->strategy->optimizer) {
    case PLAN_OPTIMIZER_ADAMW:
    case PLAN_OPTIMIZER_ADAM:
        plan_adam_first(all);
        return;
    case PLAN_OPTIMIZER_SGD:
    case PLAN_OPTIMIZER_MOMENTUM:
        plan_sgd_first(all);
        return;
    case PLAN_OPTIMIZER_MUON:
        if (all->group == 0) {
            plan_muon_first(all);
        } else {
            plan_adam_first(all);
        }
        return;
    case PLAN_OPTIMIZER_ADAMW_TORCH_8BIT: /* each parameter's as it is stepped */
        return;
    }
}

static void step(const PlanOver *all) {
    switch ((PlanOptimizer)all->run->strategy->optimizer) {
    case PLAN_OPTIMIZER_ADAMW:
    case PLAN_OPTIMIZER_ADAM:
        plan_adam_step(all);
        return;
    case PLAN_OPTIMIZER_SGD:
    case PLAN_OPTIMIZER_MOMENTUM:
        plan_sgd_step(all);
        return;
    case PLAN_OPTIMIZER_MUON:
        if (all->group == 0) {
            plan_muon_step(all);
        } else {
            plan_adam_step(all);
        }
        return;
    case PLAN_OPTIMIZER_ADAMW_TORCH_8BIT:
        plan_eight_bit_step(all);
        return;
    }
}

/* A rank beyond the last row has nothing to step. */
static void step_on_device(const PlanOver *all, bool first) {
    if (first) {
        make_states(all);
    }
    if (owns_something(all)) {
        step(all);
    }
}

static void optimize(const PlanOver *all, bool first) {
    switch ((PlanOffload)all->run->strategy->offload) {
    case PLAN_OFFLOAD_OPTIMIZER:
        if (owns_something(all)) {
            plan_offload_step(all, first);
        }
        return;
    case PLAN_OFFLOAD_PARAMS:
        plan_offload_step_params(all);
        return;
    case PLAN_OFFLOAD_NONE:
    case PLAN_OFFLOAD_ACTIVATIONS:
        step_on_device(all, first);
        return;
    }
}

/* zero_grad(set_to_none=False): the gradients stay. */
static void zero_gradients(const PlanOver *all) {
    static const unsigned lists[] = {PLAN_LIST_GRADIENT};
    if (plan_offload_has_params(all->run)) {
        plan_offload_zero_gradients(all);
        return;
    }
    if (all->run->strategy->optimizer_kernel != PLAN_KERNEL_LOOP &&
        all->run->strategy->optimizer != PLAN_OPTIMIZER_ADAMW_TORCH_8BIT) {
        plan_over_launch(all, PLAN_OP_ZERO_ALL, 1, lists, NULL);
        return;
    }
    for (uint32_t p = all->from; p < all->to; p++) {
        PlanOver one = plan_over_one(all, p);
        if (plan_over_owns(all, p)) {
            plan_over_launch(&one, PLAN_OP_ZERO_ALL, 1, lists, NULL);
        }
    }
}

typedef void PlanOverDo(const PlanOver *all, bool first);

static void over_all(PlanRun *run, bool first, PlanOverDo *something) {
    uint32_t n = run->graph->parameters.len;
    g_autofree uint32_t *buffers = g_new(uint32_t, PLAN_N_TEMPORARIES * n);
    for (uint32_t i = 0; i < PLAN_N_TEMPORARIES * n; i++) {
        buffers[i] = PLAN_NONE;
    }
    g_autofree PlanOperand *owned = g_new(PlanOperand, n);
    for (uint32_t p = 0; p < n; p++) {
        owned[p] = plan_run_is_frozen(run, p) ? (PlanOperand){.buffer = PLAN_NONE}
                                              : run->flavour->owned(run, p);
    }
    PlanOver all = {
        .run = run, .to = n, .owned = owned, .scale = PLAN_NO_TENSOR, .found = PLAN_NO_TENSOR};
    for (unsigned i = 0; i < PLAN_N_TEMPORARIES; i++) {
        all.temporaries[i] = buffers + i * n;
    }
    something(&all, first);
}

static void optimize_group(const PlanOver *all, bool first, unsigned group) {
    PlanOver part = *all;
    g_autofree PlanOperand *owned = g_new0(PlanOperand, all->run->graph->parameters.len);
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_group_of(all->run, p) == group) {
            owned[p] = all->owned[p];
        }
    }
    part.owned = owned;
    part.group = group;
    optimize(&part, first);
}

static void step_all(const PlanOver *all, bool first) {
    PlanOver with = *all;
    plan_scaler_begin_step(&with);
    unsigned n = plan_n_groups(all->run);
    for (unsigned group = 0; group < n; group++) {
        if (n > 1) {
            optimize_group(&with, first, group);
        } else {
            optimize(&with, first);
        }
    }
    plan_scaler_end_step(&with);
}

static void zero_all(const PlanOver *all, bool first) {
    bool keeps = all->run->strategy->zero_grad == PLAN_ZERO_KEEP;
    if (keeps && owns_something(all)) {
        zero_gradients(all);
    }
    if (!keeps) {
        all->run->flavour->drop_gradients(all->run);
    }
}

/* Each of several has an optimizer of its own, as torchtitan's stages of one rank have. */
static PlanRun *turn_to(PlanRun *runs, uint32_t *now, uint32_t i) {
    if (*now != i) {
        plan_run_hand_on(&runs[*now], &runs[i]);
        plan_run_at(&runs[i], PLAN_PHASE_OPTIMIZER, PLAN_NONE);
        *now = i;
    }
    return &runs[i];
}

void plan_run_optimizer(PlanRun *runs, uint32_t n, bool first) {
    uint32_t now = 0;
    plan_run_at(runs, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    if (runs->strategy->clip > 0) {
        plan_scaler_unscale(runs);
        runs->flavour->clip(runs);
    }
    for (uint32_t i = 0; i < n; i++) {
        over_all(turn_to(runs, &now, i), first, step_all);
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanRun *run = turn_to(runs, &now, i);
        plan_run_hook(run, run->flavour->stepped);
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanRun *run = turn_to(runs, &now, i);
        over_all(run, first, zero_all);
        plan_run_hook(run, run->flavour->end_step);
    }
    turn_to(runs, &now, 0);
    plan_run_at(runs, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}
