/* trace/trace.h - what a play of a plan leaves: a header, tables, op rows and memory rows.
 *
 * One trace holds all recorded ranks of one play, predicted or measured. Its core knows no Plan:
 * the tables (lanes, units, phases, ...) give names to the small numbers in rows, and the
 * instruction table of a role says of each instruction what it is. A row names its instruction by
 * number: the running number in its role's table, all sections one after the other, in the plan's
 * order.
 *
 * Time is int64 ns; 0 is a barrier before the first recorded step. Rows of construction have step
 * -1 and times <= 0. Bytes are as the allocator counts them (rounded), so the deltas of a rank sum
 * up to its allocated bytes.
 *
 * The compute lane is the lane named "compute", or lane 0 when none is.
 *
 * Owns: everything in it; strings are copied in. Threads: one writer. Cost: adding a row is an
 * array append; names are not looked up.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define TRACE_ERROR (trace_error_quark())
GQuark trace_error_quark(void);

typedef enum {
    TRACE_ERROR_SYNTAX,   /* the text cannot be read; the message names file and line */
    TRACE_ERROR_CUT,      /* the text ends before its end line; the message names file and line */
    TRACE_ERROR_VALUE,    /* the trace itself lacks something or contradicts itself */
    TRACE_ERROR_MISMATCH, /* two traces are not of the same plan */
    TRACE_ERROR_FILE,     /* a file cannot be read or written */
    TRACE_ERROR_TOOL,     /* gnuplot is missing or failed */
} TraceError;

#define TRACE_NONE UINT32_MAX

typedef enum {
    TRACE_OP, /* launched on a lane; leaves op rows */
    TRACE_HOST_OP,
    TRACE_ALLOC, /* leaves memory rows */
    TRACE_FREE,
    TRACE_MARK, /* the rest leaves no rows; it stands in the table so that numbers are the plan's */
    TRACE_RECORD,
    TRACE_WAIT,
    TRACE_HOST_WAIT,
    TRACE_N_WHATS
} TraceWhat;

typedef enum {
    TRACE_KIND_COMPUTE,
    TRACE_KIND_COLLECTIVE,
    TRACE_KIND_COPY,
    TRACE_N_KIND_CLASSES
} TraceKindClass;

typedef enum {
    TRACE_SECTION_CONSTRUCT,
    TRACE_SECTION_FIRST,
    TRACE_SECTION_SECOND,
    TRACE_SECTION_STEADY,
    TRACE_N_SECTIONS
} TraceSection;

typedef struct {
    uint8_t what;    /* TraceWhat */
    uint8_t section; /* TraceSection */
    uint8_t lane;
    uint8_t phase;
    uint32_t index;    /* within the section, from 0; trace_add_instruction() counts it */
    uint32_t kind;     /* TRACE_OP, TRACE_HOST_OP: the op kind; else TRACE_NONE */
    uint32_t unit;     /* TRACE_NONE when none */
    uint32_t module;   /* TRACE_NONE when none */
    uint32_t category; /* TRACE_ALLOC, TRACE_FREE: index into the categories; else TRACE_NONE */
    uint32_t buffer;   /* TRACE_ALLOC, TRACE_FREE: the role's number of it; else TRACE_NONE */
    uint64_t bytes;    /* of the buffer, or of the collective's tensor; 0 when it says nothing */
} TraceInstruction;

typedef struct {
    uint32_t rank;
    int32_t step; /* -1: construction */
    uint32_t instruction;
    uint32_t lane;
    int64_t host_issue_ns, start_ns, end_ns;
} TraceOpRow;

typedef struct {
    uint32_t rank;
    int32_t step;
    uint32_t instruction;
    uint32_t category; /* index into the categories, which are "parameters/sharded" and so on */
    int64_t host_ns;
    int64_t delta;                        /* what allocated changes by */
    uint64_t allocated, active, reserved; /* after it */
} TraceMemoryRow;

typedef struct {
    const char *name;
    TraceKindClass kind_class;
} TraceKind;

typedef struct {
    uint32_t rank, role;
} TraceRank;

/* Readers may look at the fields; only the functions below write them. */
typedef struct _Trace Trace;
struct _Trace {
    GPtrArray *lanes, *units, *phases, *categories, *modules; /* const char * */
    GArray *kinds;                                            /* TraceKind */
    GPtrArray *roles;                                         /* GArray of TraceInstruction */
    GArray *ranks;                                            /* TraceRank */
    GArray *ops;                                              /* TraceOpRow */
    GArray *memory;                                           /* TraceMemoryRow */
    GPtrArray *keys, *values;                                 /* the header, as it was set */
    GStringChunk *strings;
};

Trace *trace_new(void);
void trace_free(Trace *trace); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Trace, trace_free)

