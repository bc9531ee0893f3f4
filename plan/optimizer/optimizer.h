/* plan/optimizer/optimizer.h - what the optimizers have in common. Inside plan/ only.
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

/* The optimizer's part of a training step: clips gradients, steps, drops gradients. runs: the n
 * runs of one rank, one a stage; the first has the builder. */
void plan_run_optimizer(PlanRun *runs, uint32_t n, bool first);

bool plan_over_owns(const PlanOver *over, uint32_t parameter);
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

void plan_adam_first(const PlanOver *all); /* makes its state */
void plan_adam_step(const PlanOver *all);
void plan_sgd_first(const PlanOver *all);
void plan_sgd_step(const PlanOver *all);
/* Muon has group 0, the matrices (plan_muon_takes()); AdamW has group 1. */
void plan_muon_first(const PlanOver *all);
void plan_muon_step(const PlanOver *all);
void plan_eight_bit_step(const PlanOver *all); /* makes its state, too */
bool plan_muon_takes(const PlanRun *run, uint32_t parameter);

/* shared.c: the optimizer's groups of parameters, one or two. A foreach operator takes DTensors or
 * plain tensors, not both, so these are two groups, numbers 0 and 1:
 *   FSDP2               parameters that it is told to ignore, and its shards
 *   nothing is wrapped, and tensor ranks leave sequences whole
 *                       parameters that each rank has whole, and those that ranks share
 * With Muon group 0 is its matrices and group 1 what AdamW steps. */
unsigned plan_n_groups(const PlanRun *run);
unsigned plan_group_of(const PlanRun *run, uint32_t parameter);
/* Where tensor ranks share layers and nothing is sharded, a gradient may be a DTensor that is not
 * summed over the ranks yet, and every operator that reads it has to settle it first
 * (plan_shared_settled()). By parameter, what was made so. NULL: nothing is to settle. Transfer
 * full. */
PlanTensor *plan_settle_gradients(const PlanOver *over);
/* The same of one parameter; PLAN_NO_TENSOR: its gradient needs no settling. */
PlanTensor plan_settled_sum(PlanRun *run, uint32_t parameter);
void plan_settled_let_go(PlanRun *run, PlanTensor *settled); /* NULL is fine; and frees it */

/* clip.c: scales the gradients down to the strategy's norm. Each of `ranks` ranks of the axis knows
 * its own part of them; PLAN_AXIS_NONE: each rank knows all of them. */
void plan_clip_norm(PlanRun *run, PlanAxis axis, uint64_t ranks);
void plan_clip_whole(PlanRun *run);
/* Where ranks share experts, or share layers but not sequences: one norm of what they share, and
 * one of the rest. */
void plan_clip_norms_of_two(PlanRun *run, uint64_t ranks);
/* Of FSDP2 in PyTorch 2.4. */
void plan_clip_norm_of_2_4(PlanRun *run, uint64_t ranks);
/* FSDP1's clipping: each rank's own norm, then the norm of those. zero: the norm of a rank without
 * gradients, from plan_clip_new_zero(); PLAN_NO_TENSOR: it is made where it is needed. */
void plan_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero);
PlanTensor plan_clip_new_zero(PlanRun *run);
/* Sums numbers over all ranks of the axis, in place. */
void plan_clip_all_reduce(PlanRun *run, PlanTensor sums, PlanAxis axis, uint64_t ranks);
/* For each of some norms of this rank's gradients, the norm over all ranks of the axis, in a new
 * tensor. */
PlanTensor plan_norms_over_ranks(PlanRun *run, PlanTensor norms, PlanAxis axis, uint64_t ranks,
                                 const char *name);
/* The same of one norm; on the device, in fp32. */
PlanTensor plan_clip_over_ranks(PlanRun *run, PlanTensor local, PlanAxis axis, uint64_t ranks);
