/* plan/autograd/stages/parts.h - what the schedules of stages are made of: a stage's microbatches,
 * each with a tape of its own, and what a stage gives and takes. Inside plan/ only: parts.c,
 * stages.c (one stage a rank) and several.c.
 */
#pragma once

#include "plan/autograd/stages/stages.h"

typedef struct {
    PlanTape tape;
    PlanTensor taken;    /* what the stage before gave */
    PlanTensor gradient; /* what the stage behind gives */
    PlanTensor result;   /* until its backward */
    PlanTensor loss;
    PlanTensor made; /* the gradient of what was taken, until it is sent; several a rank */
    uint32_t taken_event, gradient_event; /* they are there; several a rank */
} PlanStageChunk;

/* What has been sent by itself: its tensor and what to wait for. */
typedef struct {
    PlanRun *run; /* whose tensor it is */
    PlanTensor tensor;
    uint32_t event;
} PlanStageSent;

typedef PLAN_VECTOR(PlanStageSent) PlanStageSentList;

struct _PlanStages {
    PlanStageChunk *chunks;
    uint32_t n_chunks, now; /* microbatches, and the one that runs */
    uint32_t n_values, n_ops, n_parameters;
    PlanTensor result, gradient, loss; /* what local variables hold; one a rank */
    PlanTensor arrived;                /* the gradient that backward has just made; no reference */
    PlanStageSentList sent;            /* sends that are still to be waited for */
    PlanPhase phase;                   /* of the last chunk */
    bool has_gathered;                 /* in the first step or later; several a rank */
};

static inline bool plan_stage_takes(const PlanRun *run) {
    return run->graph->arrives != PLAN_NONE;
}

static inline bool plan_stage_gives(const PlanRun *run) {
    return !plan_graph_is_last_stage(run->graph);
}

/* The variable's tensor is let go of. */
void plan_stage_replace(PlanRun *run, PlanTensor *variable, PlanTensor tensor);

/* Tensors for what comes, of all microbatches: made in the first step. */
void plan_stage_make_receivers(PlanRun *run);
void plan_stage_make_gradient_receivers(PlanRun *run);

/* A transfer, with the stage before or the one behind. Returns its lane, which knows of all that
 * compute was given. */
uint8_t plan_stage_issue(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                         PlanTensor taken);
/* Is held by the list, and what is sent last is at its end. */
void plan_stage_send(PlanRun *run, PlanStageSentList *sent, bool to_before, PlanTensor tensor);

/* FSDP2's root begins to forward. */
void plan_stage_begin_forward(PlanRun *run);
/* A microbatch goes through the stage; its result is held, or its loss. */
void plan_stage_forward(PlanRun *run, uint32_t chunk);
/* Its gradient has come; that of what was taken is `arrived`. */
void plan_stage_backward(PlanRun *run, uint32_t chunk);
/* All microbatches are through: units reduce what they have added up, the root first. */
void plan_stage_reduce(PlanRun *run);
