/* sim/replay.h - repeats the memory of a measured play, with the answers its allocator was given.
 *
 * Where buffers are marked for other lanes, the moment at which a freed block can be used again
 * depends on the machine's timing, which no prediction has. A trace therefore records what the
 * allocator was told about events. With these answers every statistic must be equal at every
 * instruction, if plan, player and allocator are the same. No op runs, and there is no clock. A
 * play that ran out of memory is repeated up to that point, with the memory that it had.
 *
 * Threads: one. Cost: that of the plan's allocations.
 */
#pragma once

#include "plan/plan.h"
#include "trace/trace.h"

typedef struct {
    uint32_t n_rows;    /* memory rows compared */
    uint64_t n_answers; /* that the allocator asked for */
    bool equal;   /* allocated, active and reserved are, in all rows, and so is their number */
    bool ran_out; /* the measured play ended out of memory; if equal, so did this one */
    /* The first row that differs: in the trace, and here. One of them may be missing. */
    bool has_measured, has_replayed;
    TraceMemoryRow measured, replayed;
} SimReplay;

/* A rank of a measured trace of this plan. False with error: the trace is of another plan, or its
 * record does not fit the play. */
bool sim_replay(const Plan *plan, const Trace *trace, uint32_t rank, SimReplay *ret_replay,
                GError **error);
