/* trace/compare/private.h - what the files of a comparison share. */
#pragma once

#include <math.h>

#include "trace/compare/compare.h"

static inline double trace_compare_relative(double first, double second) {
    return second != 0 ? (first - second) / second : NAN;
}

/* Fill worst_ops and worst_units; kept. The summaries are there. */
void trace_compare_find_worst(TraceComparison *comparison);
void trace_compare_find_kept(TraceComparison *comparison);

/* ---- words that text and JSON share ---- */

/* "linear, forward of unit blocks.0, module h.0" */
char *trace_compare_op_name(const TraceComparison *comparison, uint32_t number);
/* "activations/saved, 2048 B, forward of unit blocks.0" */
char *trace_compare_buffer_name(const TraceComparison *comparison, uint32_t number);
/* "attention_kernel=flash lr=0.1", of one side's strategy what the other's lacks; NULL: nothing */
char *trace_compare_settings(const TraceComparison *comparison, guint side);
const char *trace_compare_group_key(TraceCompareGroup group);
