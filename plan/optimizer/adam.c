/* plan/optimizer/adam.c - Adam and AdamW as PyTorch runs them (torch/optim/adam.py).
 *
 * foreach: one launch per arithmetic step over all tensors; the square roots live in a list of
 * temporaries until the step ends, and are let go from the last to the first. loop: the same steps
 * for one tensor after the other; a tensor's denominator lives until the next one's is made, be
 * that an empty shard's; with optimizer_count = device each tensor's count goes up first, and the
 * host reads it before it steps that tensor (composer/optim/decoupled_weight_decay.py; PyTorch
 * issue 128208). fused: one launch for everything, and a count of steps per tensor on the device,
 * of empty ones too.
 * State is made in the first step, in the order of the parameters. AdamW's weight decay shrinks the
 * parameter; Adam's is added to the gradient in a new tensor, which foreach drops before the roots
 * and the loop before the next tensor's.
 */
#include "plan/autograd/launch.h"
#include "plan/autograd/read.h"
#include "plan/optimizer/groups.h"
#include "plan/optimizer/steps.h"

enum {
    LIST_EXP_AVG = PLAN_LIST_STATE + PLAN_STATE_EXP_AVG,
    LIST_EXP_AVG_SQ = PLAN_LIST_STATE + PLAN_STATE_EXP_AVG_SQ,
    LIST_STEPS = PLAN_LIST_STATE + PLAN_STATE_STEPS,
    LIST_ROOT = PLAN_LIST_TEMPORARY + PLAN_TEMPORARY_ROOT,
    LIST_DENOMINATOR = PLAN_LIST_TEMPORARY + PLAN_TEMPORARY_DENOMINATOR,
};

/* Fused kernels do, and the loop where the strategy says so. */
static bool counts_on_device(const PlanStrategy *s) {
    return s->optimizer_kernel == PLAN_KERNEL_FUSED || s->optimizer_count == PLAN_COUNT_DEVICE;
}

/* Whether the optimizer was given it, of which this rank may own nothing. */
static bool is_given(const PlanOver *all, uint32_t p) {
    return !plan_run_is_frozen(all->run, p) &&
           (plan_n_groups(all->run) == 1 || plan_group_of(all->run, p) == all->group);
}

void plan_adam_first(const PlanOver *all) {
    PlanRun *run = all->run;
    bool counts = counts_on_device(run->strategy);
    for (uint32_t p = all->from; p < all->to; p++) {
        PlanOperand owned = all->owned[p];
        bool steps_empty = run->flavour->has_empty_shards && is_given(all, p);
        if (counts && (owned.elements || steps_empty)) {
            plan_over_make_state(all, p, PLAN_STATE_STEPS, 1, PLAN_FP32);
        }
        if (!owned.elements) {
            continue;
        }
        PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, owned.buffer)->dtype;
        plan_over_make_state(all, p, PLAN_STATE_EXP_AVG, owned.elements, dtype);
        plan_over_make_state(all, p, PLAN_STATE_EXP_AVG_SQ, owned.elements, dtype);
    }
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}

/* Whether weight decay is decoupled, as AdamW's is, by itself or beside Muon. */
static bool is_decoupled(const PlanStrategy *s) {
    return s->optimizer != PLAN_OPTIMIZER_ADAM;
}

static void decay(const PlanOver *over) {
    const PlanStrategy *s = over->run->strategy;
    if (s->weight_decay == 0) {
        return;
    }
    if (is_decoupled(s)) {
        plan_over_launch(over, PLAN_OP_ADAM_DECAY, 1, (unsigned[]){PLAN_LIST_PARAMETER},
                         (double[]){s->lr, s->weight_decay});
    } else {
        plan_over_decay_gradients(over);
    }
}

static void moments(const PlanOver *over) {
    const PlanStrategy *s = over->run->strategy;
    decay(over);
    plan_over_launch(over, PLAN_OP_ADAM_MOMENT, 2, (unsigned[]){PLAN_LIST_GRADIENT, LIST_EXP_AVG},
                     &s->beta1);
    plan_over_launch(over, PLAN_OP_ADAM_SQUARE_DECAY, 1, (unsigned[]){LIST_EXP_AVG_SQ}, &s->beta2);
    plan_over_launch(over, PLAN_OP_ADAM_SQUARE, 2,
                     (unsigned[]){PLAN_LIST_GRADIENT, LIST_EXP_AVG_SQ}, &s->beta2);
}

static void make_roots(const PlanOver *over) {
    plan_over_make(over, PLAN_TEMPORARY_ROOT, "root");
    plan_over_launch(over, PLAN_OP_ADAM_SQRT, 2, (unsigned[]){LIST_EXP_AVG_SQ, LIST_ROOT}, NULL);
}

static void update(const PlanOver *over, unsigned denominator) {
    const PlanStrategy *s = over->run->strategy;
    plan_over_launch(over, PLAN_OP_ADAM_EPS, 1, &denominator, &s->eps);
    plan_over_launch(over, PLAN_OP_ADAM_UPDATE, 3,
                     (unsigned[]){LIST_EXP_AVG, denominator, PLAN_LIST_PARAMETER},
                     (double[]){s->lr, s->beta1});
}

