/* exec/comm.h - collectives as a device asks for them, whoever carries them out.
 *
 * One table of functions: exec/mpi.c fills it for ranks under MPI, exec/alone.c for one rank
 * without it. Calls on one axis come one at a time and in the same order on every rank; the caller
 * sees to it.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    const char *name;
    uint32_t rank, world;
    gpointer self;
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
    bool (*barrier)(gpointer self, GError **error);
    bool (*meet)(gpointer self, PlanAxis axis, GError **error); /* waits for the axis's ranks */
    /* The mean over all ranks of n numbers, in place. */
    bool (*mean)(gpointer self, double *values, unsigned n, GError **error);
} ExecComm;

extern const ExecComm exec_comm_alone; /* rank 0 of 1 */
