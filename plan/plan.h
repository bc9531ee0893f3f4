/* plan/plan.h - the frozen program of a training run, the same for every device that plays it.
 *
 * A plan holds, for each role (ranks whose local shapes are equal), the instructions of one host
 * thread in the order in which it issues them, in four sections: construct, first, second and
 * steady. It knows shapes, bytes, order and dependencies; it knows no times and no device. What
 * differs between the ranks of a role (which rows of a parameter, which slice of a gather, which
 * samples) is symbolic: a device derives it from its own rank.
 *
 * A buffer is a slot that may be allocated many times, never twice at once. An event is recorded at
 * most once a section; `event@-1` means the recording of the step before, `event@-2` of the one
 * before that.
 *
 * Owns: everything in it, in one arena; indices, never pointers, refer from one part to another.
 * After plan_build() or plan_read() a Plan is const. Threads: any number may read it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/arena.h"
#include "plan/category.h"
#include "plan/dtype.h"
#include "plan/op/op.h"

#define PLAN_ERROR (plan_error_quark())
GQuark plan_error_quark(void);

typedef enum {
    PLAN_ERROR_SYNTAX, /* the text cannot be read; the message names file and line */
    PLAN_ERROR_VALUE,  /* a value is wrong or refused; the message says what to do */
    PLAN_ERROR_CHECK,  /* the plan breaks a rule of the checker */
    PLAN_ERROR_FILE,   /* a file cannot be read or written */
} PlanError;

#define PLAN_NONE UINT32_MAX

typedef enum {
    PLAN_SECTION_CONSTRUCT,
    PLAN_SECTION_FIRST,
    PLAN_SECTION_SECOND,
    PLAN_SECTION_STEADY,
    PLAN_N_SECTIONS
} PlanSection;

typedef enum {
    PLAN_PHASE_SETUP,
    PLAN_PHASE_FORWARD,
    PLAN_PHASE_RECOMPUTE,
    PLAN_PHASE_BACKWARD,
    PLAN_PHASE_OPTIMIZER,
    PLAN_PHASE_EVALUATION, /* passes of forward alone, without gradients */
    PLAN_N_PHASES
} PlanPhase;

typedef enum {
    PLAN_AXIS_NONE,
    PLAN_AXIS_REPLICATE,
    PLAN_AXIS_SHARD,
    PLAN_AXIS_PART,     /* cuts shard: reshard_after_forward=N, the N that then hold a unit */
    PLAN_AXIS_TENSOR,   /* tensor parallel */
    PLAN_AXIS_CONTEXT,  /* cuts shard: context parallel */
    PLAN_AXIS_PIPELINE, /* pipeline stages */
    PLAN_AXIS_EXPERT,   /* cuts shard: expert parallel */
    PLAN_AXIS_ALIKE,    /* cuts shard: ranks that have the same experts as each other */
    PLAN_N_AXES
} PlanAxis;

typedef enum {
    PLAN_ALLOC,     /* arg: buffer; lane: the stream whose pool serves it */
    PLAN_FREE,      /* arg: buffer */
    PLAN_MARK,      /* arg: buffer; lane: another lane uses it (record_stream) */
    PLAN_LAUNCH,    /* arg: op; lane: where it runs */
    PLAN_RECORD,    /* arg: event; lane */
    PLAN_WAIT,      /* arg: event; lane: waits, the host does not */
    PLAN_HOST_WAIT, /* arg: event; the host waits */
    PLAN_HOST_OP,   /* arg: op; the host does it itself */
    PLAN_N_INSTRS
} PlanInstrKind;

enum {
    PLAN_MAX_BEFORE = 2 /* how many steps later an event may still be waited for */
};

enum {
    PLAN_MAX_LANES = 12
};

typedef struct {
    uint8_t kind; /* PlanInstrKind */
    uint8_t lane;
    uint8_t phase;   /* PlanPhase */
    uint8_t before;  /* WAIT, HOST_WAIT: how many steps ago the event was recorded */
    uint32_t unit;   /* PLAN_NONE when none */
    uint32_t module; /* PLAN_NONE when none */
    uint32_t arg;
} PlanInstr;

typedef struct {
    uint64_t bytes;
    uint8_t dtype;   /* PlanDtype */
    uint8_t sub;     /* PlanSubcategory */
    uint8_t lane;    /* whose pool serves it */
    uint8_t carried; /* bit s is set: it is still allocated at the end of section s */
    uint32_t unit;   /* that it belongs to; PLAN_NONE: to no single one */
    const char *name;
} PlanBuffer;

