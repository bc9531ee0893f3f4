/* plan/autograd/tape.h - what autograd remembers of a forward until its backward: nodes, the edges
 * between them, and the tensors that they keep.
 *
 * Inside plan/ only. All of it lies in the lists of PlanTape, and lists refer to each other by
 * index: "edges, n_edges" of a node are the n_edges entries of the tape's list of edges that begin
 * at number `edges`. A backward empties the lists.
 */
#pragma once

#include "plan/plan.h"
#include "plan/vector.h"

/* A tensor: some elements of a storage. Several tensors may be views of one storage. */
typedef struct {
    uint32_t storage; /* PLAN_NONE: no tensor */
    uint64_t offset, elements;
} PlanTensor;

#define PLAN_NO_TENSOR ((PlanTensor){PLAN_NONE, 0, 0})

/* What tensors are views of: a buffer, or a part of one, which is freed with its last reference. */
typedef struct {
    uint32_t buffer;
    uint32_t refs;
    uint64_t first; /* the element of the buffer that it begins with */
} PlanStorage;

/* Where a gradient goes. */
typedef struct {
    uint32_t node; /* PLAN_NONE: to a parameter */
    uint32_t slot; /* of the node; or the parameter's number; PLAN_NONE: no gradient is wanted */
} PlanEdge;

/* A function of backward. There are four kinds:
 *   op is one of the graph     the backward of that op
 *   flat                       FSDP1: the split of a unit's flat parameter, whose backward joins
 *                              the gradients of its parameters
 *   op PLAN_NONE, with a unit  the identity at the entrance of that unit, whose backward runs the
 *                              unit's post-backward
 *   op and unit PLAN_NONE      what a pipeline stage was given; its gradient leaves the stage */
typedef struct {
    uint32_t op;
    uint32_t unit;
    bool flat;
    uint32_t module;         /* flat: the module that ran when the parameter was split */
    uint32_t first_hook;     /* hooks that run before it, linked; PLAN_NONE */
    uint32_t edges, n_edges; /* one for each input */
    uint32_t slots, n_slots; /* the gradients that it may be given, one for each output */
    uint32_t saved, n_saved; /* the tensors that it keeps */
    uint32_t checkpoint;     /* the one that makes these tensors again; PLAN_NONE: they are kept */
    uint32_t n_dependencies; /* nodes that have yet to give it a gradient */
} PlanNode;

/* A value that was given to a unit: inside the unit it is made by the identity at the entrance, and
 * when the unit is left by `producer` again. */
typedef struct {
    uint32_t value;
    PlanEdge producer;
    PlanEdge next; /* the same value, given to the unit once more; node PLAN_NONE: it is not */
} PlanAlias;

/* What a flavour does before a node runs: pre_backward of a unit whose result the node made, or
 * arguments_ready of a unit whose argument it made. The former come first. */
typedef struct {
    uint32_t unit;
    uint32_t next;    /* hook of the same node; PLAN_NONE */
    bool of_argument; /* the node made an argument of the unit, and not a result */
    uint32_t slot;    /* of_argument: whose gradient the argument's is ... */
    PlanTensor held; /* ... and that gradient, held until all of the unit's arguments have theirs */
} PlanHook;

/* A block of which forward keeps nothing but its arguments (torch.utils.checkpoint, not reentrant).
 * The first of its nodes that needs a saved tensor runs the block again, and stops as soon as the
 * last needed tensor is there. Each tensor is freed when the node that needed it has used it. */
typedef struct {
    uint32_t enter_step;             /* of the graph, at which the block begins */
    uint32_t arguments, n_arguments; /* in the tape's list `saved` */
    uint32_t n_pending;              /* how many of its nodes have yet to use their tensors */
    uint32_t last_op;                /* the last op that keeps anything; PLAN_NONE */
    bool recomputed;
    uint32_t left_step; /* the step at which its second forward ended */
    PlanTensor given;   /* reentrant: the gradient of its result, held until backward has left it */

    /* checkpointing=selective-op: results that are kept and not computed again. */
    uint32_t last_selected; /* the last op whose results are chosen; PLAN_NONE */
    uint32_t kept, n_kept;  /* in the tape's list `kept` */
    uint32_t next_kept;     /* the one that a recomputation takes next */

    /* offload=activations (offload.c): its first argument. */
    bool is_away; /* it is on the host */
    bool is_back; /* it is on its way back, or there */
    uint8_t dtype;
    uint32_t moved_event; /* the copy in either direction has run */
} PlanCheckpoint;

/* The largest number of a tensor, which a checkpoint of layers in float8 keeps (chosen.h). */
typedef struct {
    uint32_t checkpoint;
    PlanTensor tensor;
} PlanLargest;

/* A tensor that lives until a node has run (addends.h). */
typedef struct {
    uint32_t node;
    PlanTensor tensor;
} PlanAddend;

typedef struct {
    PLAN_VECTOR(PlanNode) nodes; /* in the order in which forward made them */
    PLAN_VECTOR(PlanEdge) edges;
    PLAN_VECTOR(PlanTensor) slots;
    PLAN_VECTOR(PlanTensor) saved;
    PLAN_VECTOR(PlanHook) hooks;
    PLAN_VECTOR(PlanCheckpoint) checkpoints;
    PLAN_VECTOR(PlanTensor) kept;
    PLAN_VECTOR(PlanLargest) largest;
    PLAN_VECTOR(PlanAddend) addends;

    /* Arrays as long as the graph's tables. */
    uint32_t *storage_of_value;  /* of values that are no views of others */
    PlanEdge *producer_of_value; /* where its gradient goes; slot PLAN_NONE: it wants none */
    uint32_t *node_of_op;
    uint32_t *n_contributions; /* by parameter: how many gradients it still waits for */
} PlanTape;

/* A backward has used the lists. The arrays stay. */
void plan_tape_empty(PlanTape *tape);
void plan_tape_free(PlanTape *tape);
