/* plan/optimizer.c - AdamW as PyTorch runs it (torch/optim/adam.py).
 *
 * foreach: one launch per arithmetic step over all tensors; the square roots live in a list of
 * temporaries until the step ends, and are let go from the last to the first. loop: the same steps
 * for one tensor after the other; a tensor's denominator lives until the next one's is made. fused:
 * one launch for everything, and a count of steps per tensor on the device.
 * State is made in the first step, in the order of the parameters.
 */
#include "plan/eager.h"

typedef enum {
    LIST_PARAMETER,
    LIST_GRADIENT,
    LIST_EXP_AVG,
    LIST_EXP_AVG_SQ,
    LIST_STEPS,
    LIST_ROOT,
    LIST_DENOMINATOR
} List;

/* The parameters that one launch goes over, and its temporaries, one per parameter. */
typedef struct {
    PlanRun *run;
    uint32_t from, to;
    uint32_t *roots, *denominators;
} Over;

/* ---- state ----------------------------------------------------------------------------------- */

static void make_state(PlanRun *run, uint32_t p, unsigned state, uint64_t elements) {
    static const char *const names[PLAN_N_STATES] = {"exp_avg", "exp_avg_sq", "steps"};
    plan_run_at_unit(run, run->unit_of_parameter[p]);
    uint32_t buffer = plan_builder_buffer(&run->builder, elements, PLAN_FP32, PLAN_OPTIMIZER_STATE,
                                          0, names[state]);
    plan_builder_alloc(&run->builder, buffer);
    plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)elements}, (double[]){0});
    plan_builder_whole(&run->builder, buffer);
    plan_builder_launch(&run->builder, 0);
    run->states[PLAN_N_STATES * p + state] = buffer;
}

static void make_states(PlanRun *run) {
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        uint64_t elements = run->flavour->owned(run, p).elements;
        if (!elements) {
            continue;
        }
        if (run->strategy->optimizer_kernel == PLAN_KERNEL_FUSED) {
            make_state(run, p, PLAN_STATE_STEPS, 1);
        }
        make_state(run, p, PLAN_STATE_EXP_AVG, elements);
        make_state(run, p, PLAN_STATE_EXP_AVG_SQ, elements);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

static PlanOperand state_operand(PlanRun *run, uint32_t p, unsigned state, uint64_t elements) {
    return (PlanOperand){.buffer = run->states[PLAN_N_STATES * p + state], .elements = elements};
}

static PlanOperand listed(const Over *over, uint32_t p, List list, uint64_t elements) {
    PlanRun *run = over->run;
    switch (list) {
    case LIST_PARAMETER:
        return run->flavour->owned(run, p);
    case LIST_GRADIENT:
        return run->flavour->gradient(run, p);
    case LIST_EXP_AVG:
        return state_operand(run, p, PLAN_STATE_EXP_AVG, elements);
    case LIST_EXP_AVG_SQ:
        return state_operand(run, p, PLAN_STATE_EXP_AVG_SQ, elements);
    case LIST_STEPS:
        return state_operand(run, p, PLAN_STATE_STEPS, 1);
    case LIST_ROOT:
        return (PlanOperand){.buffer = over->roots[p], .elements = elements};
    case LIST_DENOMINATOR:
        return (PlanOperand){.buffer = over->denominators[p], .elements = elements};
    }
    g_assert_not_reached();
}

static void launch(const Over *over, PlanOpKind kind, unsigned n, const List *lists,
                   const double *attrs) {
    PlanRun *run = over->run;
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, NULL, attrs);
    for (unsigned i = 0; i < n; i++) {
        for (uint32_t p = over->from; p < over->to; p++) {
            uint64_t elements = run->flavour->owned(run, p).elements;
            if (elements) {
                PlanOperand o = listed(over, p, lists[i], elements);
                plan_builder_operand(&run->builder, o.buffer, o.offset_bytes, o.elements);
            }
        }
    }
    plan_builder_launch(&run->builder, 0);
}

static void make_temporaries(const Over *over, uint32_t *buffers, const char *name) {
    for (uint32_t p = over->from; p < over->to; p++) {
        uint64_t elements = over->run->flavour->owned(over->run, p).elements;
        if (elements) {
            buffers[p] = plan_builder_buffer(&over->run->builder, elements, PLAN_FP32,
                                             PLAN_TEMPORARY_OP, 0, name);
            plan_builder_alloc(&over->run->builder, buffers[p]);
        }
    }
}