typedef struct {
    uint32_t buffer; /* PLAN_NONE: an optional operand that is missing */
    uint32_t rows; /* its leading dimension, if the op divides rows among ranks or takes one rank's
                      * part of a tensor (plan_op_takes_parts()); else 0 */
    uint64_t offset_bytes;
    uint64_t elements;
} PlanOperand;

/* An operand as a role stores it, in 4 bytes. Most operands are a whole buffer and are stored as
 * its number; the others are stored as PLAN_PART plus an index into the role's parts. PLAN_NONE: a
 * missing operand. plan_operand() reads all three. */
typedef uint32_t PlanRef;
#define PLAN_PART (UINT32_C(1) << 31)

typedef struct {
    uint16_t kind; /* PlanOpKind */
    uint8_t axis;  /* PlanAxis of a collective, or of the ranks among which a slice is chosen */
    uint8_t dtype; /* PlanDtype it computes in */
    uint32_t n_operands;
    /* Where its own begin in the role's arrays. How many dims and attributes: plan_op_info(). */
    uint32_t operands, dims, attrs;
} PlanOp;

typedef struct {
    const char *name; /* qualified, "" for the root */
    const char *class_name;
    uint32_t parent; /* PLAN_NONE for the root */
} PlanModule;

/* How a parameter is split among the ranks of the tensor axis or of the expert axis, before the
 * shard axis shards what each of them has. Pieces are equal and lie in the order of the ranks. */
typedef enum {
    PLAN_SPLIT_NONE,        /* each rank has all of it */
    PLAN_SPLIT_ROWS,        /* tensor axis: its first dimension is split */
    PLAN_SPLIT_COLUMNS,     /* tensor axis: its last dimension is split */
    PLAN_SPLIT_THIRDS,      /* tensor axis: its first dimension is of three parts (q, k and v), each
                             * of which is split; a rank's pieces of them lie one behind another */
    PLAN_SPLIT_EXPERTS,     /* expert axis: its first dimension, the experts, is split */
    PLAN_SPLIT_CUT_EXPERTS, /* the same, and ranks with the same experts split each one's rows */
    PLAN_N_SPLITS
} PlanSplit;

typedef struct {
    const char *name; /* qualified, like PyTorch's */
    uint32_t unit;
    uint8_t dtype;
    uint8_t n_dims;
    bool frozen;    /* it is not trained */
    bool four_bits; /* stored in 4 bits; dtype is that of the copies made for matrix products */
    uint8_t split;  /* PlanSplit; dims and elements are of the whole parameter */
    int64_t dims[4];
    uint64_t elements;
} PlanParameter;

typedef struct {
    const char *name;        /* of its module; "root" for the root */
    uint64_t elements;       /* of its parameters on one tensor rank, without padding */
    uint64_t shard_elements; /* of one rank's shard, with padding */
} PlanUnit;

typedef struct {
    uint32_t *ranks;
    uint32_t n_ranks;
    uint64_t n_parameter_elements;        /* of one rank's shards, without padding */
    PlanInstr *sections[PLAN_N_SECTIONS]; /* may point to the program of the section before */
    uint32_t n_instrs[PLAN_N_SECTIONS];
    PlanBuffer *buffers;
    uint32_t n_buffers;
    uint32_t n_events;
    PlanOp *ops;
    uint32_t n_ops;
    PlanRef *operands;
    uint32_t n_operands;
    PlanOperand *parts; /* operands that are not a whole buffer (PlanRef) */
    uint32_t n_parts;
    int64_t *dims;
    uint32_t n_dims;
    double *attrs;
    uint32_t n_attrs;
    /* The ops whose first output is a loss: one for each pass of each section, in order, without
     * sections that share their program with the one before. A step's loss is the mean over its
     * passes. */
    uint32_t *loss_ops;
    uint32_t n_loss_ops;
    uint32_t n_folded; /* passes of each step that are not written out (plan/fold.h) */
    /* Ops copies ... copies + n_copied - 1 repeat ops copied ... copied + n_copied - 1: they use
     * other buffers, and are the same work. The simulator need not cost them again. Known of a plan
     * that was just built, not of one that was read; 0: none. */
    uint32_t n_copied, copied, copies;
} PlanRole;

typedef struct _Plan Plan;
struct _Plan {
    /* The texts that it was built from, for tools that change a key. Not in the digest. */
    const char *network, *strategy;
    const char *title; /* one line: network, strategy, ranks */
    uint32_t world;
    uint32_t axes[PLAN_N_AXES]; /* how many ranks each has (plan/mesh.h); [NONE] is 1 */
    uint64_t tokens_per_rank;   /* per step */
    const char **lanes;
    uint32_t n_lanes;
    PlanModule *modules;
    uint32_t n_modules;
    PlanParameter *parameters;
    uint32_t n_parameters;
    PlanUnit *units;
    uint32_t n_units;
    const char **calls; /* of a traced network, what its ops compute: plan/op/calls.h */
    uint32_t n_calls;
    PlanRole *roles;
    uint32_t n_roles;
    bool for_one;     /* not complete: made for one prediction (plan/build/build.h) */
    bool is_read;     /* from a text, which another version of foreshard may have written */
    PlanArena *arena; /* that all of the above lies in, texts too */
    char *digest;     /* made when it is first asked for */
};

