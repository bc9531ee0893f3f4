/* trace/ended.h - how a play ended, as its trace's header says, and against which limit.
 *
 * A play that ran out of memory leaves the rows up to that moment, and in the header:
 *   ended            out_of_memory; absent: it came to its end
 *   oom_rank, oom_step, oom_instruction, oom_buffer    the allocation that failed
 * The instruction says how many bytes it wanted, and where.
 */
#pragma once

#include "trace/trace.h"

typedef struct {
    uint32_t rank;
    int32_t step;         /* -1: construction */
    uint32_t instruction; /* of the rank's role; a TRACE_ALLOC */
    const char *buffer;   /* its name; borrowed */
} TraceOom;

/* Where a run leaves such a trace of a rank: beside the one that it was asked for, so that a good
 * one of an earlier run stays. Transfer full. */
char *trace_oom_path(const char *path, uint32_t rank);
void trace_set_oom(Trace *trace, const TraceOom *oom);
/* False: the play came to its end, or the header does not say where it stopped. */
bool trace_get_oom(const Trace *trace, TraceOom *ret_oom);
/* "out of memory in step 0, forward of unit layers.9: no room for 0.88 GiB of y
 * (activations/saved)"; NULL: it came to its end. Transfer full. */
char *trace_oom_text(const Trace *trace);
/* What the allocator could have, predicted or as a run was limited; 0: not known. */
uint64_t trace_limit_bytes(const Trace *trace);
