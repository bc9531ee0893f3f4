/* plan/op/op.h - the kinds of work a plan can launch, and what a row of ops.def says of them.
 *
 * To add an op: a row in ops.def. The compiler then names every switch that lacks it: its backward
 * (plan/autograd/differentiate/differentiate.c), its call (exec/op-groups.c, and then the file of
 * its group). Its work is what its operands are, unless plan/op/work.c and sim/costs/compute.c say
 * that it does more.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/op/extent.h"

typedef enum {
#define OP(id, ...) PLAN_OP_##id,
#include "plan/op/ops.def"
#define COLLECTIVE(id, ...) PLAN_OP_##id,
#include "plan/op/collectives.def"
#undef COLLECTIVE
    PLAN_N_OP_KINDS
} PlanOpKind;

typedef enum {
    PLAN_CLASS_MATMUL,
    PLAN_CLASS_ATTENTION,
    PLAN_CLASS_MEMORY,
    PLAN_CLASS_INPUT,
    PLAN_CLASS_HOST_LINK,
    PLAN_CLASS_COLLECTIVE,
} PlanOpClass;

enum {
    PLAN_MAX_SLOTS = 11, /* operand names of an op kind, lists counted once */
    PLAN_MAX_DIMS = 11,
    PLAN_MAX_ATTRS = 6,
};

/* What an all-reduce or a reduce-scatter makes of all ranks' numbers: its attribute "average". */
typedef enum {
    PLAN_REDUCTION_SUM,
    PLAN_REDUCTION_MEAN,
    PLAN_REDUCTION_MAX /* of an all-reduce alone */
} PlanReduction;

/* Where heads that are repeated lie, and their gradient unless it says otherwise: inside rows of
 * tokens, or head by head. */
typedef enum {
    PLAN_REPEATED_INSIDE,
    PLAN_REPEATED_APART,
    PLAN_REPEATED_GRADIENT_APART, /* it alone; its sum lies inside */
    PLAN_N_REPEATED
} PlanRepeated;

typedef enum {
    PLAN_SLOT_READ = 1,
    PLAN_SLOT_WRITE = 2,
    PLAN_SLOT_OPTIONAL = 4,
    PLAN_SLOT_LIST = 8,
    PLAN_SLOT_INTEGER = 16, /* 64 bits each; named as op.c lists (index, target, seed, ...) */
    PLAN_SLOT_MASK = 32,    /* named ...mask, or bytes: a byte each */
    PLAN_SLOT_INT32 = 64,   /* named ends, narrow or tally */
    PLAN_SLOT_FLOAT8 = 128, /* named ...8 */
    PLAN_SLOT_PARTS = 256, /* named gathered, read and written: this rank's part may be written into
                             * memory of which nothing has been written before */
    PLAN_SLOT_PACKED = 512, /* named nibbles: so many bytes, in a tensor of whatever dtype */
} PlanSlotFlags;

typedef struct {
    const char *name;
    PlanSlotFlags flags;
    PlanExtent extent; /* of one that is no list, of which every element is touched */
} PlanSlot;

/* A row of the table, parsed when it is first asked for: a plan has forty kinds of so many. */
typedef struct {
    const char *name;
    gint is_ready;
    PlanOpClass op_class;
    unsigned n_slots;
    PlanSlot slots[PLAN_MAX_SLOTS];
    unsigned n_lists; /* slots that are lists */
    unsigned n_dims;
    const char *dims[PLAN_MAX_DIMS];
    uint16_t dims_may_be_zero; /* bits */
    unsigned n_attrs;
    const char *attrs[PLAN_MAX_ATTRS];
    unsigned ring_steps; /* collectives: the STEPS of collectives.def, */
    bool adds;           /* and its ADDS */
    bool is_of_host;     /* what the host does by itself (host_op), not a kernel (launch) */
} PlanOpInfo;

extern PlanOpInfo plan_op_infos[PLAN_N_OP_KINDS];
void plan_op_parse_row(PlanOpKind kind);

static inline const PlanOpInfo *plan_op_info(PlanOpKind kind) {
    g_assert(kind < PLAN_N_OP_KINDS);
    if (G_UNLIKELY(!g_atomic_int_get(&plan_op_infos[kind].is_ready))) {
        plan_op_parse_row(kind);
    }
    return &plan_op_infos[kind];
}
bool plan_op_kind_parse(const char *name, PlanOpKind *ret_kind);

static inline bool plan_op_is_collective(PlanOpKind kind) {
    return plan_op_info(kind)->op_class == PLAN_CLASS_COLLECTIVE;
}

/* How many times the whole tensor a rank of so many sends. */
static inline double plan_op_sent(PlanOpKind kind, double ranks) {
    unsigned steps = plan_op_info(kind)->ring_steps;
    return steps ? steps * (ranks - 1) / ranks : 1;
}

