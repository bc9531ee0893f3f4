/* trace/fullest.h - whose memory a trace shows where no rank is asked for.
 *
 * Ranks of one role hold the same, stages do not. What the fullest holds is what has to fit.
 */
#pragma once

#include "trace/trace.h"

/* The recorded rank that ran out of memory; else the one that reserved most, of equals the lowest.
 * TRACE_NONE: none is recorded. */
uint32_t trace_fullest_rank(const Trace *trace);
/* For two traces side by side: `rank`, or where it is not recorded the fullest. */
uint32_t trace_rank_beside(const Trace *trace, uint32_t rank);
