/* plan/optimizer/over.h - launches over lists of tensors, as optimizers make them. Inside plan/
 * only.
 *
 * A launch goes over a range of parameters at once (foreach, fused) or over one (loop): its
 * operands are lists with one tensor for each parameter of which this rank owns something.
 */
#pragma once

#include "plan/autograd/tensor.h"

typedef enum {
    PLAN_LIST_PARAMETER,
    PLAN_LIST_GRADIENT,      /* the decayed one where there is one */
    PLAN_LIST_MADE_GRADIENT, /* as backward made it */
    PLAN_LIST_STATE,         /* and the number of the state */
    PLAN_LIST_TEMPORARY = PLAN_LIST_STATE + PLAN_N_STATES
} PlanOptimizerList;

enum {
    PLAN_TEMPORARY_DECAYED, /* gradient + weight_decay * parameter */
    PLAN_TEMPORARY_ROOT,
    PLAN_TEMPORARY_DENOMINATOR,
    PLAN_N_TEMPORARIES
};

/* The parameters [from, to) that a launch goes over, what this rank owns of each, and their
 * temporaries: buffers by parameter, PLAN_NONE where there is none. */
typedef struct {
    PlanRun *run;
    uint32_t from, to;
    unsigned group; /* of the optimizer's (plan_group_of()) */
    const PlanOperand *owned;
    uint32_t *temporaries[PLAN_N_TEMPORARIES];
    PlanTensor scale, found;   /* that fused kernels look at (scaler.h), or none */
    const PlanTensor *settled; /* gradients that shared.c has made, by parameter; NULL: none */
} PlanOver;

static inline bool plan_over_owns(const PlanOver *over, uint32_t parameter) {
    return over->owned[parameter].elements > 0;
}
PlanOver plan_over_one(const PlanOver *over, uint32_t parameter);
/* Launches an op all of whose operands are lists. */
void plan_over_launch(const PlanOver *over, PlanOpKind kind, unsigned n, const unsigned *lists,
                      const double *attrs);
/* Likewise an op that also reads the gradients' scale, and whether one of them is not finite. */
void plan_over_launch_scaled(const PlanOver *over, PlanOpKind kind, unsigned n,
                             const unsigned *lists, const double *attrs);
void plan_over_make(const PlanOver *over, unsigned temporary, const char *name);
void plan_over_let_go(const PlanOver *over, unsigned temporary); /* from the last to the first */
/* Allocates a state of one parameter and leaves it unset. */
uint32_t plan_over_new_state(const PlanOver *over, uint32_t parameter, unsigned state,
                             uint64_t elements, PlanDtype dtype);
/* The same, set to 0. */
void plan_over_make_state(const PlanOver *over, uint32_t parameter, unsigned state,
                          uint64_t elements, PlanDtype dtype);
/* Coupled weight decay: a new list of gradients, which takes the place of the old. */
void plan_over_decay_gradients(const PlanOver *over);