/* A collective, or what the hosts do together. */
static inline bool plan_op_joins_ranks(PlanOpKind kind) {
    return plan_op_is_collective(kind) || kind == PLAN_OP_HOST_ALL_REDUCE;
}

/* In whatever order it adds up. */
static inline bool plan_op_is_attention_backward(PlanOpKind kind) {
    return kind == PLAN_OP_ATTENTION_BACKWARD || kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED;
}

/* Gives a parameter its first values, in the host's memory; or there or on the device, with dims
 * that begin alike. */
static inline bool plan_op_is_host_init(PlanOpKind kind) {
    return kind == PLAN_OP_HOST_INIT_NORMAL || kind == PLAN_OP_HOST_INIT_FILL ||
           kind == PLAN_OP_HOST_INIT_NIBBLES;
}

static inline bool plan_op_is_linear(PlanOpKind kind) {
    return kind == PLAN_OP_LINEAR || kind == PLAN_OP_LINEAR_PARTS;
}

static inline bool plan_op_is_traced(PlanOpKind kind) {
    return kind >= PLAN_OP_TRACED_MEMORY && kind <= PLAN_OP_TRACED_INPUT;
}

/* Of its dims the last is its call. */
static inline bool plan_op_has_call(PlanOpKind kind) {
    return plan_op_is_traced(kind) && kind != PLAN_OP_TRACED_INPUT;
}

static inline bool plan_op_is_of_float8(PlanOpKind kind) {
    return kind >= PLAN_OP_FLOAT8_SCALE && kind <= PLAN_OP_FLOAT8_LINEAR_DW;
}

static inline bool plan_op_is_of_ring(PlanOpKind kind) {
    return kind == PLAN_OP_PASS_ON || (kind >= PLAN_OP_ATTENTION_PART && kind <= PLAN_OP_JOIN);
}

static inline bool plan_op_is_latent(PlanOpKind kind) {
    return kind >= PLAN_OP_LATENT_ATTENTION && kind <= PLAN_OP_UNSET_COLUMNS;
}

/* Of two stages that are neighbours. */
static inline bool plan_op_is_of_stages(PlanOpKind kind) {
    return kind >= PLAN_OP_SEND && kind <= PLAN_OP_EXCHANGE;
}

/* Of symmetric memory. */
static inline bool plan_op_is_of_peers(PlanOpKind kind) {
    return kind >= PLAN_OP_BARRIER && kind <= PLAN_OP_SWAP;
}

/* Of its operands those that have rows are parts, one for each rank of its axis, of a tensor that
 * begins its buffer. Part i, as offsets number them, is of the rank i places ahead on the axis, and
 * lies where that rank's lies in each of so many rows (sequences; 1: all parts lie one behind the
 * other). So each rank comes to its own part first, and all have one order of the whole. */
static inline bool plan_op_takes_parts(PlanOpKind kind) {
    return kind == PLAN_OP_LINEAR || kind == PLAN_OP_LINEAR_DX || kind == PLAN_OP_FLOAT8_LINEAR ||
           kind == PLAN_OP_FLOAT8_LINEAR_DX || kind == PLAN_OP_COPY || kind == PLAN_OP_PULL ||
           kind == PLAN_OP_SWAP;
}

/* A product of factors in float8. */
static inline bool plan_op_is_float8_product(PlanOpKind kind) {
    return kind == PLAN_OP_FLOAT8_LINEAR || kind == PLAN_OP_FLOAT8_LINEAR_DX ||
           kind == PLAN_OP_FLOAT8_LINEAR_DW;
}

static inline bool plan_op_is_init(PlanOpKind kind) {
    return kind == PLAN_OP_INIT_NORMAL || kind == PLAN_OP_INIT_FILL ||
           kind == PLAN_OP_INIT_NIBBLES || plan_op_is_host_init(kind);
}

/* And what it counts are bytes of numbers in 4 bits. */
static inline bool plan_op_inits_nibbles(PlanOpKind kind) {
    return kind == PLAN_OP_INIT_NIBBLES || kind == PLAN_OP_HOST_INIT_NIBBLES;
}

/* The slot that operand number i of an op with n operands belongs to. Operands lie slot by slot, a
 * list's elements together; a missing optional operand is present with buffer PLAN_NONE. */
unsigned plan_op_slot_of(const PlanOpInfo *info, unsigned n_operands, unsigned i);

/* Elements of each of its lists; 0 when it has none. */
static inline unsigned plan_op_list_length(const PlanOpInfo *info, unsigned n_operands) {
    return info->n_lists ? (n_operands - (info->n_slots - info->n_lists)) / info->n_lists : 0;
}
