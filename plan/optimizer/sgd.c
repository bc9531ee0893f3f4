/* plan/optimizer/sgd.c - SGD as PyTorch runs it (torch/optim/sgd.py), with momentum or without.
 *
 * Weight decay is added to the gradient in a new tensor. In the first step the momentum is made as
 * a copy of the (decayed) gradient; foreach copies tensor after tensor, the fused kernel is given
 * empty ones. With momentum the new tensors are dropped as soon as the momentum has taken them in;
 * without, foreach drops them when the step ends and the loop before the next tensor's.
 */
#include "plan/optimizer/steps.h"

enum {
    LIST_MOMENTUM = PLAN_LIST_STATE + PLAN_STATE_MOMENTUM
};

static bool has_momentum(const PlanOver *over) {
    return over->run->strategy->optimizer == PLAN_OPTIMIZER_MOMENTUM;
}

static bool is_first(const PlanOver *over) {
    return over->run->builder.section == PLAN_SECTION_FIRST;
}

static uint32_t new_momentum(const PlanOver *over, uint32_t p) {
    PlanRun *run = over->run;
    PlanOperand owned = over->owned[p];
    /* Made of the gradient, as it is or decayed, which makes it the parameter's dtype. */
    bool decays = run->strategy->weight_decay != 0;
    uint32_t of = decays ? owned.buffer : run->flavour->gradient(run, p).buffer;
    PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, of)->dtype;
    uint32_t buffer = plan_over_new_state(over, p, PLAN_STATE_MOMENTUM, owned.elements, dtype);
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    return buffer;
}

void plan_sgd_first(const PlanOver *all) {
    bool fused = all->run->strategy->optimizer_kernel == PLAN_KERNEL_FUSED;
    for (uint32_t p = all->from; p < all->to && fused && has_momentum(all); p++) {
        if (plan_over_owns(all, p)) {
            new_momentum(all, p);
        }
    }
}

static void copy_to_momentum(const PlanOver *over) {
    PlanRun *run = over->run;
    for (uint32_t p = over->from; p < over->to; p++) {
        if (!plan_over_owns(over, p)) {
            continue;
        }
        new_momentum(over, p);
        PlanOver one = plan_over_one(over, p);
        plan_over_launch(&one, PLAN_OP_MOMENTUM_START, 2,
                         (unsigned[]){PLAN_LIST_GRADIENT, LIST_MOMENTUM}, NULL);
    }
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}

static void take_in(const PlanOver *over) {
    if (is_first(over)) {
        copy_to_momentum(over);
    } else {
        plan_over_launch(over, PLAN_OP_MOMENTUM_DECAY, 1, (unsigned[]){LIST_MOMENTUM},
                         &over->run->strategy->momentum);
        plan_over_launch(over, PLAN_OP_MOMENTUM_ADD, 2,
                         (unsigned[]){PLAN_LIST_GRADIENT, LIST_MOMENTUM}, NULL);
    }
    plan_over_let_go(over, PLAN_TEMPORARY_DECAYED);
}

static void step_over(const PlanOver *over) {
    const PlanStrategy *s = over->run->strategy;
    unsigned direction = PLAN_LIST_GRADIENT;
    if (s->weight_decay != 0) {
        plan_over_decay_gradients(over);
    }
    if (has_momentum(over)) {
        take_in(over);
        direction = LIST_MOMENTUM;
    }
    plan_over_launch(over, PLAN_OP_SGD_UPDATE, 2, (unsigned[]){direction, PLAN_LIST_PARAMETER},
                     &s->lr);
}

static void step_loop(const PlanOver *all) {
    PlanOver before = plan_over_one(all, all->from);
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            PlanOver one = plan_over_one(all, p);
            plan_over_let_go(&before, PLAN_TEMPORARY_DECAYED);
            step_over(&one);
            before = one;
        }
    }
    plan_over_let_go(&before, PLAN_TEMPORARY_DECAYED);
}

static void step_fused(const PlanOver *all) {
    const PlanStrategy *s = all->run->strategy;
    if (has_momentum(all)) {
        plan_over_launch(all, PLAN_OP_MOMENTUM_FUSED, 3,
                         (unsigned[]){PLAN_LIST_GRADIENT, PLAN_LIST_PARAMETER, LIST_MOMENTUM},
                         (double[]){s->lr, s->momentum, s->weight_decay, is_first(all)});
    } else {
        plan_over_launch(all, PLAN_OP_SGD_FUSED, 2,
                         (unsigned[]){PLAN_LIST_GRADIENT, PLAN_LIST_PARAMETER},
                         (double[]){s->lr, s->weight_decay});
    }
}

void plan_sgd_step(const PlanOver *all) {
    switch ((PlanOptimizerKernel)all->run->strategy->optimizer_kernel) {
    case PLAN_KERNEL_FOREACH:
        step_over(all);
        plan_over_let_go(all, PLAN_TEMPORARY_DECAYED);
        return;
    case PLAN_KERNEL_LOOP:
        step_loop(all);
        return;
    case PLAN_KERNEL_FUSED:
        step_fused(all);
        return;
    }
}
