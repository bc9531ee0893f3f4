/* plan/autograd/tape.h - what autograd remembers of a forward until its backward: nodes, the edges
 * between them, and the tensors that they keep. Inside plan/ only. */
#pragma once

#include "plan/plan.h"
#include "plan/vector.h"

/* A tensor: part of a storage. storage PLAN_NONE: no tensor. */
typedef struct {
    uint32_t storage;
    uint64_t offset, elements;
} PlanTensor;

#define PLAN_NO_TENSOR ((PlanTensor){PLAN_NONE, 0, 0})

typedef struct {
    uint32_t buffer;
    uint32_t refs;
    uint64_t first; /* element of the buffer that it begins with */
} PlanStorage;

/* Where a gradient goes: slot of a node, or a parameter. */
typedef struct {
    uint32_t node; /* PLAN_NONE: the parameter */
    uint32_t slot; /* or the parameter */
} PlanEdge;

typedef struct {
    uint32_t op;             /* graph op; PLAN_NONE: the identity at a unit's entrance */
    uint32_t unit;           /* of that identity; PLAN_NONE: what a stage was given */
    bool flat;               /* instead: the split of the unit's flat parameter */
    uint32_t module;         /* that ran when it was split */
    uint32_t first_hook;     /* units whose output this node made: pre_backward runs before it; or,
                              * behind those, whose argument: arguments_ready */
    uint32_t edges, n_edges; /* one per input */
    uint32_t slots, n_slots; /* gradients it may be given, one per output */
    uint32_t saved, n_saved; /* tensors it keeps */
    uint32_t checkpoint;     /* that makes them again; PLAN_NONE */
    uint32_t n_dependencies;
} PlanNode;

/* A producer to restore when the unit is left. */
typedef struct {
    uint32_t value;
    PlanEdge producer;
    PlanEdge next; /* the same value, given once more; node PLAN_NONE: not, or no longer */
} PlanAlias;

typedef struct {
    uint32_t unit, next;
    bool of_argument; /* the node made an argument of the unit, and not a result */
    uint32_t slot;    /* that argument's, of the node ... */
    PlanTensor held;  /* ... whose gradient is held until all of the unit's arguments have theirs */
} PlanHook;

/* A block whose forward keeps nothing but its arguments (torch.utils.checkpoint, not reentrant).
 * The first of its nodes that needs a saved tensor runs the block again, and stops as soon as the
 * last needed tensor is there; each tensor goes when the node that needed it has used it. */
typedef struct {
    uint32_t enter_step;
    uint32_t arguments, n_arguments; /* in saved */
    uint32_t n_pending;              /* nodes that will need their tensors */
    uint32_t last_op;                /* the last that keeps anything */
    uint32_t last_selected;          /* the last whose outputs selective-op chooses */
    uint32_t kept, n_kept;           /* outputs that are not computed again */
    uint32_t next_kept;              /* that a recomputation takes next */
    bool recomputed;
    /* Offloaded (offload.c): its first argument is on the host, or is on its way back. */
    bool is_away, is_back;
    uint8_t dtype;
    uint32_t moved_event;
} PlanCheckpoint;

/* A tensor's largest number, which a checkpoint keeps (selective.c). */
typedef struct {
    uint32_t checkpoint;
    PlanTensor tensor;
} PlanLargest;

typedef struct {
    PLAN_VECTOR(PlanNode) nodes;
    PLAN_VECTOR(PlanEdge) edges;
    PLAN_VECTOR(PlanTensor) slots;
    PLAN_VECTOR(PlanTensor) saved;
    PLAN_VECTOR(PlanHook) hooks;
    PLAN_VECTOR(PlanCheckpoint) checkpoints;
    PLAN_VECTOR(PlanTensor) kept; /* of checkpoints */
    PLAN_VECTOR(PlanLargest) largest;
    uint32_t *storage_of_value;  /* of base values */
    PlanEdge *producer_of_value; /* node and slot; node PLAN_NONE and slot PLAN_NONE: no gradient */
    uint32_t *node_of_op;
    uint32_t *n_contributions; /* how many gradients each parameter still waits for */
} PlanTape;