static void let_go(const Over *over, uint32_t *buffers) {
    for (uint32_t p = over->to; p-- > over->from;) {
        if (buffers[p] != PLAN_NONE) {
            plan_builder_free(&over->run->builder, buffers[p]);
            buffers[p] = PLAN_NONE;
        }
    }
}

/* ---- the three ways -------------------------------------------------------------------------- */

static void moments(const Over *over) {
    const PlanStrategy *s = over->run->strategy;
    launch(over, PLAN_OP_ADAM_DECAY, 1, (List[]){LIST_PARAMETER},
           (double[]){s->lr, s->weight_decay});
    launch(over, PLAN_OP_ADAM_MOMENT, 2, (List[]){LIST_GRADIENT, LIST_EXP_AVG}, &s->beta1);
    launch(over, PLAN_OP_ADAM_SQUARE_DECAY, 1, (List[]){LIST_EXP_AVG_SQ}, &s->beta2);
    launch(over, PLAN_OP_ADAM_SQUARE, 2, (List[]){LIST_GRADIENT, LIST_EXP_AVG_SQ}, &s->beta2);
    make_temporaries(over, over->roots, "root");
    launch(over, PLAN_OP_ADAM_SQRT, 2, (List[]){LIST_EXP_AVG_SQ, LIST_ROOT}, NULL);
}

static void update(const Over *over, List denominator) {
    const PlanStrategy *s = over->run->strategy;
    launch(over, PLAN_OP_ADAM_EPS, 1, &denominator, &s->eps);
    launch(over, PLAN_OP_ADAM_UPDATE, 3, (List[]){LIST_EXP_AVG, denominator, LIST_PARAMETER},
           (double[]){s->lr, s->beta1});
}

static void step_foreach(const Over *all) {
    moments(all);
    launch(all, PLAN_OP_ADAM_CORRECT, 1, (List[]){LIST_ROOT}, &all->run->strategy->beta2);
    update(all, LIST_ROOT);
    let_go(all, all->roots);
}

static void step_loop(const Over *all) {
    Over before = {.run = NULL};
    for (uint32_t p = all->from; p < all->to; p++) {
        Over one = *all;
        one.from = p;
        one.to = p + 1;
        if (!all->run->flavour->owned(all->run, p).elements) {
            continue;
        }
        moments(&one);
        make_temporaries(&one, one.denominators, "denominator");
        launch(&one, PLAN_OP_ADAM_DIVIDE, 2, (List[]){LIST_ROOT, LIST_DENOMINATOR},
               &all->run->strategy->beta2);
        let_go(&one, one.roots);
        if (before.run) {
            let_go(&before, before.denominators);
        }
        update(&one, LIST_DENOMINATOR);
        before = one;
    }
    let_go(&before, before.denominators);
}

static void step_fused(const Over *all) {
    const PlanStrategy *s = all->run->strategy;
    launch(all, PLAN_OP_ADAM_FUSED, 5,
           (List[]){LIST_GRADIENT, LIST_PARAMETER, LIST_EXP_AVG, LIST_EXP_AVG_SQ, LIST_STEPS},
           (double[]){s->lr, s->beta1, s->beta2, s->eps, s->weight_decay});
}

static void step(PlanRun *run) {
    uint32_t n = run->graph->parameters->len;
    g_autofree uint32_t *roots = g_new(uint32_t, n), *denominators = g_new(uint32_t, n);
    for (uint32_t p = 0; p < n; p++) {
        roots[p] = denominators[p] = PLAN_NONE;
    }
    Over all = {run, 0, n, roots, denominators};
    switch ((PlanOptimizerKernel)run->strategy->optimizer_kernel) {
    case PLAN_KERNEL_FOREACH:
        step_foreach(&all);
        return;
    case PLAN_KERNEL_LOOP:
        step_loop(&all);
        return;
    case PLAN_KERNEL_FUSED:
        step_fused(&all);
        return;
    }
}

static bool owns_something(PlanRun *run) {
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        if (run->flavour->owned(run, p).elements) {
            return true;
        }
    }
    return false;
}

void plan_run_optimizer(PlanRun *run, bool first) {
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    if (first) {
        make_states(run);
    }
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
    if (owns_something(run)) { /* a rank beyond the last row has nothing to step */
        step(run);
    }
    run->flavour->zero_grad(run);
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}
