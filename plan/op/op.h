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
    PLAN_MAX_SLOTS = 12, /* operand names of an op kind, lists counted once */
    PLAN_MAX_DIMS = 11,
    PLAN_MAX_ATTRS = 6,
};

/* What an all-reduce or a reduce-scatter makes of all ranks' numbers: its attribute "average". */
typedef enum {
    PLAN_REDUCTION_SUM,
    PLAN_REDUCTION_MEAN,
    PLAN_REDUCTION_MAX /* of an all-reduce alone */
} PlanReduction;

/* How key and value heads that were repeated for the query heads lie in memory. */
typedef enum {
    PLAN_REPEATED_INSIDE,         /* [tokens, heads, dim]; the gradient too */
    PLAN_REPEATED_APART,          /* head by head: [heads, tokens, dim]; the gradient too */
    PLAN_REPEATED_GRADIENT_APART, /* only the gradient is head by head; its sum over the repeated
                                   * heads is [tokens, heads, dim] */
    PLAN_N_REPEATED
} PlanRepeated;

typedef enum {
    PLAN_SLOT_READ = 1,
    PLAN_SLOT_WRITE = 2,
    PLAN_SLOT_OPTIONAL = 4,
    PLAN_SLOT_LIST = 8,
    /* The type of its elements, which follows from its name (op.c); real numbers otherwise. */
    PLAN_SLOT_INTEGER = 16, /* index, target, seed, ...: 64-bit integers */
    PLAN_SLOT_MASK = 32,    /* ...mask, bytes, codes: a byte each */
    PLAN_SLOT_INT32 = 64,   /* ends, narrow, tally: 32-bit integers */
    PLAN_SLOT_FLOAT8 = 128, /* ...8: 8-bit real numbers */
    /* An operand named "gathered" that is read and written: the op writes this rank's part only,
     * and what it reads of the others' parts may never have been written. */
    PLAN_SLOT_PARTS = 256,
    PLAN_SLOT_PACKED = 512, /* nibbles: counted in bytes, whatever the tensor's dtype */
} PlanSlotFlags;

typedef struct {
    const char *name;
    PlanSlotFlags flags;
    PlanExtent extent; /* how many elements the kernel touches; of a list, all of each tensor */
} PlanSlot;

/* A row of ops.def or collectives.def. Parsed when it is first asked for, because a plan uses about
 * forty of the several hundred kinds. */
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
    uint16_t dims_that_number; /* bits: they say which of many, and make no other work */
    unsigned n_attrs;
    const char *attrs[PLAN_MAX_ATTRS];
    unsigned ring_steps; /* collectives: STEPS in collectives.def */
    bool adds;           /* collectives: ADDS there */
    bool is_of_host;     /* a plan has it in host_op instructions, not in launches */
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

/* What each of so many ranks sends in a ring, in units of the whole tensor. */
static inline double plan_op_sent(PlanOpKind kind, double ranks) {
    unsigned steps = plan_op_info(kind)->ring_steps;
    return steps ? steps * (ranks - 1) / ranks : 1;
}

/* Whether several ranks take part: a collective, or a reduction between hosts. */
static inline bool plan_op_joins_ranks(PlanOpKind kind) {
    return plan_op_is_collective(kind) || kind == PLAN_OP_HOST_ALL_REDUCE;
}

/* With or without a deterministic order of addition. */
static inline bool plan_op_is_attention_backward(PlanOpKind kind) {
    return kind == PLAN_OP_ATTENTION_BACKWARD || kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED;
}

/* Gives a parameter its first values in the host's memory. */
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

/* Whether its last dim is the number of a call (plan/op/calls.h). */
static inline bool plan_op_has_call(PlanOpKind kind) {
    return plan_op_is_traced(kind) && kind != PLAN_OP_TRACED_INPUT;
}

static inline bool plan_op_is_of_float8(PlanOpKind kind) {
    return kind >= PLAN_OP_FLOAT8_SCALE && kind <= PLAN_OP_FLOAT8_LINEAR_DW;
}

static inline bool plan_op_is_latent(PlanOpKind kind) {
    return kind >= PLAN_OP_LATENT_ATTENTION && kind <= PLAN_OP_UNSET_COLUMNS;
}

/* A transfer between neighbouring stages. */
static inline bool plan_op_is_of_stages(PlanOpKind kind) {
    return kind >= PLAN_OP_SEND && kind <= PLAN_OP_EXCHANGE;
}

/* Works through symmetric memory, which peers read and write directly. */
static inline bool plan_op_is_of_peers(PlanOpKind kind) {
    return kind >= PLAN_OP_BARRIER && kind <= PLAN_OP_SWAP;
}

/* Operands of these ops that have `rows` are one rank's part of a tensor that begins their buffer.
 * The tensor has that many rows (sequences; 1: it is not divided by sequence), each divided among
 * the axis's ranks in order. The plan, one for all ranks, numbers parts from the playing rank's
 * own: the part at offset i * elements is that of the rank i places further on the axis, and a
 * device works out where it lies. So each rank starts with its own part, and all agree on where
 * parts are. */
static inline bool plan_op_takes_parts(PlanOpKind kind) {
    return kind == PLAN_OP_LINEAR || kind == PLAN_OP_LINEAR_DX || kind == PLAN_OP_FLOAT8_LINEAR ||
           kind == PLAN_OP_FLOAT8_LINEAR_DX || kind == PLAN_OP_COPY || kind == PLAN_OP_PULL ||
           kind == PLAN_OP_SWAP;
}

/* A product of factors in float8. */
static inline bool plan_op_is_float8_product(PlanOpKind kind) {
    return kind == PLAN_OP_FLOAT8_LINEAR || kind == PLAN_OP_FLOAT8_LINEAR_BIAS ||
           kind == PLAN_OP_FLOAT8_LINEAR_DX || kind == PLAN_OP_FLOAT8_LINEAR_DW ||
           kind == PLAN_OP_MXFP8_PRODUCT;
}

/* Gives a parameter its first values, on the device or in the host's memory. All of these ops begin
 * with the dims of INIT_NORMAL, which code uses for each of them. */
static inline bool plan_op_is_init(PlanOpKind kind) {
    return kind == PLAN_OP_INIT_NORMAL || kind == PLAN_OP_INIT_FILL ||
           kind == PLAN_OP_INIT_NIBBLES || plan_op_is_host_init(kind);
}

/* ... of a parameter in 4 bits, counted in bytes. */
static inline bool plan_op_inits_nibbles(PlanOpKind kind) {
    return kind == PLAN_OP_INIT_NIBBLES || kind == PLAN_OP_HOST_INIT_NIBBLES;
}

/* The slot that operand i of an op with n operands belongs to. Operands come in the order of slots,
 * and a list's elements one after the other; a missing optional operand has buffer PLAN_NONE. */
unsigned plan_op_slot_of(const PlanOpInfo *info, unsigned n_operands, unsigned i);

/* Elements of each of its lists; 0 when it has none. */
static inline unsigned plan_op_list_length(const PlanOpInfo *info, unsigned n_operands) {
    return info->n_lists ? (n_operands - (info->n_slots - info->n_lists)) / info->n_lists : 0;
}
