/* trace/check-private.h - the parts of trace_check(), for a reader that wants to name a line. */
#pragma once

#include "trace/trace.h"

/* What is known of a rank from the rows checked so far; starts as {role, -1, -1, 0, 0}. */
typedef struct {
    uint32_t role;
    int32_t op_step, memory_step;
    uint64_t allocated;
    int64_t lasted_ns; /* all ops together */
} TraceRankState;

bool trace_is_key(const char *key);
bool trace_check_header(const Trace *trace, GError **error);
bool trace_check_instruction(const Trace *trace, uint32_t role, uint32_t number, GError **error);
bool trace_check_op(const Trace *trace, const TraceOpRow *row, TraceRankState *state,
                    GError **error);
bool trace_check_memory(const Trace *trace, const TraceMemoryRow *row, TraceRankState *state,
                        GError **error);
