/* plan/check/private.h - what the files that walk a role share: where the walk is, and what lanes
 * have done with buffers by then. Inside plan/check/ only.
 *
 * Order between lanes is kept with vector clocks: each lane counts its launches, and remembers how
 * far it knows every other lane to have come; recording an event stores that knowledge, waiting
 * merges it.
 */
#pragma once

#include "plan/check/check.h"
#include "plan/check/parts.h"
#include "plan/op/alike.h"
#include "plan/vector.h"

typedef struct {
    uint32_t of[PLAN_MAX_LANES];
} PlanCheckClock;

/* What has been done with a buffer since it was allocated. */
typedef struct {
    PlanCheckClock used; /* each lane's last use of it, for lanes in used_by; before the first use,
                          * the pool's debt when it was allocated */
    uint32_t written_at; /* 0: not yet */
    uint16_t used_by;    /* lanes that have used it, a bit each */
    uint16_t marks;      /* lanes, likewise */
    uint8_t written_by;  /* lane */
    bool in_parts;       /* its uses are held one by one, in: */
    uint32_t part_uses;
} PlanCheckBuffer;

/* The buffers of a role. A pool's debt: the last uses, by other lanes, of memory that was freed to
 * it. Whoever is given memory of that pool may be given theirs, and so has to come after them. */
typedef struct {
    /* By buffer; arrays of their own, because the plan's records are many times as large. */
    uint8_t *pool;   /* lane whose pool serves it */
    uint32_t *place; /* where its state stands in `states` */
    /* States of the buffers that live. A place is reused at once, which keeps them close together
     * in memory. Place 0 stands for all buffers that do not live; no lane has used it. */
    PLAN_VECTOR(PlanCheckBuffer) states;
    PLAN_VECTOR(uint32_t) spare;   /* places to use again */
    PLAN_VECTOR(uint32_t) carried; /* those that some section leaves alive */
    bool has_parts;                /* lanes use parts of buffers by turns */
    PlanPartUses part_uses;
    PlanCheckClock debt[PLAN_MAX_LANES]; /* of each pool */
    uint16_t settled[PLAN_MAX_LANES]; /* by pool, a bit for each lane that knows of all its debt */
} PlanCheckBuffers;

/* The instructions at which ranks meet, of each section: plan_op_joins_ranks(). */
typedef struct {
    PLAN_VECTOR(uint32_t) at[PLAN_N_SECTIONS];
} PlanCheckMeetings;

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    uint32_t first_id; /* the first role of its stage */
    uint32_t role_id;
    PlanSection section;
    uint32_t index;
    const PlanOp *op; /* of the launch at hand */
    PlanCheckClock lanes[PLAN_MAX_LANES];
    PlanCheckBuffers buffers;
    uint16_t *began_with; /* plan_check_standing() of each carried buffer as the section began */
    PlanAlike sound;      /* ops of all roles so far */
    PlanCheckMeetings meetings[2]; /* of the first role of the stage, and of the role at hand */
    /* Of this section and those before it. */
    PlanCheckClock *events[PLAN_MAX_BEFORE + 1];
    bool *recorded[PLAN_MAX_BEFORE + 1];
    GError **error;
} PlanCheck;

/* Sets the error, with the place where the walk is; returns false. */
bool plan_check_fail(PlanCheck *c, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Buffers (buffers.c). */
void plan_check_make_room(PlanCheckBuffers *buffers, const Plan *plan); /* for any of its roles */
void plan_check_clear_buffers(PlanCheckBuffers *buffers);
void plan_check_begin_buffers(PlanCheck *c); /* of the role at hand: none lives */
bool plan_check_alloc(PlanCheck *c, uint32_t buffer);
bool plan_check_free_buffer(PlanCheck *c, uint32_t buffer);
bool plan_check_mark(PlanCheck *c, uint32_t buffer, uint8_t lane);
/* The operands of the op at hand, which the lane launches. */
bool plan_check_operands(PlanCheck *c, uint8_t lane);
/* Those live that are declared as carried beyond the section at hand, and no others. */
bool plan_check_carried(PlanCheck *c);
/* Whether the buffer lives, and for which lanes the allocator will wait when it is freed: nothing
 * else about it matters once every lane is at rest. */
uint16_t plan_check_standing(const PlanCheck *c, uint32_t buffer);

/* Ranks that meet (meetings.c). */
void plan_check_begin_meetings(PlanCheck *c); /* of the section at hand */
void plan_check_meet(PlanCheck *c);           /* at the instruction at hand */
/* The role at hand meets as the first role of its stage does. */
bool plan_check_meetings(const PlanCheck *c);
void plan_check_clear_meetings(PlanCheck *c);
/* Each role is of one stage, in the order of the stages. */
bool plan_check_roles_of_stages(const Plan *plan, GError **error);
bool plan_check_begins_stage(const Plan *plan, uint32_t role);
