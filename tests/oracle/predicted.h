/* tests/oracle/predicted.h - a plan predicted where collectives take no time.
 *
 * As on the fake process group of the recorders: one H200 node as large as the plan, whose links
 * are faster than anything.
 *
 * Owns: the trace. Borrows: the plan, for the call. Threads: one.
 */
#pragma once

#include "memory/answers.h"
#include "plan/plan.h"
#include "trace/trace.h"

/* What recorder/to_allocator.py gives the allocator unless told otherwise. */
#define ORACLE_MEMORY_BYTES (UINT64_C(80) << 30)

/* rank: the one whose role is played. allocator_bytes: what the allocator may use, 0: an H200's.
 * answers: gets what it was told of events, or NULL. NULL and error when the plan cannot be
 * played. */
Trace *oracle_predicted(const Plan *plan, uint32_t rank, uint32_t steps, uint64_t allocator_bytes,
                        MemoryAnswers *answers, GError **error);
