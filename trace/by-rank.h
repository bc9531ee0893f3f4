/* trace/by-rank.h - each rank of a trace as a trace of its own, for whoever goes through all ranks.
 *
 * Summaries, moments and exporters look at all rows for those of one rank. Asked of a trace of many
 * ranks for each of them, that is ranks times rows; of a rank alone, all looks together are as many
 * as there are rows.
 *
 * Owns: where each rank's rows stand, and copies of one rank's at a time. Borrows: the trace, which
 * passes trace_check() and does not change meanwhile. Threads: one. Cost: a pass over all rows, and
 * four bytes a row.
 */
#pragma once

#include "trace/trace.h"

typedef struct _TraceByRank TraceByRank;

TraceByRank *trace_by_rank_new(const Trace *trace);
void trace_by_rank_free(TraceByRank *by_rank); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TraceByRank, trace_by_rank_free)

/* The i-th of trace->ranks alone: with the trace's header and tables, itself as the only rank, and
 * its rows in their order. Valid until the next call. */
const Trace *trace_by_rank_alone(TraceByRank *by_rank, guint i);
/* As trace_role_of_rank() of the whole trace, without a look at each rank. */
uint32_t trace_by_rank_role(const TraceByRank *by_rank, uint32_t rank);
