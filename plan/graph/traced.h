/* plan/graph/traced.h - a network as data: what PyTorch did in a pass over any module.
 *
 * models/pytorch/ writes it, models/traced/read.c reads it and holds it sound, traced.c makes
 * a graph of it, autograd/traced.c plays its ops. Each node of autograd is an op of one kind for
 * all: what it makes, keeps and launches, and what its backward allocates, frees and launches, as
 * recorded. All that a strategy decides (who gathers when, what is computed again) stays with the
 * rest of plan/.
 *
 * Owns: all of it. Threads: one makes it, any read it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/op/op.h"

typedef struct {
    int64_t fixed, each; /* and for each sample of a pass */
} PlanTracedCount;

/* The largest of both parts, and of their sum: sums of many stay inside 64 bits. */
#define PLAN_TRACED_MOST (INT64_C(1) << 54)

static inline uint64_t plan_traced_count(PlanTracedCount count, uint64_t samples) {
    return (uint64_t)(count.fixed + count.each * (int64_t)samples);
}

typedef enum {
    PLAN_TRACED_NOTHING,
    PLAN_TRACED_INPUT,  /* of the op: i */
    PLAN_TRACED_OUTPUT, /* o */
    PLAN_TRACED_GIVEN,  /* backward: the gradient of an output, g */
    PLAN_TRACED_SAVED,  /* what the node kept, s */
    PLAN_TRACED_MADE    /* what backward allocated, t */
} PlanTracedOf;

typedef struct {
    PlanTracedOf of;
    uint32_t index;
} PlanTracedRef;

typedef struct {
    PlanTracedRef storage; /* NOTHING: of its own */
    PlanTracedCount stored, elements;
    uint8_t dtype;
    bool wants_gradient;
} PlanTracedOut;

/* What a kernel computes, in pieces that are written one behind the other (plan/op/calls.h). */
typedef enum {
    PLAN_TRACED_TEXT,
    PLAN_TRACED_NUMBER,
    PLAN_TRACED_TENSOR
} PlanTracedPieceOf;

typedef struct {
    PlanTracedPieceOf of;
    const char *text; /* interned */
    PlanTracedCount count;
    PlanTracedRef ref;
} PlanTracedPiece;

typedef struct {
    uint32_t first, n; /* pieces; none: it is not known */
} PlanTracedCall;

/* By it the gradients of a value are added up, each sum by its own, in order; or the one of a
 * parameter is copied. */
typedef struct {
    uint32_t value;
    PlanTracedCall call;
} PlanTracedSum;

typedef struct {
    PlanOpKind op;
    PlanTracedCall call;
    PlanTracedCount dims[PLAN_MAX_DIMS];
    uint32_t refs; /* the first in `refs`: what it reads; what it writes follows */
    uint32_t n_reads, n_writes;
} PlanTracedKernel;

typedef enum {
    PLAN_TRACED_ALLOC,
    PLAN_TRACED_FREE,
    PLAN_TRACED_RUN,
    PLAN_TRACED_DROP, /* what a checkpoint made again goes here */
} PlanTracedEventKind;

typedef struct {
    PlanTracedEventKind kind;
    uint32_t index; /* made, kernel or saved */
    PlanTracedCount count;
    uint8_t dtype; /* of ALLOC */
} PlanTracedEvent;

/* What checkpointing may be told to keep. */
typedef enum {
    PLAN_TRACED_OTHER,
    PLAN_TRACED_PRODUCT, /* of two matrices alone */
    PLAN_TRACED_ATTENTION
} PlanTracedChoice;

/* What an op does, as many ops do it. Of its inputs the first n_edges get gradients. */
typedef struct {
    const char *name; /* interned */
    PlanTracedChoice choice;
    uint32_t n_edges, n_inputs;
    uint32_t outs, n_outs;
    uint32_t saves, n_saves; /* refs */
    uint32_t kernels, n_kernels;
    bool has_backward;
    uint32_t events, n_events, n_made;
    uint32_t gives; /* refs, one for each edge */
} PlanTracedKind;

typedef enum {
    PLAN_TRACED_OP,
    PLAN_TRACED_ENTER,
    PLAN_TRACED_RETURN,
    PLAN_TRACED_LEAVE,
    PLAN_TRACED_CASTS, /* mixed precision casts what the root is given, which is entered next */
    PLAN_TRACED_LET,   /* Python lets go of a storage */
    PLAN_TRACED_END    /* of forward */
} PlanTracedStepKind;

typedef struct {
    PlanTracedStepKind kind;
    uint32_t index;            /* kind of op, module, or value */
    uint32_t values, n_values; /* PLAN_NONE: an edge without gradient */
} PlanTracedStep;

typedef struct {
    uint64_t first_samples, last_samples;                   /* that it is of */
    GArray *refs, *outs, *kernels, *events, *kinds, *steps; /* of the structs above */
    GArray *values;                                         /* uint32_t */
    GArray *pieces, *sums;
    GArray *copied; /* PlanTracedSum: parameters whose gradients autograd copies, not keeps */
    uint32_t loss;
} PlanTraced;

/* How many dims of a kernel a trace file has: all but the last, the number of its call. */
static inline unsigned plan_traced_n_sizes(PlanOpKind op) {
    return plan_op_info(op)->n_dims - 1;
}

PlanTraced *plan_traced_new(void);
void plan_traced_free(PlanTraced *traced);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanTraced, plan_traced_free)
