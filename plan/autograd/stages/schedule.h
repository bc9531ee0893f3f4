/* plan/autograd/stages/schedule.h - what each place of the pipeline does, and when, where a rank
 * has several stages.
 *
 * ScheduleInterleaved1F1B of torch.distributed.pipelining (PyTorch 2.13, schedules.py): a place of
 * the pipeline has every places-th stage. Microbatches go in rounds of about as many as there are
 * places, each round through all stages of a place before the next begins; a place begins with
 * (stages - 1) rounds of forwards and two more for each place behind it, then works forward and
 * backward alternately. ScheduleLoopedBFS (breadth_first) takes all microbatches through a stage
 * before the next, and all back, the last first. To either come, as _PipelineScheduleRuntime adds
 * them:
 *   gathers     the next three stages that will be worked on are whole; others are let go of
 *   reductions  behind the last backward of a stage
 *   transfers   what an action makes is sent right behind it. The peer asks for it where the sender
 *               comes to send it if all places play in rounds, so both have the same order
 *
 * Inside plan/ only. It knows of no tensors.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    /* On all units of a stage: */
    PLAN_STAGE_GATHER,
    PLAN_STAGE_RESHARD,
    PLAN_STAGE_REDUCE,
    /* On one microbatch of a stage: */
    PLAN_STAGE_FORWARD,
    PLAN_STAGE_BACKWARD,
    PLAN_STAGE_SEND,        /* its result, to the next stage */
    PLAN_STAGE_SEND_BACK,   /* the gradient of its input, to the stage before */
    PLAN_STAGE_RECEIVE,     /* its input */
    PLAN_STAGE_RECEIVE_BACK /* the gradient of its result */
} PlanStageActionKind;

typedef struct {
    PlanStageActionKind kind;
    uint32_t stage, chunk; /* of all stages of the pipeline */
} PlanStageAction;

typedef struct {
    uint32_t places, stages, chunks; /* stages: of each place */
    bool breadth_first;
} PlanSchedule;

/* How many rounds a step's microbatches make; they are as long where it divides them. */
uint64_t plan_schedule_rounds(uint64_t places, uint64_t chunks);
/* GArray of PlanStageAction: the place's program. */
GArray *plan_schedule_of_place(const PlanSchedule *schedule, uint32_t place);
