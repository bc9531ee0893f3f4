/* exec/comm/comm.h - what binds ranks together: collectives as a device asks for them, and
 * start-up.
 *
 * One table of functions: exec/comm/mpi.c fills it for ranks under MPI, exec/comm/fork.c for ranks
 * that this program itself has forked, exec/comm/alone.c for one rank, exec/comm/rehearse.c for one
 * of many. Collectives are in the host's memory; those between GPUs (exec/cuda/comm.h) use this
 * table to find each other. Calls on one axis come one at a time and in the same order on every
 * rank; the caller sees to it.
 */
#pragma once

#include "exec/watch/black-box.h"

/* What a rank has with the one before it or behind it in the pipeline: given goes there, taken
 * comes from there, each so many elements; NULL: nothing does. An exchange meets an exchange, what
 * goes one way alone what comes so. */
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
    /* elements is the whole tensor; buffers hold dtype. Gather: without a shard (NULL), slice
     * number axis rank is in place already. average: divide the sum by the ranks of the axis. All
     * block, without spinning. */
    bool (*all_gather)(gpointer self, PlanAxis axis, gconstpointer shard, gpointer gathered,
                       uint64_t elements, PlanDtype dtype, GError **error);
    bool (*reduce_scatter)(gpointer self, PlanAxis axis, gconstpointer packed, gpointer shard,
                           uint64_t elements, PlanDtype dtype, bool average, GError **error);
    bool (*all_reduce)(gpointer self, PlanAxis axis, gpointer buffer, uint64_t elements,
                       PlanDtype dtype, bool average, GError **error);
    /* From the axis's first rank. */
    bool (*broadcast)(gpointer self, PlanAxis axis, gpointer buffer, uint64_t elements,
                      PlanDtype dtype, GError **error);
    /* Waits for the axis's ranks. ns: when this one came, by its clock; becomes the latest of all.
     * A rank may learn late that all have come, so on one machine, which has one clock, this says
     * better when. */
    bool (*meet)(gpointer self, PlanAxis axis, int64_t *ns, GError **error);
    /* Blocks until what is taken has come and what is given has been taken: on a GPU a send may
     * wait for its receive, so here it does. Talks with one peer come one at a time, in the order
     * in which the other has them; exchanges are in an order of their own. */
    bool (*talk)(gpointer self, const ExecTalk *talk, GError **error);

    bool (*barrier)(gpointer self, GError **error); /* of all ranks; so are the rest */
    /* The mean over all ranks of n numbers, in place. */
    bool (*mean)(gpointer self, double *values, unsigned n, GError **error);
    /* Rank 0's bytes, at most a few KiB, to all. */
    bool (*share)(gpointer self, gpointer bytes, gsize n, GError **error);
    /* Rank 0 gets the text of rank `from`, which is another; the rest get NULL. Transfer full. */
    bool (*collect)(gpointer self, uint32_t from, const char *text, char **ret_text,
                    GError **error);
    /* From any thread: this rank has failed. What of it waits for others fails as well, since they
     * may be waiting for it. */
    void (*give_up)(gpointer self);
    void (*abort)(gpointer self, int status); /* ends all ranks, and does not return */
    void (*close)(gpointer self);
} ExecComm;

extern const ExecComm exec_comm_alone; /* rank 0 of 1 */

/* A rank's group on the axis; of none, which is for what all share, one color. */
uint32_t exec_comm_color(const Plan *plan, PlanAxis axis, uint32_t rank);

/* By any reduction, among so many ranks of the axis: the largest number is found in what all ranks
 * gather. */
bool exec_comm_all_reduce(const ExecComm *comm, PlanAxis axis, gpointer buffer, uint64_t elements,
                          uint64_t ranks, PlanDtype dtype, PlanReduction reduction, GError **error);

/* As meet(), of the two that talk; only peer and swaps are looked at. */
bool exec_comm_meet_to_talk(const ExecComm *comm, ExecTalk talk, int64_t *ns, GError **error);

/* taken is what the rank before this one has given, before the first the last: of what all ranks
 * gather. */
bool exec_comm_pass_on(const ExecComm *comm, const Plan *plan, PlanAxis axis, gconstpointer given,
                       gpointer taken, uint64_t elements, PlanDtype dtype, GError **error);

/* Of the axis's ranks each takes as many of what another has given, in the order of their places:
 * of what all ranks gather. */
bool exec_comm_all_to_all(const ExecComm *comm, const Plan *plan, PlanAxis axis,
                          gconstpointer given, gpointer taken, uint64_t elements, PlanDtype dtype,
                          GError **error);

/* Sums of what each rank has divided before; of half as many bits, in fp32. */
bool exec_comm_reduce_scatter_divided(const ExecComm *comm, PlanAxis axis, gconstpointer packed,
                                      gpointer shard, uint64_t elements, PlanDtype dtype,
                                      double divisor, GError **error);