/* The header. Keys are lower-case words of letters, digits, "_", "." and "-"; values are UTF-8.
 * Known keys, all but side and digest optional:
 *   side       predicted | measured
 *   digest     plan_digest()
 *   title network strategy   one line each
 *   device cluster allocator
 *   world steps seed         whole numbers
 *   stages     of so many, as many ranks each; absent: ranks all have the whole network
 *   stages_each  a rank has so many stages, which stages counts as one; absent: one
 *   paced      yes | no: each collective lasted at least its modeled time
 *   rehearsed  yes | no: one rank by itself, with stand-ins for the others
 *   answers.R  MemoryAnswers of rank R, where its allocator asked (memory/answers.h)
 *   ended      out_of_memory: rows stop where memory did (trace/ended.h); absent: at the end
 * Any other key is a free fact (resident_bytes, loss, openblas, ...). Setting a key again replaces
 * its value. */
void trace_set(Trace *trace, const char *key, const char *value);
void trace_set_uint(Trace *trace, const char *key, uint64_t value);
const char *trace_get(const Trace *trace, const char *key); /* NULL when not set */

const char *trace_manner(const Trace *trace); /* "rehearsed", "paced", or NULL for neither */

/* "rank 24"; of stages "rank 24, stage 3 of 4". Transfer full. */
char *trace_rank_text(const Trace *trace, uint32_t rank);

/* Tables: each returns the new entry's number. Fill them before the first row. */
uint32_t trace_add_lane(Trace *trace, const char *name);
uint32_t trace_add_unit(Trace *trace, const char *name);
uint32_t trace_add_phase(Trace *trace, const char *name);
uint32_t trace_add_category(Trace *trace, const char *name); /* "category/sub" */
uint32_t trace_add_module(Trace *trace, const char *name);
uint32_t trace_add_kind(Trace *trace, const char *name, TraceKindClass kind_class);
uint32_t trace_add_role(Trace *trace);
/* The returned number is what rows carry. Sections come in order; every instruction of the plan is
 * added, so that numbers are the plan's. */
uint32_t trace_add_instruction(Trace *trace, uint32_t role, const TraceInstruction *instruction);
/* A recorded rank. Once a rank, in any order. */
void trace_add_rank(Trace *trace, uint32_t rank, uint32_t role);

/* Rows, in any order of ranks; those of one rank in the order in which they were issued, so that
 * steps never fall. */
static inline void trace_add_op(Trace *trace, const TraceOpRow *row) {
    g_array_append_vals(trace->ops, row, 1);
}
static inline void trace_add_memory(Trace *trace, const TraceMemoryRow *row) {
    g_array_append_vals(trace->memory, row, 1);
}

/* Appends the ranks and rows of another trace of the same plan, and the header keys that the first
 * lacks. Refused, with nothing changed: other digest, other tables, or a rank that both hold. */
bool trace_merge(Trace *trace, const Trace *other, GError **error);

/* Everything refers to something that exists, each rank has a role, ends are not before starts, and
 * so on; what the writer demands and the reader guarantees. */
bool trace_check(const Trace *trace, GError **error);

/* The name of the first table in which the two differ, NULL when all tables are equal. */
const char *trace_differing_table(const Trace *a, const Trace *b);

/* Looking things up. */
uint32_t trace_compute_lane(const Trace *trace);
uint32_t trace_role_of_rank(const Trace *trace, uint32_t rank); /* TRACE_NONE: not recorded */
uint32_t trace_lowest_rank(const Trace *trace);                 /* TRACE_NONE: none is recorded */
const char *trace_what_name(TraceWhat what);
/* Whether a category is this one, or one below it: "activations/saved" is one of "activations". */
bool trace_category_is(const Trace *trace, uint32_t category, const char *name);
/* "backward of unit layers.0", or "optimizer" where no unit is concerned. Transfer full. */
char *trace_place_name(const Trace *trace, uint32_t phase, uint32_t unit);
/* "step 3", or "construction". Transfer full. */
char *trace_step_name(int32_t step);
const char *trace_section_name(TraceSection section);
const char *trace_kind_class_name(TraceKindClass kind_class);

static inline const TraceOpRow *trace_op(const Trace *trace, guint i) {
    return &g_array_index(trace->ops, TraceOpRow, i);
}
static inline const TraceMemoryRow *trace_memory(const Trace *trace, guint i) {
    return &g_array_index(trace->memory, TraceMemoryRow, i);
}
static inline GArray *trace_instructions(const Trace *trace, uint32_t role) {
    return (GArray *)g_ptr_array_index(trace->roles, role);
}
static inline const TraceInstruction *trace_instruction(const Trace *trace, uint32_t role,
                                                        uint32_t number) {
    return &g_array_index(trace_instructions(trace, role), TraceInstruction, number);
}
/* The name at an index of a table, or none for TRACE_NONE. */
static inline const char *trace_name(const GPtrArray *table, uint32_t index, const char *none) {
    return index == TRACE_NONE ? none : (const char *)table->pdata[index];
}
static inline const TraceKind *trace_kind(const Trace *trace, uint32_t kind) {
    return &g_array_index(trace->kinds, TraceKind, kind);
}
