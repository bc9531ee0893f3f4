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
#include "plan/vector.h"

typedef enum {
    PLAN_INIT_FILL,   /* value */
    PLAN_INIT_NORMAL, /* mean 0, standard deviation value */
} PlanInit;

typedef struct {
    const char *name, *class_name;
    uint32_t parent;
    bool is_block;   /* what wrap=block makes a unit */
    bool is_program; /* a block compiled as a whole, where others are compiled in parts */
} PlanGraphModule;

typedef struct {
    const char *name; /* qualified */
    int64_t dims[4];
    uint64_t elements;
    double init_value;
    PlanInit init;
    uint32_t module;
    uint8_t n_dims;
    bool frozen;       /* it is not trained: no gradient, no optimizer state */
    bool named_frozen; /* because the strategy names a module that has it */
    bool ignored;      /* the wrapper leaves it alone: whole on each rank, and never reduced */
    bool of_adapter;
    bool has_own_dtype; /* own_dtype, not the network's */
    uint8_t own_dtype;
    bool sees_all;          /* every rank of the axis of `split` makes the whole of its gradient */
    bool is_added_in_parts; /* each of these ranks has all of it, and adds an N-th of it */
    bool copies_gradient;   /* autograd copies the first gradient: its layout differs from the
                           * parameter's, or its storage is also another's */
    PlanSplit split;        /* among ranks; dims are of one rank's piece */
    /* Stored in 4 bits: the matrix of `numbers` numbers that it stands for. dims, elements and
     * own_dtype are then of the tensor that holds the bits. numbers 0: it is not. */
    uint64_t numbers;
    int64_t matrix[2];
    uint8_t copied_in; /* ... and the dtype of its copies for matrix products */
} PlanGraphParameter;

typedef struct {
    uint32_t parameter; /* PLAN_NONE unless the value is a parameter */
    uint32_t base;      /* the value whose storage it shares; itself when it has its own */
    uint64_t offset;    /* elements into the base */
    uint64_t elements;
    uint64_t rank;       /* its order among those freed in the same step */
    uint32_t held_until; /* the last step that holds it; PLAN_NONE: none has yet, or it is kept */
    uint32_t shown; /* an expanded view: how many query heads each key or value head serves; or 0 */
    uint8_t dtype;
    bool requires_grad;
    bool is_input;
    bool is_returned; /* of a base: the root's forward returns it (plan_graph_return_value) */
    bool is_copied;   /* of a base: what is returned is a copy of it, in passes that copy results */
    bool is_kept;     /* a module made it once and keeps it, though it is no registered buffer */
    const char *name; /* of a traced network's buffer, qualified; NULL: it has none */
    uint64_t bound;   /* inputs: integers below it; 0: real numbers */
    uint32_t next;    /* the value that its variable is assigned next, which frees this one; or 0 */
    /* Python frees a function's variables in the order in which they were made. Where this value's
     * variable is freed right after another value's instead, that other value; else 0. */
    uint32_t behind_variable;
    uint32_t behind; /* buffers: made after so many parameters; PLAN_NONE: after all of them */
} PlanGraphValue;

typedef struct {
    uint32_t kind; /* PlanOpKind or PlanGraphKind */
    uint32_t module;
    uint32_t values; /* first in value_refs: inputs and outputs in the order of ops.def */
    uint32_t n_inputs, n_outputs;
    uint32_t dims, attrs; /* first in the arrays */
} PlanGraphOp;

typedef enum {
    PLAN_STEP_ENTER, /* a module is called: its pre-forward hooks run, and forward begins */
    PLAN_STEP_OP,
    PLAN_STEP_RETURN, /* its forward has returned: its local variables are freed */
    PLAN_STEP_LEAVE,  /* its forward hooks have run: its arguments are freed */
    PLAN_STEP_CLOSE,  /* the rest of its hooks have: what a hook before computed is its result */
} PlanGraphStepKind;

typedef struct {
    uint8_t kind;         /* PlanGraphStepKind */
    bool takes_over;      /* ENTER: the caller holds no reference to the arguments meanwhile */
    bool is_closed_later; /* LEAVE: there is a CLOSE */
    uint32_t index;       /* op or module */
    uint32_t releases;    /* values freed after this step: the first in the releases array, */
    uint32_t n_releases;  /* and how many */
    uint32_t values;      /* ENTER: arguments, LEAVE, CLOSE: results, in value_refs */
    uint32_t n_values;
} PlanGraphStep;

/* How long the training loop holds what the root's forward returned beside the loss. */
typedef enum {
    PLAN_RESULTS_DROPPED,     /* not at all: it takes out the loss at once */
    PLAN_RESULTS_BACKWARD,    /* until backward is over: in a variable of a function for one pass */
    PLAN_RESULTS_NEXT_FORWARD /* until the next forward has returned: in a variable of a loop */
} PlanResultsHeld;

