/* sim/ranks/every-private.h - an every-rank play's state: every-members.c makes it, every.c
 * plays it, every-read.c reads it. */
#pragma once

#include "plan/player.h"
#include "sim/queue.h"
#include "sim/ranks/every.h"
#include "sim/ranks/fiber.h"
#include "sim/ranks/meeting.h"
#include "sim/ranks/task.h"

typedef struct _SimEvery SimEvery;

typedef struct {
    SimEvery *every;
    uint32_t rank, role;
    double pace; /* of its GPU among those of its kind, a factor on what kernels take; of one that
                  * stands for its kind, the slowest's, whom the others wait for */
    const ModelCluster *cluster; /* its node */
    SimDevice *device;
    PlanPlayer *player;
    SimFiber *fiber;
    GError *error;
    SimTime wants; /* while it waits: the moment it would go on to */
    SimActs who;   /* whether a lane or the host would act then */
} SimMember;

/* A ring: as they came. No rank stands in it twice. */
typedef struct {
    uint32_t *ranks;
    uint32_t first, n, room; /* room: that of all ranks */
} SimReady;

/* What a member's device and the meetings call, and what its fiber runs (self: SimMember). */
typedef struct {
    SimPeers peers;
    SimMeetingsHooks hooks;
    void (*run)(gpointer self);
} SimEveryActs;

struct _SimEvery {
    SimTask task; /* what is asked for */
    const SimEveryActs *acts;
    GPtrArray *costs; /* SimOpCosts, one for each class of ranks */
    SimFabric *fabric;
    SimMeetings *meetings;
    SimMember *members;       /* by rank */
    uint32_t n_played, first; /* how many are played, and the first of them */
    SimQueue *waiting;        /* a slot a rank: its turn */
    SimReady ready;           /* ranks that can go on, and that did not yet */
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
    return !every->task.played || every->task.played[rank];
}

/* A GPU's own pace is a draw outside all steps. */
static inline double sim_every_pace(const SimOptions *options, uint32_t rank) {
    return sim_jitter_factor(&options->jitter, SIM_JITTER_GPU, rank, INT32_MIN, 0);
}

/* A play that has no members yet. */
SimEvery *sim_every_new(const SimTask *task, const SimEveryActs *acts);
void sim_every_free(SimEvery *every);
/* limited: by the memory that there is. trace: the one to fill, or NULL. */
bool sim_every_add(SimEvery *every, uint32_t rank, bool limited, const Trace *trace,
                   GError **error);
/* Whether the rank's rows go to the trace. */
bool sim_every_traces(const SimEvery *every, uint32_t rank, const Trace *trace);

/* The prediction, of a play that came to its end. */
void sim_every_read(SimEvery *every);
/* Fills in the part of the prediction that needs no play. */
void sim_every_read_flops(SimEvery *every);
/* The prediction, of a play that a rank ended for want of memory. */
void sim_every_read_oom(SimEvery *every);
