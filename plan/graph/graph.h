/* plan/graph/graph.h - the forward graph of a network: modules, parameters, ops in program order.
 *
 * A family emits it (emit.h), or a trace does. It also says how long Python would hold each value,
 * because that decides when memory is given back.
 *
 * Values are numbered; a view shares its base's storage. Owns: all of it. Threads: one.
 */
#pragma once

#include "plan/graph/kinds.h"
#include "plan/graph/settings.h"
#include "plan/graph/traced.h"
#include "plan/plan.h"
#include "plan/strategy/strategy.h"

typedef enum {
    PLAN_INIT_FILL,   /* value */
    PLAN_INIT_NORMAL, /* mean 0, standard deviation value */
} PlanInit;

typedef struct {
    const char *name, *class_name;
    uint32_t parent;
    bool is_block;   /* what wrap=block makes a unit */
    bool is_program; /* a block that is one, where others are compiled in parts */
} PlanGraphModule;

typedef struct {
    const char *name; /* qualified */
    uint32_t module;
    uint8_t n_dims;
    int64_t dims[4];
    uint64_t elements;
    PlanInit init;
    double init_value;
    bool frozen;       /* it is not trained: no gradient, no state */
    bool named_frozen; /* the strategy names a module that holds it */
    bool of_adapter;
    bool has_own_dtype; /* whatever the network is made in */
    uint8_t own_dtype;
    /* In 4 bits: numbers that it stands for, [matrix[0], matrix[1]], while dims and elements are of
     * the tensor in which they lie, of its own dtype; 0: it is as it stands. */
    uint64_t numbers;
    int64_t matrix[2];
    uint8_t copied_in;    /* the dtype of which it was made, and of its copies for products */
    PlanSplit split;      /* among ranks; dims are of one rank's piece */
    bool sees_all;        /* every rank of that axis makes the whole of its gradient */
    bool copies_gradient; /* autograd copies what comes, which is not laid out as it is, or is
                           * another's too */
} PlanGraphParameter;

typedef struct {
    uint32_t parameter; /* PLAN_NONE unless the value is a parameter */
    uint32_t base;      /* the value whose storage it shares; itself when it has its own */
    uint64_t offset;    /* elements into the base */
    uint64_t elements;
    uint8_t dtype;
    bool requires_grad;
    bool is_input;
    uint32_t shown;   /* a view of a key or value head for so many query heads; 0: no such view */
    bool is_returned; /* of a base: the root's forward returns it (plan_graph_return_value) */
    bool is_kept;     /* no buffer, though it lives like one: what a module made once and keeps */
    const char *name; /* of a traced network's buffer, qualified; NULL: it has none */
    uint64_t bound;   /* inputs: integers are below it; 0: real numbers */
    uint32_t next;    /* value that its variable is assigned next, which frees this one; 0: none */
    uint32_t behind_variable; /* another variable, behind which its own goes; 0: as it was made */
    uint32_t
        behind; /* buffers: made behind so many parameters; PLAN_NONE: behind all, and tables */
} PlanGraphValue;

typedef struct {
    uint32_t kind; /* PlanOpKind or PlanGraphKind */
    uint32_t module;
    uint32_t values; /* first in value_refs: operands in the order of ops.def, views for a split */
    uint32_t n_inputs, n_outputs;
    uint32_t dims, attrs; /* first in the arrays */
} PlanGraphOp;

typedef enum {
    PLAN_STEP_ENTER, /* module begins; hooks run, then its forward */
    PLAN_STEP_OP,
    PLAN_STEP_RETURN, /* module's forward has returned: its locals are gone */
    PLAN_STEP_LEAVE,  /* hooks have run: its arguments are freed */
} PlanGraphStepKind;

typedef struct {
    PlanGraphStepKind kind;
    uint32_t index;      /* op or module */
    uint32_t releases;   /* values freed after this step: the first in the releases array, */
    uint32_t n_releases; /* and how many */
    uint32_t values;     /* ENTER: arguments, LEAVE: results, in value_refs */
    uint32_t n_values;
    bool takes_over; /* ENTER: who calls does not hold the arguments until it returns */
} PlanGraphStep;