/* A value that the root's forward returns, and the step that makes it. */
typedef struct {
    uint32_t step;
    uint32_t value;
} PlanGraphReturned;

/* What an op makes. */
typedef struct {
    PlanDtype dtype;
    uint64_t elements;
} PlanGraphResult;

/* Tables of rotary embedding [seq, dim], which are made once: cosines and sines, or one table of
 * complex numbers, which both fields then name. */
typedef struct {
    uint32_t cosines, sines;
    uint64_t seq, dim;
    double base;
} PlanGraphRope;

/* A layer's result and an adapter's product, added up in the kernel that reads the sum, as a
 * compiler does it (plan_graph_add_scaled). */
typedef struct {
    uint32_t op;      /* of the sum */
    uint32_t product; /* the value that is added to the layer's result */
    uint32_t reader;  /* op; PLAN_NONE: not read yet */
} PlanGraphAddend;

/* The state of the family's walk through its forward. */
typedef struct {
    bool fused;           /* the module at hand is made of fused kernels, or is compiled ... */
    bool in_parts;        /* ... each module of a block by itself */
    bool autocasts;       /* it runs under torch.autocast */
    bool in_adapter;      /* what is declared is part of one */
    uint32_t last_float8; /* op; PLAN_NONE */
    uint32_t n_delayed;   /* layers in float8 with delayed scales */
    GArray *frames;       /* modules being walked: id, enter step */
    GArray *locals;       /* what plan_graph_hold() was told */
    GArray *copies;       /* uint32_t: a parameter's copy that autocast holds; PLAN_NONE */
    /* At the boundaries of units: by value, what it stands for (uint32_t; PLAN_NONE: itself), what
     * the units being walked were given, and how many they are beside the root. */
    GArray *stand_ins, *given;
    unsigned units_entered;
    GString *name; /* room for one, while it is put together */
} PlanGraphWalk;

/* A buffer whose numbers matter: frequencies [dim / 2] of a base, by which positions are multiplied
 * where each pass makes its own rotary tables; or one number (dim 0). */
typedef struct {
    uint32_t value;
    uint64_t dim;
    double number;
} PlanGraphNumbers;

typedef struct _PlanGraph PlanGraph;
struct _PlanGraph {
    PLAN_VECTOR(PlanGraphModule) modules;
    PLAN_VECTOR(PlanGraphParameter) parameters;
    PLAN_VECTOR(PlanGraphValue) values;
    PLAN_VECTOR(PlanGraphOp) ops;
    PLAN_VECTOR(PlanGraphStep) steps;
    PLAN_VECTOR(uint32_t) value_refs;
    PLAN_VECTOR(int64_t) dims;
    PLAN_VECTOR(double) attrs;
    GArray *inputs;   /* uint32_t values */
    GArray *buffers;  /* likewise: made once, never used */
    GArray *releases; /* uint32_t values */
    GArray *made;     /* uint32_t: parameters in the order of their making; empty: as numbered */
    GArray *addends;  /* PlanGraphAddend, in order of sums */
    GStringChunk *strings;

    /* What was asked of the walk, as its family took it. */
    PlanDtype dtype;   /* that its floating-point values are computed in */
    PlanDtype made_in; /* that the network was made in */
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
    uint64_t document; /* tokens of a document, which attend to no other; 0: a whole sequence */
    bool evaluates;    /* it is an evaluation's: nothing is dropped at random or wants a gradient */

    PlanGraphWalk now; /* while it is made */

    /* The result. */
    bool copies_results;     /* the root's results are copied, as DDP does, in passes that say so */
    uint32_t results_copied; /* then: the step with the last copy */
    uint32_t loss;
    uint32_t loss_made;     /* the loss before it was copied */
    bool has_wide_inputs;   /* blocks are given what is fp32 whatever the dtype */
    uint32_t meets_weight;  /* a parameter of an op whose other input is a unit's output in another
                             * dtype, which PyTorch refuses; PLAN_NONE: there is none */
    uint32_t root_cast;     /* the step that casts the last output of the root; PLAN_NONE */
    uint32_t n_train_steps; /* those before backward; the others run after it */
    GArray *returned;       /* PlanGraphReturned, in order of steps */
    PlanResultsHeld results_held;
    bool loss_apart;    /* the loss is a compiled program of its own, whose input are the logits */
    bool loss_in_place; /* its kernel writes the gradient over the logits, whoever holds them */
    bool weight_first;  /* products written in Python are weight x rows, not rows x weight */
    PlanGraphRope ropes[2];
    unsigned n_ropes;
    PlanGraphNumbers numbers[3];
    unsigned n_numbers;
    /* A pipeline stage: the value received from the stage before (PLAN_NONE: nothing), the value
     * its root returns, and the graph of the next stage, which this one owns. */
    uint32_t arrives, leaves;
    PlanGraph *behind;
    /* What an evaluation walks, which has the same modules and parameters; NULL: there is none. */
    PlanGraph *evaluation;
    const PlanTraced *traced; /* the trace it is made of; NULL: a family emitted it */
    uint32_t first_cast;      /* traced: from this op until the root is entered, inputs are cast */
};