/* 2.0 and before did not add eps in place: a second list, of all tensors. */
static void update_by_denominators(const PlanOver *all) {
    plan_over_make(all, PLAN_TEMPORARY_DENOMINATOR, "denominator");
    plan_over_launch(all, PLAN_OP_ADAM_DIVIDE, 2, (unsigned[]){LIST_ROOT, LIST_DENOMINATOR},
                     &all->run->strategy->beta2);
    update(all, LIST_DENOMINATOR);
    plan_over_let_go(all, PLAN_TEMPORARY_ROOT);
    plan_over_let_go(all, PLAN_TEMPORARY_DENOMINATOR);
}

static void step_foreach(const PlanOver *all) {
    moments(all);
    plan_over_let_go(all, PLAN_TEMPORARY_DECAYED);
    make_roots(all);
    if (!plan_strategy_is_after(all->run->strategy, PLAN_PYTORCH_2_0)) {
        update_by_denominators(all);
        return;
    }
    plan_over_launch(all, PLAN_OP_ADAM_CORRECT, 1, (unsigned[]){LIST_ROOT},
                     &all->run->strategy->beta2);
    update(all, LIST_ROOT);
    plan_over_let_go(all, PLAN_TEMPORARY_ROOT);
}

/* The parameter's count of steps on the device; PLAN_NONE: it has none. */
static uint32_t count_of(const PlanOver *all, uint32_t p) {
    return all->run->states[PLAN_N_STATES * p + PLAN_STATE_STEPS];
}

/* One step more, a kernel for each count. */
static void count_on_device(const PlanOver *all) {
    for (uint32_t p = all->from; p < all->to; p++) {
        if (count_of(all, p) != PLAN_NONE) {
            PlanOperand count = all_of(all->run, count_of(all, p));
            LAUNCH_ON(all->run, PLAN_LANE_COMPUTE, PLAN_OP_ADD_NUMBER, PLAN_AXIS_NONE, DIMS(1),
                      &(double){1}, count, count);
        }
    }
}

static void read_count(const PlanOver *all, uint32_t p) {
    if (count_of(all, p) != PLAN_NONE) {
        plan_run_read_count(all->run, count_of(all, p));
    }
}

/* The turn of an empty shard, where the optimizer sees those: what is made of it, of no bytes,
 * takes the place of what the tensor before left. */
static void meet_empty(const PlanOver *before) {
    if (before->run->flavour->has_empty_shards) {
        plan_over_let_go(before, PLAN_TEMPORARY_DECAYED);
        plan_over_let_go(before, PLAN_TEMPORARY_DENOMINATOR);
    }
}

static void step_loop(const PlanOver *all) {
    PlanOver before = plan_over_one(all, all->from);
    count_on_device(all);
    for (uint32_t p = all->from; p < all->to; p++) {
        PlanOver one = plan_over_one(all, p);
        if (!is_given(all, p)) {
            continue;
        }
        read_count(all, p);
        if (!plan_over_owns(all, p)) {
            meet_empty(&before);
            continue;
        }
        plan_over_let_go(&before, PLAN_TEMPORARY_DECAYED);
        moments(&one);
        make_roots(&one);
        plan_over_make(&one, PLAN_TEMPORARY_DENOMINATOR, "denominator");
        plan_over_launch(&one, PLAN_OP_ADAM_DIVIDE, 2, (unsigned[]){LIST_ROOT, LIST_DENOMINATOR},
                         &all->run->strategy->beta2);
        plan_over_let_go(&one, PLAN_TEMPORARY_ROOT);
        if (before.from != p) {
            plan_over_let_go(&before, PLAN_TEMPORARY_DENOMINATOR);
        }
        update(&one, LIST_DENOMINATOR);
        before = one;
    }
    plan_over_let_go(&before, PLAN_TEMPORARY_DECAYED);
    plan_over_let_go(&before, PLAN_TEMPORARY_DENOMINATOR);
}

static void step_fused(const PlanOver *all) {
    const PlanStrategy *s = all->run->strategy;
    static const unsigned lists[] = {PLAN_LIST_GRADIENT, PLAN_LIST_PARAMETER, LIST_EXP_AVG,
                                     LIST_EXP_AVG_SQ, LIST_STEPS};
    double attrs[] = {s->lr, s->beta1, s->beta2, s->eps, s->weight_decay, is_decoupled(s)};
    if (all->found.storage == PLAN_NONE) {
        plan_over_launch(all, PLAN_OP_ADAM_FUSED, G_N_ELEMENTS(lists), lists, attrs);
    } else {
        plan_over_launch_scaled(all, PLAN_OP_ADAM_FUSED_SCALED, G_N_ELEMENTS(lists), lists, attrs);
    }
}

void plan_adam_step(const PlanOver *all) {
    switch ((PlanOptimizerKernel)all->run->strategy->optimizer_kernel) {
    case PLAN_KERNEL_FOREACH:
        step_foreach(all);
        return;
    case PLAN_KERNEL_LOOP:
        step_loop(all);
        return;
    case PLAN_KERNEL_FUSED:
        step_fused(all);
        return;
    }
}