/* How long the training loop holds what the root's forward returned beside the loss. */
typedef enum {
    PLAN_RESULTS_DROPPED,  /* it takes the loss out and has let go of the rest */
    PLAN_RESULTS_BACKWARD, /* by a variable of a function that returns when backward is through */
    PLAN_RESULTS_NEXT_FORWARD /* by one that lives on: until the next forward gives it others */
} PlanResultsHeld;

/* Something that the root's forward returns, from the step on that makes it. */
typedef struct {
    uint32_t step;
    uint32_t value;
} PlanGraphReturned;

/* What an op makes. */
typedef struct {
    PlanDtype dtype;
    uint64_t elements;
} PlanGraphResult;

/* The cosines and sines of rotary embedding [seq, dim], values that are made once; or one table of
 * complex numbers, which is both. */
typedef struct {
    uint32_t cosines, sines;
    uint64_t seq, dim;
    double base;
} PlanGraphRope;

/* Where the walk is. */
typedef struct {
    bool fused; /* what is walked is made of the kernels of a tuned stack, or of a compiler's ... */
    bool in_parts;        /* ... compiled in parts: modules of a block, each by itself */
    bool autocasts;       /* it runs under torch.autocast */
    bool in_adapter;      /* what is declared is part of one */
    uint32_t last_float8; /* op; PLAN_NONE */
    GArray *frames;       /* modules being walked: id, enter step */
    GArray *locals;       /* what plan_graph_hold() was told */
    GArray *copies;       /* uint32_t: a parameter's copy that autocast holds; PLAN_NONE */
    /* At the boundaries of units: by value, what it stands for (uint32_t; PLAN_NONE: itself), what
     * the units being walked were given, and how many they are beside the root. */
    GArray *stand_ins, *given;
    unsigned units_entered;
} PlanGraphWalk;

typedef struct _PlanGraph PlanGraph;
struct _PlanGraph {
    GArray *modules, *parameters, *values, *ops, *steps; /* of the structs above */
    GArray *value_refs;                                  /* uint32_t */
    GArray *dims;                                        /* int64_t */
    GArray *attrs;                                       /* double */
    GArray *inputs;                                      /* uint32_t values */
    GArray *buffers;                                     /* likewise: made once, never used */
    GArray *releases;                                    /* uint32_t values */
    GArray *holds;                                       /* last step that holds each value */
    GArray *ranks; /* uint64_t: of values let go of in one step, the order */
    GArray *made; /* uint32_t parameters in the order in which they are made; none: as they stand */
    GStringChunk *strings;

    /* What was asked of the walk, as its family took it. */
    PlanDtype dtype; /* that its floating-point values are computed in */
    PlanGraphKernels kernels;
    PlanGraphAutocast autocast;
    PlanGraphUnits units;
    PlanFloat8 float8; /* linear layers of blocks: what has a scale of its own */
    PlanGraphShared shared;
    PlanGraphPipeline pipeline;
    PlanGraphTrained trained;
    PlanPytorch pytorch;
    uint64_t samples;  /* sequences a pass */
    uint64_t tokens;   /* tokens a pass */
    uint64_t document; /* tokens that attend to themselves alone; 0: a sequence's */

    PlanGraphWalk now; /* until it is finished */

    /* What it came to. */
    uint32_t loss;
    uint32_t meets_weight;  /* a parameter of an op that is given a unit's output in another dtype;
                            * PLAN_NONE: there is none */
    uint32_t root_cast;     /* step that casts the last of what the root gives; PLAN_NONE */
    uint32_t n_train_steps; /* those before backward; the others run after it */
    GArray *returned;       /* PlanGraphReturned, in order of steps */
    PlanResultsHeld results_held; /* those */
    bool loss_apart; /* a loss of one kernel is a program of its own, to which logits are given */
    bool loss_in_place; /* its kernel writes the gradient over what it is given, whoever has that */
    bool weight_first;  /* what is written out multiplies weights by rows, not rows by weights */
    PlanGraphRope ropes[2]; /* most have one or none */
    unsigned n_ropes;
    /* Or, where each pass makes its own, the buffer that positions are multiplied by [dim / 2]. */
    uint32_t rope_frequencies;
    uint64_t rope_dim;
    double rope_base;
    /* Of a stage: what comes from the one before (PLAN_NONE: nothing) and what its root returns;
     * and the stage behind, which this one owns. */
    uint32_t arrives, leaves;
    PlanGraph *behind;
    const PlanTraced *traced; /* that it is made of; NULL: a family emitted it */
    uint32_t first_cast; /* of it: op from which on, until its root is entered, inputs are cast */
};