void plan_graph_free(PlanGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanGraph, plan_graph_free)

#define plan_graph_at(array, type, i) (&g_array_index((array), type, (i)))

static inline PlanGraphModule *plan_graph_module_at(const PlanGraph *graph, uint32_t i) {
    return &graph->modules.items[i];
}
static inline PlanGraphParameter *plan_graph_parameter_at(const PlanGraph *graph, uint32_t i) {
    return &graph->parameters.items[i];
}
static inline PlanGraphValue *plan_graph_value_at(const PlanGraph *graph, uint32_t i) {
    return &graph->values.items[i];
}
static inline PlanGraphOp *plan_graph_op_at(const PlanGraph *graph, uint32_t i) {
    return &graph->ops.items[i];
}
static inline PlanGraphStep *plan_graph_step_at(const PlanGraph *graph, uint32_t i) {
    return &graph->steps.items[i];
}

static inline uint32_t plan_graph_ref(const PlanGraph *graph, uint32_t i) {
    return graph->value_refs.items[i];
}

static inline PlanDtype plan_graph_dtype_of(const PlanGraphParameter *p, PlanDtype networks) {
    return p->has_own_dtype ? (PlanDtype)p->own_dtype : networks;
}
static inline const int64_t *plan_graph_dims_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return &graph->dims.items[op->dims];
}
static inline const double *plan_graph_attrs_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return &graph->attrs.items[op->attrs];
}
static inline const PlanGraphFloat8Linear *plan_graph_float8_linear_of(const PlanGraph *graph,
                                                                       const PlanGraphOp *op) {
    return (const PlanGraphFloat8Linear *)plan_graph_dims_of(graph, op);
}
static inline const PlanGraphDelayedLinear *plan_graph_delayed_linear_of(const PlanGraph *graph,
                                                                         const PlanGraphOp *op) {
    return (const PlanGraphDelayedLinear *)plan_graph_dims_of(graph, op);
}
static inline const PlanGraphRing *plan_graph_ring_of(const PlanGraph *graph,
                                                      const PlanGraphOp *op) {
    return (const PlanGraphRing *)plan_graph_dims_of(graph, op);
}
static inline bool plan_graph_is_compiled(const PlanGraph *graph) {
    return graph->kernels.style == PLAN_KERNELS_COMPILED;
}
/* Whether, between layers that tensor ranks share, each has only its part of every sequence
 * (sequence parallel). */
static inline bool plan_graph_cuts_tokens(const PlanGraph *graph) {
    return graph->shared.tensor > 1 && !graph->shared.whole_tokens;
}
static inline bool plan_graph_is_first_stage(const PlanGraph *graph) {
    return graph->pipeline.stage == 0;
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
static inline bool plan_graph_rope_is_complex(const PlanGraphRope *rope) {
    return rope->cosines == rope->sines;
}
/* Whether it is, or lies in, a table of complex numbers. */
bool plan_graph_is_complex(const PlanGraph *graph, uint32_t value);
/* Whether the regex matches the module's whole name (layers.0.attn) or its class (GptAttention).
 * PyTorch's wrap policies go by the class. */
bool plan_graph_is_named(const PlanGraph *graph, uint32_t module, const GRegex *whole);
bool plan_graph_is_in_block(const PlanGraph *graph, uint32_t module);
/* Whether a module's block is a compiler's program as a whole. */
bool plan_graph_is_in_program(const PlanGraph *graph, uint32_t module);
/* The block that a module is or lies in; the root if there is none. */
uint32_t plan_graph_block_of(const PlanGraph *graph, uint32_t module);
/* Whether autocast holds the copy of x until its region ends. */
bool plan_graph_is_kept_copy(const PlanGraph *graph, uint32_t x, uint32_t copy);
/* Whether what a pass's forward returned is still held in the next pass. */
bool plan_graph_results_outlive_pass(const PlanGraph *graph);
/* The dtype in which matrix products and attention compute. */
PlanDtype plan_graph_product_dtype(const PlanGraph *graph);
