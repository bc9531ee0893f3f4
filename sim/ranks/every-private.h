/* sim/ranks/every-private.h - an every-rank play's state: every.c plays it, every-read.c reads
 * it. */
#pragma once

#include "plan/player.h"
#include "sim/queue.h"
#include "sim/ranks/every.h"
#include "sim/ranks/fiber.h"
#include "sim/ranks/meeting.h"

typedef struct _SimEvery SimEvery;

typedef struct {
    SimEvery *every;
    uint32_t rank, role;
    const ModelCluster *cluster; /* its node */
    SimDevice *device;
    PlanPlayer *player;
    SimFiber *fiber;
    GError *error;
    SimTime wants; /* while it waits: the moment it would go on to */
    SimActs who;   /* and what would act then */
} SimMember;

struct _SimEvery {
    /* What is asked for. */
    const Plan *plan;
    const ModelCluster *cluster;
    const SimOptions *options;
    const bool *played; /* by rank; NULL: all are */
    SimPrediction *prediction;

    GPtrArray *costs; /* SimOpCosts, one for each class of ranks */
    SimFabric *fabric;
    SimMeetings *meetings;
    SimMember *members;       /* by rank */
    uint32_t n_played, first; /* of these the first */
    SimQueue *waiting;        /* a slot a rank: its turn */
    GArray *ready;            /* uint32_t: ranks that can go on, and that did not yet */
    SimTime granted;          /* the rank that runs may go on to turns up to this one */
    uint32_t n_ended, n_at_barrier, n_resumed;
    SimTime barrier_ns;
    SimMember *failed;          /* NULL: none */
    SimMember *short_of_memory; /* the first in time that ran out, so far; NULL: none */
    SimTime short_at;           /* and when */
    bool inside;                /* a rank's fiber runs */
    bool over;                  /* whoever still waits is not played any more */
};

static inline bool sim_every_plays(const SimEvery *every, uint32_t rank) {
    return !every->played || every->played[rank];
}

/* The prediction, of a play that came to its end. */
void sim_every_read(SimEvery *every);
/* Of the prediction what no play is needed for. */
void sim_every_read_flops(SimEvery *every);
/* The prediction, of a play that a rank ended for want of memory. */
void sim_every_read_oom(SimEvery *every);