Plan *plan_new(void);       /* an empty one, to be filled */
void plan_free(Plan *plan); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/* Every step after the second plays section steady, unless that leaves other buffers allocated than
 * second does. Then the two alternate: second, steady, second, steady, ... */
bool plan_steps_alternate(const PlanRole *role);

/* Whether the section's program is that of the section before it, stored once. */
static inline bool plan_section_repeats(const PlanRole *role, PlanSection section) {
    return section > 0 && role->n_instrs[section] &&
           role->sections[section] == role->sections[section - 1];
}

const char *plan_section_name(PlanSection section);
const char *plan_phase_name(PlanPhase phase);
const char *plan_axis_name(PlanAxis axis);
const char *plan_split_name(PlanSplit split);
const char *plan_instr_name(PlanInstrKind kind);

uint32_t plan_compute_lane(const Plan *plan); /* the lane named "compute"; 0 when none is */
uint32_t plan_role_of_rank(const Plan *plan, uint32_t rank); /* index into roles */

/* "sha256:" and hex digits, over the canonical text of mesh, tables and instructions
 * (text/digest.c). Two traces are comparable only if it is the same. */
const char *plan_digest(const Plan *plan);

static inline const PlanRef *plan_op_operands(const PlanRole *role, const PlanOp *op) {
    return role->operands + op->operands;
}

static inline PlanOperand plan_operand_whole(const PlanBuffer *buffers, uint32_t buffer) {
    const PlanBuffer *b = &buffers[buffer];
    return (PlanOperand){.buffer = buffer,
                         .elements = plan_dtype_count((PlanDtype)b->dtype, b->bytes)};
}
static inline PlanOperand plan_operand_part(uint32_t buffer, uint64_t offset_bytes,
                                            uint64_t elements) {
    return (PlanOperand){.buffer = buffer, .offset_bytes = offset_bytes, .elements = elements};
}
/* Whether the operand is a whole buffer, or missing, so that PlanRef needs no part for it. */
static inline bool plan_operand_is_whole(const PlanBuffer *buffers, const PlanOperand *o) {
    return o->buffer == PLAN_NONE ||
           (!o->offset_bytes && !o->rows &&
            o->elements == plan_operand_whole(buffers, o->buffer).elements);
}
static inline bool plan_ref_is_part(PlanRef ref) {
    return ref & PLAN_PART && ref != PLAN_NONE;
}
static inline PlanOperand plan_operand(const PlanRole *role, PlanRef ref) {
    if (ref == PLAN_NONE) {
        return (PlanOperand){.buffer = PLAN_NONE};
    }
    return ref & PLAN_PART ? role->parts[ref - PLAN_PART] : plan_operand_whole(role->buffers, ref);
}
/* The buffer that it is, or is a part of; PLAN_NONE: it is missing. */
static inline uint32_t plan_operand_buffer(const PlanRole *role, PlanRef ref) {
    return plan_ref_is_part(ref) ? role->parts[ref - PLAN_PART].buffer : ref;
}
/* Operand number i of an op, and its buffer. */
static inline PlanOperand plan_op_operand(const PlanRole *role, const PlanOp *op, uint32_t i) {
    return plan_operand(role, plan_op_operands(role, op)[i]);
}
static inline uint32_t plan_op_buffer(const PlanRole *role, const PlanOp *op, uint32_t i) {
    return plan_operand_buffer(role, plan_op_operands(role, op)[i]);
}
static inline const int64_t *plan_op_dims(const PlanRole *role, const PlanOp *op) {
    return role->dims + op->dims;
}
/* What an op of a traced network computes (plan/op/calls.h); NULL: the trace did not say. */
static inline const char *plan_op_call(const Plan *plan, const PlanRole *role, const PlanOp *op) {
    unsigned last = plan_op_info((PlanOpKind)op->kind)->n_dims - 1;
    int64_t number = plan_op_dims(role, op)[last];
    return number > 0 && number <= plan->n_calls ? plan->calls[number - 1] : NULL;
}
static inline const double *plan_op_attrs(const PlanRole *role, const PlanOp *op) {
    return role->attrs + op->attrs;
}
