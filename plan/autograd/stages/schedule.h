/* plan/autograd/stages/schedule.h - who does what when, where a rank has several stages.
 *
 * ScheduleInterleaved1F1B of torch.distributed.pipelining (PyTorch 2.13, schedules.py): a place of
 * the pipeline has every places-th stage. Microbatches go in rounds of about as many as there are
 * places, each round through all stages of a place before the next begins; a place begins with
 * (stages - 1) rounds of forwards and two more for each place behind it, then works forward and
 * backward by turns. ScheduleLoopedBFS (breadth_first) takes all microbatches through a stage
 * before the next, and all back, the last first. To either come, as _PipelineScheduleRuntime adds
 * them:
 *   gathers     the next three stages that will be worked on are whole; others are let go of
 *   reductions  behind the last backward of a stage
 *   transfers   what a turn makes is sent behind it, and the peer asks for it where the sender, as
 *               all places play in rounds, comes to that: so both have the same order
 *
 * Inside plan/ only. It knows of no tensors.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    PLAN_TURN_GATHER, /* of a stage: all of its units */
    PLAN_TURN_RESHARD,
    PLAN_TURN_REDUCE,
    PLAN_TURN_FORWARD, /* of a stage and a microbatch, these and those below */
    PLAN_TURN_BACKWARD,
    PLAN_TURN_SEND, /* the result, or the gradient of what was given */
    PLAN_TURN_SEND_BACK,
    PLAN_TURN_TAKE, /* receive the input, or the gradient of the result */
    PLAN_TURN_TAKE_BACK
} PlanTurnKind;

typedef struct {
    PlanTurnKind kind;
    uint32_t stage, chunk; /* of all stages of the pipeline */
} PlanTurn;

typedef struct {
    uint32_t places, stages, chunks; /* stages: of each place */
    bool breadth_first;
} PlanSchedule;

/* How many rounds a step's microbatches make; they are as long where it divides them. */
uint64_t plan_schedule_rounds(uint64_t places, uint64_t chunks);
/* GArray of PlanTurn: the place's program. */
GArray *plan_schedule_of_place(const PlanSchedule *schedule, uint32_t place);
