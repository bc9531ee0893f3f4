/* plan/optimizer/optimizer.h - what the optimizers have in common. Inside plan/ only.
 *
 * A launch goes over a range of parameters at once (foreach, fused) or over one (loop): its
 * operands are lists with one tensor for each parameter of which this rank owns something.
 */
#pragma once

#include "plan/autograd/eager.h"

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

/* The whole of it: clips, steps and drops gradients. runs: n of one rank, of which the first has
 * the builder. */
void plan_run_optimizer(PlanRun *runs, uint32_t n, bool first);

bool plan_over_owns(const PlanOver *over, uint32_t parameter);
PlanOver plan_over_one(const PlanOver *over, uint32_t parameter);
/* Launches an op all of whose operands are lists. */
void plan_over_launch(const PlanOver *over, PlanOpKind kind, unsigned n, const unsigned *lists,
                      const double *attrs);
/* Likewise, of what is told its gradients' scale, and whether one of them is not finite. */
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
/* Of group 0 of two, matrices; AdamW steps the other. */
void plan_muon_first(const PlanOver *all);
void plan_muon_step(const PlanOver *all);
void plan_eight_bit_step(const PlanOver *all); /* makes its state, too */
bool plan_muon_takes(const PlanRun *run, uint32_t parameter);

/* shared.c: an operator over a list takes DTensors or others. So where nothing is wrapped and ranks
 * that share layers leave sequences whole, what each has whole is a group of the optimizer's, and
 * what they share a second. Muon's matrices are a group, and AdamW's parameters the other. */
unsigned plan_n_groups(const PlanRun *run);
unsigned plan_group_of(const PlanRun *run, uint32_t parameter);
/* Of layers that ranks share where nothing is sharded, each operator that reads gradients
 * has DTensors settle them (plan_shared_settled()) for itself. NULL: nothing is to settle.
 * transfer full */
PlanTensor *plan_settle_gradients(const PlanOver *over);
/* Of one, all ranks' sum, or PLAN_NO_TENSOR. */
PlanTensor plan_settled_sum(PlanRun *run, uint32_t parameter);
void plan_settled_let_go(PlanRun *run, PlanTensor *settled); /* NULL is fine; and frees it */

/* clip.c: scales the gradients down to the strategy's norm, each rank knowing its part of them on
 * the axis; NONE: all of them. */
void plan_clip_norm(PlanRun *run, PlanAxis axis, uint64_t ranks);
void plan_clip_whole(PlanRun *run);
/* Where ranks share experts, or layers without sequences: a norm of these and one of the rest. */
void plan_clip_norms_of_two(PlanRun *run, uint64_t ranks);
/* Of FSDP2 in PyTorch 2.4. */
void plan_clip_norm_of_2_4(PlanRun *run, uint64_t ranks);
/* FSDP1's: a norm for each rank, then over ranks; zero: the norm where there are no gradients, of
 * plan_clip_new_zero(), or PLAN_NO_TENSOR: made where it is needed. */
void plan_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero);
PlanTensor plan_clip_new_zero(PlanRun *run);
/* Numbers become, in their place, the sums of all ranks of the axis. */
void plan_clip_all_reduce(PlanRun *run, PlanTensor sums, PlanAxis axis, uint64_t ranks);
/* Of each rank's norms, in their place those of all ranks of the axis; in a new tensor. */
PlanTensor plan_norms_over_ranks(PlanRun *run, PlanTensor norms, PlanAxis axis, uint64_t ranks,
                                 const char *name);
/* Of a rank's norm, that of all ranks of the axis; on the device, in fp32. */
PlanTensor plan_clip_over_ranks(PlanRun *run, PlanTensor local, PlanAxis axis, uint64_t ranks);
