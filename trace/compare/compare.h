/* trace/compare/compare.h - two traces of one plan, side by side: the first judged by the second.
 *
 * The first is usually predicted and the second measured; the columns carry each side's own name.
 * error = (first - second) / second. Times are medians over each side's steady steps (see
 * trace/summary.h), of the first rank that both sides know. A rank of the second is held against
 * the same rank of the first, or else against one of the same role.
 *
 * Memory is also compared at every instruction: memory rows of both sides that have the same step
 * and instruction, in the steps that both recorded, for every such pair of ranks.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "trace/summary.h"

typedef enum {
    TRACE_COMPARE_STEP,
    TRACE_COMPARE_PHASE,
    TRACE_COMPARE_LANE,
    TRACE_COMPARE_COMMUNICATION, /* named "total" and "exposed" */
    TRACE_COMPARE_COLLECTIVE,
    TRACE_COMPARE_COLLECTIVE_EXPOSED,
    TRACE_COMPARE_COLLECTIVE_HIDDEN,
    TRACE_COMPARE_OP,
    TRACE_COMPARE_PEAK,          /* by statistic */
    TRACE_COMPARE_CATEGORY_PEAK, /* of each category by itself */
    TRACE_COMPARE_N_GROUPS
} TraceCompareGroup;

typedef struct {
    TraceCompareGroup group;
    const char *name;       /* of the phase, lane, ... */
    double value[2];        /* first, second: ns or bytes, by group */
    double low[2], high[2]; /* over the steps; bytes have no spread */
    double error;           /* NAN when the second is 0 */
} TraceCompareRow;

typedef struct {
    guint differing; /* of n_compared */
    double largest_bytes, mean_bytes;
    /* The first that differs, when any does: */
    uint32_t rank, instruction;
    int32_t step;
    uint64_t value[2];
} TraceCompareMemory;

enum {
    TRACE_COMPARE_N_WORST = 10
};

/* Medians over the steady steps, in which an op or a unit may occur less often than others. */
typedef struct {
    uint32_t number; /* of the instruction, or of the unit */
    double value[2]; /* ns; of a unit, the durations of all its ops on all lanes */
    double error;
} TraceCompareWorst;

/* A buffer that one side holds, and the other does not, when the last common step has ended. */
typedef struct {
    guint side; /* which holds it */
    uint32_t instruction;
} TraceCompareKept;

typedef struct {
    const Trace *traces[2];
    const char *sides[2]; /* column names */
    TraceSummary *summaries[2];
    guint n_steps[2]; /* steady ones */
    GArray *rows;     /* TraceCompareRow; those that are 0 on both sides are left out */
    guint n_ranks;    /* pairs */
    guint n_compared; /* memory rows with a counterpart */
    guint n_unpaired; /* memory rows of either side without one */
    TraceCompareMemory memory[TRACE_N_STATISTICS];
    GArray *worst_ops, *worst_units; /* TraceCompareWorst, largest difference of time first */
    GArray *kept;                    /* TraceCompareKept */
} TraceComparison;

/* Fails when the traces are of different plans, or no rank can be held against another. Borrows
 * both traces. */
TraceComparison *trace_compare(const Trace *first, const Trace *second, GError **error);
void trace_comparison_free(TraceComparison *comparison); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TraceComparison, trace_comparison_free)

/* NULL: there is none. */
const TraceCompareRow *trace_comparison_find(const TraceComparison *comparison,
                                             TraceCompareGroup group, const char *name);

/* "phase forward", "all_gather exposed"; and whether a group's figures are bytes, or else ns. */
char *trace_compare_row_name(const TraceCompareRow *row);
bool trace_compare_is_bytes(TraceCompareGroup group);

char *trace_comparison_text(const TraceComparison *comparison);    /* the table, with units */
char *trace_comparison_verdict(const TraceComparison *comparison); /* one line, no newline */
JsonNode *trace_comparison_json(const TraceComparison *comparison);
