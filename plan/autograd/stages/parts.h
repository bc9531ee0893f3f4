/* plan/autograd/stages/parts.h - what the schedules of stages are made of: a stage's microbatches,
 * each with a tape of its own, and what a stage gives and takes.
 *
 * For parts.c, stages.c (one stage a rank) and several.c (several stages a rank) alone.
 */
#pragma once

#include "plan/autograd/stages/stages.h"

/* A microbatch. */
typedef struct {
    PlanTape tape;
    PlanTensor taken;    /* what the stage before gave */
    PlanTensor gradient; /* what the stage behind gives back */
    PlanTensor result;   /* held until its backward */
    PlanTensor loss;     /* of the last stage */
    /* Of several stages a rank: */
    PlanTensor made;                      /* the gradient of what was taken, until it is sent */
    uint32_t taken_event, gradient_event; /* taken, and gradient, are there */
} PlanStageChunk;

/* A send that is under way: its tensor is held until the event has been waited for. */
typedef struct {
    PlanRun *run; /* whose tensor it is */
    PlanTensor tensor;
    uint32_t event;
} PlanStageSent;

typedef PLAN_VECTOR(PlanStageSent) PlanStageSentList;

struct _PlanStages {
    PlanStageChunk *chunks;
    uint32_t n_chunks;
    uint32_t n_backwards;                   /* in this step, so far */
    uint32_t n_values, n_ops, n_parameters; /* the lengths of a tape's arrays */
    PlanTensor arrived;     /* the gradient that backward has just made; not a reference */
    PlanStageSentList sent; /* sends that are still to be waited for */
    PlanPhase phase;        /* of what the last chunk did */
    PlanTensor result, gradient, loss; /* one stage a rank: what local variables hold */
    bool has_gathered;                 /* several: units have been gathered, in any step */
};

static inline bool plan_stage_takes(const PlanRun *run) {
    return run->graph->arrives != PLAN_NONE;
}

static inline bool plan_stage_gives(const PlanRun *run) {
    return !plan_graph_is_last_stage(run->graph);
}

/* FSDP2's units are gathered and reduced when the schedule says so. DDP reduces in the last
 * backward of a step, and where nothing is wrapped there is nothing to. */
static inline bool plan_stage_is_sharded(const PlanRun *run) {
    return run->strategy->flavour == PLAN_FLAVOUR_FSDP2;
}

/* The units that are. */
static inline uint32_t plan_stage_n_sharded(const PlanRun *run) {
    return plan_stage_is_sharded(run) ? run->n_units : 0;
}

/* Assigns the variable, which lets go of the tensor that it held. */
void plan_stage_replace(PlanRun *run, PlanTensor *variable, PlanTensor tensor);

/* In the first step: makes the tensors that receive what comes, for all microbatches. */
void plan_stage_make_receivers(PlanRun *run);
void plan_stage_make_gradient_receivers(PlanRun *run);

/* Launches a transfer with the stage before, or the one behind, after all that compute was given.
 * Returns its lane. */
uint8_t plan_stage_issue(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                         PlanTensor taken);
/* Sends a tensor, which the list then holds; what is sent last is at the list's end. */
void plan_stage_send(PlanRun *run, PlanStageSentList *sent, bool to_before, PlanTensor tensor);

/* The network begins to forward. */
void plan_stage_begin_forward(PlanRun *run);
/* Runs a microbatch through the stage, and holds its result, or its loss. */
void plan_stage_forward(PlanRun *run, uint32_t chunk);
/* Runs the microbatch's backward, given its gradient; that of what was taken is then `arrived`. */
void plan_stage_backward(PlanRun *run, uint32_t chunk);
/* After all microbatches: units reduce what they have added up, the root first. */
void plan_stage_reduce(PlanRun *run);
