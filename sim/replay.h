/* sim/replay.h - the memory of a measured play again, with the answers its allocator was given.
 *
 * A play that ran out of memory is played again up to there, with the memory that it had.
 *
 * Where buffers are marked for other lanes, when a freed block is free again is a matter of time,
 * and no prediction has the machine's times. With the recorded answers there is nothing left to
 * differ: if the plan, the player and the allocator are the same, so is every statistic at every
 * instruction. No op runs and no clock ticks here.
 *
 * Threads: one. Cost: that of the plan's allocations.
 */
#pragma once

#include "plan/plan.h"
#include "trace/trace.h"

typedef struct {
    uint32_t n_rows;    /* memory rows compared */
    uint64_t n_answers; /* given */
    bool equal;         /* allocated, active and reserved, at all of them, and none too many */
    bool ran_out;       /* of memory, behind the last of them; here too where equal */
    /* The first row that is not equal: what the trace has, what came here; one may be missing. */
    bool has_measured, has_replayed;
    TraceMemoryRow measured, replayed;
} SimReplay;

/* A rank of a measured trace of this plan. False with error: the trace is of another plan, or its
 * record does not fit the play. */
bool sim_replay(const Plan *plan, const Trace *trace, uint32_t rank, SimReplay *ret_replay,
                GError **error);
