/* exec/comm/comm.h - what connects ranks: collectives between their hosts, and start-up.
 *
 * A table of functions. exec/comm/mpi.c fills it for ranks under MPI, exec/comm/fork.c for ranks
 * that this program has forked, exec/comm/alone.c for a single rank, exec/comm/rehearse.c for one
 * rank of many that are not there. Buffers are in the host's memory. GPUs have collectives of their
 * own (exec/cuda/comm/comm.h), and use this table to find each other.
 *
 * The caller makes sure that calls on one axis come one at a time, in the same order on every rank.
 * Functions that return bool set the error when they return false.
 */
#pragma once

#include "exec/watch/black-box.h"

/* A collective over the ranks of an axis. All of them call it with the same of everything but the
 * two pointers, which may be equal. */
typedef struct {
    PlanAxis axis;
    PlanDtype dtype;
    PlanReduction reduction; /* of those that reduce; others leave it alone */
    uint64_t elements;       /* of the whole tensor: all ranks' slices of it together */
    gconstpointer given;     /* NULL: what this rank gives lies where the result will lie */
    gpointer taken;
} ExecCollective;

/* A transfer between neighbours in the pipeline: `given` is sent there, `taken` is received from
 * there, each of so many elements; one may be NULL. An exchange has both, and the other rank then
 * exchanges too; a transfer one way has one, and the other rank the opposite one. */
typedef struct {
    uint32_t peer; /* which place of the pipeline */
    bool behind;   /* it is the next one; with several stages a rank the first is behind the last */
    bool swaps;    /* it is an exchange */
    PlanDtype dtype;
    gconstpointer given;
    gpointer taken;
    uint64_t elements;
} ExecTalk;

typedef struct {
    const char *name;
    uint32_t rank, world;
    uint32_t local_rank, local_world; /* among the ranks of this machine */
    bool rehearsed;   /* the other ranks are made up (exec/comm/rehearse.h): losses mean nothing */
    ExecDoing *doing; /* where this rank notes what it is about; NULL: nobody reads it */
    gpointer self;

    /* Collectives may be asked for once the ranks have joined a plan of their number. */
    bool (*join)(gpointer self, const Plan *plan, GError **error);
    /* All of these block, without spinning. They add up, or take the mean; a maximum is
     * exec_comm_all_reduce()'s. An all-reduce and a broadcast are in place: given is NULL. A
     * broadcast comes from the axis's first rank. */
    bool (*all_gather)(gpointer self, const ExecCollective *call, GError **error);
    bool (*reduce_scatter)(gpointer self, const ExecCollective *call, GError **error);
    bool (*all_reduce)(gpointer self, const ExecCollective *call, GError **error);
    bool (*broadcast)(gpointer self, const ExecCollective *call, GError **error);
    /* Waits until all ranks of the axis have come. *ns is when this one came, by its clock, and
     * becomes the latest of all: on one machine, where clocks are the same, that is more exact than
     * the moment at which this call returns. */
    bool (*meet)(gpointer self, PlanAxis axis, int64_t *ns, GError **error);
    /* Returns when `taken` has arrived and `given` has been received: on a GPU a send may wait for
     * its receive, so here it always does. Transfers with one peer come one at a time, in the same
     * order on both sides; exchanges are ordered among themselves. */
    bool (*talk)(gpointer self, const ExecTalk *talk, GError **error);

    bool (*barrier)(gpointer self, GError **error); /* this and the following: of all ranks */
    /* The mean over all ranks of n numbers, in place. */
    bool (*mean)(gpointer self, double *values, unsigned n, GError **error);
    /* Rank 0's bytes, at most a few KiB, to all. */
    bool (*share)(gpointer self, gpointer bytes, gsize n, GError **error);
    /* Rank 0 gets the text of rank `from`, which is another; the rest get NULL. Transfer full. */
    bool (*collect)(gpointer self, uint32_t from, const char *text, char **ret_text,
                    GError **error);
    /* From any thread: this rank has failed, so its other threads stop waiting for ranks that may
     * be waiting for it. Their calls then fail. */
    void (*give_up)(gpointer self);
    void (*abort)(gpointer self, int status); /* ends all ranks, and does not return */
    void (*close)(gpointer self);
} ExecComm;

extern const ExecComm exec_comm_alone; /* rank 0 of 1 */

/* The number of a rank's group on the axis; 0 for PLAN_AXIS_NONE, where all ranks are one group. */
uint32_t exec_comm_color(const Plan *plan, PlanAxis axis, uint32_t rank);

/* An all-reduce by any reduction. A maximum is taken of what all ranks gather. */
bool exec_comm_all_reduce(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          GError **error);

/* Like meet(), for the two ranks of a transfer, of which only peer, behind and swaps matter. */
bool exec_comm_meet_to_talk(const ExecComm *comm, ExecTalk talk, int64_t *ns, GError **error);

/* Each rank receives what the rank so many places ahead of it on the axis gives, in a ring; what is
 * given may lie where it is taken. Done by a gather. */
bool exec_comm_take_ahead(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          uint32_t ahead, GError **error);
/* Likewise from the rank before it. */
bool exec_comm_pass_on(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                       GError **error);

/* Each rank receives its part of what every rank of the axis gives, in rank order; parts are equal.
 * Done by a gather. */
bool exec_comm_all_to_all(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          GError **error);

/* A reduce-scatter that sums what is given / divisor, divided in fp32 and rounded to dtype before
 * the sum. */
bool exec_comm_reduce_scatter_divided(const ExecComm *comm, const ExecCollective *call,
                                      double divisor, GError **error);
