#include "plan/optimizer/over.h"

#include "plan/autograd/launch.h"
#include "plan/autograd/tensor.h"
#include "plan/optimizer/shared.h"

/* ---- launches over lists --------------------------------------------------------------------- */

PlanOver plan_over_one(const PlanOver *over, uint32_t parameter) {
    PlanOver one = *over;
    one.from = parameter;
    one.to = parameter + 1;
    return one;
}

/* A parameter or its gradient. */
static PlanRef listed(const PlanOver *over, uint32_t p, unsigned list) {
    PlanRun *run = over->run;
    if (list == PLAN_LIST_PARAMETER) {
        return plan_builder_ref(&run->builder, over->owned[p]);
    }
    if (list == PLAN_LIST_GRADIENT && over->settled && over->settled[p].storage != PLAN_NONE) {
        return plan_builder_ref(&run->builder, plan_run_operand_of(run, over->settled[p]));
    }
    uint32_t decayed = over->temporaries[PLAN_TEMPORARY_DECAYED][p];
    return list == PLAN_LIST_GRADIENT && decayed != PLAN_NONE
               ? decayed
               : plan_builder_ref(&run->builder, run->flavour->gradient(run, p));
}

/* States and temporaries are buffers of their own: by parameter, so far apart. NULL: a list of
 * others. */
static const uint32_t *buffers_of(const PlanOver *over, unsigned list, unsigned *ret_apart) {
    if (list >= PLAN_LIST_TEMPORARY) {
        *ret_apart = 1;
        return over->temporaries[list - PLAN_LIST_TEMPORARY];
    }
    *ret_apart = PLAN_N_STATES;
    return list >= PLAN_LIST_STATE ? over->run->states + list - PLAN_LIST_STATE : NULL;
}

static void launch_lists(const PlanOver *over, unsigned n, const unsigned *lists) {
    PlanBuilder *builder = &over->run->builder;
    PlanRef *end = plan_builder_room(builder, n * (over->to - over->from));
    for (unsigned i = 0; i < n; i++) {
        unsigned apart;
        const uint32_t *buffers = buffers_of(over, lists[i], &apart);
        for (uint32_t p = over->from; p < over->to; p++) {
            if (over->owned[p].elements > 0) {
                *end++ = buffers ? buffers[p * apart] : listed(over, p, lists[i]);
            }
        }
    }
    plan_builder_written(builder, end);
    plan_builder_launch(builder, PLAN_LANE_COMPUTE);
}

/* How often it names the gradients beside other lists: PyTorch's addcmul_(square, g, g) twice. */
static unsigned times_asked(PlanOpKind kind, unsigned n, const unsigned *lists) {
    unsigned times = 0;
    for (unsigned i = 0; n > 1 && i < n; i++) {
        times += lists[i] == PLAN_LIST_GRADIENT;
    }
    return kind == PLAN_OP_ADAM_SQUARE ? 2 * times : times;
}

void plan_over_launch(const PlanOver *over, PlanOpKind kind, unsigned n, const unsigned *lists,
                      const double *attrs) {
    PlanRun *run = over->run;
    PlanTensor *settled[2] = {NULL, NULL};
    PlanOver with = *over;
    for (unsigned i = 0; i < times_asked(kind, n, lists); i++) {
        settled[i] = plan_settle_gradients(over);
    }
    with.settled = settled[0];
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, NULL, attrs);
    launch_lists(&with, n, lists);
    plan_settled_let_go(run, settled[1]);
    plan_settled_let_go(run, settled[0]);
}

void plan_over_launch_scaled(const PlanOver *over, PlanOpKind kind, unsigned n,
                             const unsigned *lists, const double *attrs) {
    plan_builder_begin_op(&over->run->builder, kind, PLAN_AXIS_NONE, NULL, attrs);
    plan_run_operand(over->run, over->scale);
    plan_run_operand(over->run, over->found);
    launch_lists(over, n, lists);
}

/* ---- temporaries and state ------------------------------------------------------------------- */

static PlanDtype dtype_of(const PlanOver *over, uint32_t p) {
    return (PlanDtype)plan_builder_at(&over->run->builder, over->owned[p].buffer)->dtype;
}