void plan_graph_free(PlanGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanGraph, plan_graph_free)

#define plan_graph_at(array, type, i) (&g_array_index((array), type, (i)))

static inline PlanGraphModule *plan_graph_module_at(const PlanGraph *graph, uint32_t i) {
    return &g_array_index(graph->modules, PlanGraphModule, i);
}
static inline PlanGraphParameter *plan_graph_parameter_at(const PlanGraph *graph, uint32_t i) {
    return &g_array_index(graph->parameters, PlanGraphParameter, i);
}
static inline PlanGraphValue *plan_graph_value_at(const PlanGraph *graph, uint32_t i) {
    return &g_array_index(graph->values, PlanGraphValue, i);
}
static inline PlanGraphOp *plan_graph_op_at(const PlanGraph *graph, uint32_t i) {
    return &g_array_index(graph->ops, PlanGraphOp, i);
}
static inline PlanGraphStep *plan_graph_step_at(const PlanGraph *graph, uint32_t i) {
    return &g_array_index(graph->steps, PlanGraphStep, i);
}

static inline uint32_t plan_graph_ref(const PlanGraph *graph, uint32_t i) {
    return g_array_index(graph->value_refs, uint32_t, i);
}

static inline PlanDtype plan_graph_dtype_of(const PlanGraphParameter *p, PlanDtype networks) {
    return p->has_own_dtype ? (PlanDtype)p->own_dtype : networks;
}
static inline const int64_t *plan_graph_dims_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return &g_array_index(graph->dims, int64_t, op->dims);
}
static inline const double *plan_graph_attrs_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return &g_array_index(graph->attrs, double, op->attrs);
}
static inline const PlanGraphFloat8Linear *plan_graph_float8_linear_of(const PlanGraph *graph,
                                                                       const PlanGraphOp *op) {
    return (const PlanGraphFloat8Linear *)plan_graph_dims_of(graph, op);
}
static inline const PlanGraphRing *plan_graph_ring_of(const PlanGraph *graph,
                                                      const PlanGraphOp *op) {
    return (const PlanGraphRing *)plan_graph_dims_of(graph, op);
}
static inline bool plan_graph_is_compiled(const PlanGraph *graph) {
    return graph->kernels.style == PLAN_KERNELS_COMPILED;
}
/* Whether a rank has its part of each sequence between the layers. */
static inline bool plan_graph_cuts_tokens(const PlanGraph *graph) {
    return graph->shared.tensor > 1 && !graph->shared.whole_tokens;
}
static inline bool plan_graph_is_last_stage(const PlanGraph *graph) {
    return graph->pipeline.stage + 1 == graph->pipeline.n_stages;
}
static inline const PlanGraph *plan_graph_of_stage(const PlanGraph *graph, uint32_t stage) {
    while (graph->pipeline.stage < stage) {
        graph = graph->behind;
    }
    return graph;
}

bool plan_graph_wants_gradient(const PlanGraph *graph, uint32_t value);
/* Whether the regex matches its whole name (layers.0.attn) or its class (GptAttention), which
 * PyTorch's policies go by. */
bool plan_graph_is_named(const PlanGraph *graph, uint32_t module, const GRegex *whole);
bool plan_graph_is_in_block(const PlanGraph *graph, uint32_t module);
/* Whether a module's block is a compiler's program as a whole. */
bool plan_graph_is_in_program(const PlanGraph *graph, uint32_t module);
/* The block that a module is of; of none: the root. */
uint32_t plan_graph_block_of(const PlanGraph *graph, uint32_t module);
/* Whether autocast holds the copy of x until its region ends. */
bool plan_graph_is_kept_copy(const PlanGraph *graph, uint32_t x, uint32_t copy);
/* Results of one pass are alive in the next. */
bool plan_graph_results_outlive_pass(const PlanGraph *graph);
/* What products and attention compute in. */
PlanDtype plan_graph_product_dtype(const PlanGraph *graph);