/* Kernels over lists ask for their results with empty_like; those over one tensor do not. */
void plan_over_make(const PlanOver *over, unsigned temporary, const char *name) {
    PlanBuilder *builder = &over->run->builder;
    bool is_listed = over->run->strategy->optimizer_kernel == PLAN_KERNEL_FOREACH;
    for (uint32_t p = over->from; p < over->to; p++) {
        if (plan_over_owns(over, p)) {
            uint32_t buffer = plan_builder_buffer(builder, over->owned[p].elements,
                                                  dtype_of(over, p), PLAN_TEMPORARY_OP, 0, name);
            if (is_listed) {
                plan_builder_alloc_empty(builder, buffer);
            } else {
                plan_builder_alloc(builder, buffer);
            }
            over->temporaries[temporary][p] = buffer;
        }
    }
}

void plan_over_let_go(const PlanOver *over, unsigned temporary) {
    uint32_t *buffers = over->temporaries[temporary];
    for (uint32_t p = over->to; p-- > over->from;) {
        plan_builder_drop(&over->run->builder, &buffers[p]);
    }
}

/* The unit whose tensor the optimizer sees in a parameter's place. FSDP1's flat parameters may
 * stand in the place of parameters of other units. */
static uint32_t unit_of(const PlanOver *over, uint32_t p) {
    PlanBuilder *builder = &over->run->builder;
    uint32_t buffer = over->owned[p].buffer;
    return buffer == PLAN_NONE ? over->run->unit_of_parameter[p]
                               : plan_builder_at(builder, buffer)->unit - builder->first_unit;
}

uint32_t plan_over_new_state(const PlanOver *over, uint32_t parameter, unsigned state,
                             uint64_t elements, PlanDtype dtype) {
    static const char *const names[PLAN_N_STATES] = {
        [PLAN_STATE_EXP_AVG] = "exp_avg",     [PLAN_STATE_EXP_AVG_SQ] = "exp_avg_sq",
        [PLAN_STATE_STEPS] = "steps",         [PLAN_STATE_MOMENTUM] = "momentum",
        [PLAN_STATE_ABSMAX] = "absmax",       [PLAN_STATE_MAP] = "map",
        [PLAN_STATE_ABSMAX_SQ] = "absmax_sq", [PLAN_STATE_MAP_SQ] = "map_sq",
    };
    PlanRun *run = over->run;
    if (state != PLAN_STATE_STEPS) {
        dtype = plan_strategy_state_dtype(run->strategy, dtype);
    }
    plan_run_at_unit(run, unit_of(over, parameter));
    uint32_t buffer = plan_builder_new_empty(&run->builder, elements, dtype, PLAN_OPTIMIZER_STATE,
                                             0, names[state]);
    run->states[PLAN_N_STATES * parameter + state] = buffer;
    return buffer;
}

void plan_over_make_state(const PlanOver *over, uint32_t parameter, unsigned state,
                          uint64_t elements, PlanDtype dtype) {
    PlanBuilder *builder = &over->run->builder;
    uint32_t begin = builder->sections[builder->section].len;
    uint32_t buffer = plan_over_new_state(over, parameter, state, elements, dtype);
    launch_in_place(over->run, PLAN_LANE_COMPUTE, PLAN_OP_FILL, 0, all_of(over->run, buffer));
    builder->n_once += builder->sections[builder->section].len - begin;
}

void plan_over_decay_gradients(const PlanOver *over) {
    static const unsigned lists[] = {PLAN_LIST_MADE_GRADIENT, PLAN_LIST_PARAMETER,
                                     PLAN_LIST_TEMPORARY + PLAN_TEMPORARY_DECAYED};
    plan_over_make(over, PLAN_TEMPORARY_DECAYED, "decayed");
    plan_builder_begin_op(&over->run->builder, PLAN_OP_GRADIENT_DECAY, PLAN_AXIS_NONE, NULL,
                          &over->run->strategy->weight_decay);
    launch_lists(over, G_N_ELEMENTS(lists), lists);
}
