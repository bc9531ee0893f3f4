/* plan/graph/graph.h - the forward graph of a network: modules, parameters, ops in program order.
 *
 * A family emits it in two passes: first it declares modules and their parameters (in the order in
 * which PyTorch registers them), then it walks the forward program: enter a module, ops, leave it.
 * The walk is Python's: it also says how long a local variable holds a value, because that decides
 * when memory is given back.
 *
 * Values are numbered; a view shares its base's storage. Owns: all of it. Threads: one.
 */
#pragma once

#include "plan/graph/settings.h"
#include "plan/graph/traced.h"
#include "plan/plan.h"
#include "plan/strategy/strategy.h"

/* Ops without a kernel forward; what each makes backward:
 *   SPLIT  the columns of x into views; a concatenation
 *   SLICE  some columns of x alone; a tensor of x's shape, zero elsewhere
 *   REST   what is behind all of x's columns: nothing; a tensor of x's shape, zero
 *   HALF   the upper or lower half of each row of x [rows, 2 * half]; a tensor of x's shape
 *   COLUMNS  columns of rows of `total` numbers; a tensor of such rows, zero elsewhere
 *   HEADS  a matrix of each head: as PlanGraphHeads says
 *   REPEATED  a tensor for each of several sequences; the sum of their gradients
 *   SHOWN  a head, seen once for each of several; the sum of their gradients
 *   DETACHED  the same elements, for ops that backward passes by
 * Of layers that ranks share (autograd/shared/shared.c), several ops forward and backward; a rank
 * has `rows` tokens of each sequence between the layers, and `ranks` times as many inside:
 *   SHARED_GATHER   all ranks' tokens; the sums of all ranks' gradients of its own tokens
 *   SHARED_SCATTER  the sums of what all ranks have of its own tokens; all ranks' gradients
 *   SHARED_ROWS     a table's rows of the tokens, of those that this rank has, and a mask of the
 *                   tokens whose rows it has not; the gradient of the whole table
 *   SHARED_OWN      of all ranks' tokens its own; gradients that make a journey to all and back
 *   SHARED_SUM      the sums of what all ranks have of all tokens; the gradient as it comes
 *   SHARED_WHOLE    of some columns on each rank all; its own columns of a gradient
 *   SHARED_GATHER_FLOAT8, SHARED_SCATTER_FLOAT8  the same of tokens, or their gradients, that are
 *                   cast to float8 before they are gathered (autograd/float8/shared.c)
 *   SHARED_LOSS     of logits of which each rank has some columns: cross entropy's mean, the
 *                   logarithms, and how many targets count
 *   SHARED_COMPILED_LOSS  the same of a compiler's one program: the mean, the logits' gradient but
 *                   for its factor, a mask of the targets that count, and how many do
 * and without a kernel forward:
 *   SHARED_AGAIN    what was gathered already, by itself; backward by itself, as a gather
 *   SHARED_TAKEN    the same tokens, of which each rank will take its own; all ranks' gradients
 *   SHARED_READ     all tokens, as each rank has them; the sums of all ranks' gradients
 * Of a linear layer in float8 (autograd/float8/float8.c), also several: casts, and the product of
 * what they make:
 *   FLOAT8_LINEAR   y [m, n], what the weight was scaled by, and its cast; where ranks share it
 *                   also its input's cast and scale; dx and dw
 * Of a linear layer whose weight is in 4 bits (autograd/four-bit.c), likewise:
 *   FOUR_BIT_LINEAR  y [m, n]; dx
 * Of sequences that ranks share (autograd/shared/ring.c), several too:
 *   RING_ATTENTION  of a rank's queries, to all ranks' keys and values: o, the logarithms of its
 *                   sums, and the random state of the last turn
 *   RING_ROWS       what that gave, in rows of tokens: a copy on most ranks; the gradient as it
 *                   comes
 * Of experts that ranks share (autograd/shared/exchange.c), several too:
 *   EXCHANGE_SPLITS  of rows by expert those that all ranks send here; the host reads how many
 *   EXCHANGE_SEND    rows of this rank for others: those of others; gradients likewise
 *   EXCHANGE_AWAIT   what was sent last is waited for: nothing; backward nothing
 *   EXCHANGE_ORDER   of rows by rank and expert: how many each expert has, and the order in which
 *                    each one's lie side by side
 * Of latent attention (autograd/latent.c), several too:
 *   LATENT_TURN    columns of rows, turned as pairs of complex numbers in fp32; turned back
 * and without a kernel forward:
 *   LATENT_SPLIT   of rows the first columns, and those behind them; rows of both
 *   LATENT_KEPT    what a node of autograd keeps that backward never comes to, while that lives
 * Of a traced network (traced.h) all are of one kind, whose dim is the number of what it does:
 *   TRACED          as recorded */
typedef enum {
    PLAN_GRAPH_SPLIT = PLAN_N_OP_KINDS,
    PLAN_GRAPH_SLICE,
    PLAN_GRAPH_REST,
    PLAN_GRAPH_HALF,
    PLAN_GRAPH_COLUMNS,
    PLAN_GRAPH_HEADS,
    PLAN_GRAPH_REPEATED,
    PLAN_GRAPH_SHOWN,
    PLAN_GRAPH_DETACHED,
    PLAN_GRAPH_SHARED_AGAIN,
    PLAN_GRAPH_SHARED_TAKEN,
    PLAN_GRAPH_SHARED_READ,
    PLAN_GRAPH_SHARED_GATHER,
    PLAN_GRAPH_SHARED_SCATTER,
    PLAN_GRAPH_SHARED_SUM,
    PLAN_GRAPH_SHARED_OWN,
    PLAN_GRAPH_SHARED_WHOLE,
    PLAN_GRAPH_SHARED_ROWS,
    PLAN_GRAPH_SHARED_GATHER_FLOAT8,
    PLAN_GRAPH_SHARED_SCATTER_FLOAT8,
    PLAN_GRAPH_SHARED_LOSS,
    PLAN_GRAPH_SHARED_COMPILED_LOSS,
    PLAN_GRAPH_FLOAT8_LINEAR,
    PLAN_GRAPH_FOUR_BIT_LINEAR,
    PLAN_GRAPH_RING_ATTENTION,
    PLAN_GRAPH_RING_ROWS,
    PLAN_GRAPH_EXCHANGE_SPLITS,
    PLAN_GRAPH_EXCHANGE_SEND,
    PLAN_GRAPH_EXCHANGE_AWAIT,
    PLAN_GRAPH_EXCHANGE_ORDER,
    PLAN_GRAPH_LATENT_SPLIT,
    PLAN_GRAPH_LATENT_TURN,
    PLAN_GRAPH_LATENT_KEPT,
    PLAN_GRAPH_TRACED,
    PLAN_N_GRAPH_KINDS
} PlanGraphView;

typedef enum {
    PLAN_HEADS_AS_THEY_ARE, /* the gradient is used as it comes */
    PLAN_HEADS_COPIED,      /* it is copied */
    PLAN_HEADS_OF_RING,     /* it is copied where autograd/shared/ring.c puts it together */
    PLAN_HEADS_APART        /* it comes with its heads apart and is copied to where they are not */
} PlanGraphHeads;

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
    PlanShare share;      /* dims are what one rank of the tensor axis has of it */
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
    uint32_t
        shown; /* of a head that is seen for so many, whose gradients are all made; 0: as it is */
    bool is_returned; /* of a base: the root's forward returns it (plan_graph_return_value) */
    bool is_kept;     /* no buffer, though it lives like one: what a module made once and keeps */
    const char *name; /* of a traced network's buffer, qualified; NULL: it has none */
    uint64_t bound;   /* inputs: integers are below it; 0: real numbers */
    uint32_t next;    /* what its variable holds from the step on that makes it; 0: nothing else */
    uint32_t behind_variable; /* another variable, behind which its own goes; 0: as it was made */
    uint32_t
        behind; /* buffers: made behind so many parameters; PLAN_NONE: behind all, and tables */
} PlanGraphValue;

typedef struct {
    uint32_t kind; /* PlanOpKind or PlanGraphView */
    uint32_t module;
    uint32_t values; /* first in value_refs: operands in the order of ops.def, views for a split */
    uint32_t n_inputs, n_outputs;
    uint32_t dims, attrs; /* first in the arrays */
} PlanGraphOp;

typedef enum {
    PLAN_STEP_ENTER, /* module begins; hooks run, then its forward */
    PLAN_STEP_OP,
    PLAN_STEP_RETURN, /* module's forward has returned: its locals are gone */
    PLAN_STEP_LEAVE,  /* hooks have run: its arguments are let go */
} PlanGraphStepKind;

typedef struct {
    PlanGraphStepKind kind;
    uint32_t index;    /* op or module */
    uint32_t releases; /* first in the releases array: values whose last holder lets go here */
    uint32_t n_releases;
    uint32_t values; /* ENTER: arguments, LEAVE: results, in value_refs */
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
    bool in_parts;        /* ... in modules of blocks, each by itself */
    bool autocasts;       /* it runs under torch.autocast */
    bool in_adapter;      /* what is declared is part of one */
    uint32_t last_float8; /* op; PLAN_NONE */
    GArray *frames;       /* modules being walked: id, enter step */
    GArray *locals;       /* what plan_graph_hold() was told */
    GArray *copies;       /* uint32_t: a parameter's copy that autocast holds; PLAN_NONE */
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
    uint32_t n_train_steps;       /* those before backward; the others run after it */
    GArray *returned;             /* PlanGraphReturned, in order of steps */
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

PlanGraph *plan_graph_new(PlanDtype dtype);
void plan_graph_free(PlanGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanGraph, plan_graph_free)

/* Declaring. parent PLAN_NONE makes the root. */
uint32_t plan_graph_module(PlanGraph *graph, uint32_t parent, const char *local_name,
                           const char *class_name, bool is_block);
uint32_t plan_graph_parameter(PlanGraph *graph, uint32_t module, const char *local_name,
                              unsigned n_dims, const int64_t *dims, PlanInit init,
                              double init_value); /* a value */
/* Each rank of the tensor axis has so much of it; its dims are of that. */
void plan_graph_share_out(PlanGraph *graph, uint32_t value, PlanShare share);
/* Each has all of it, and sees all tokens. */
void plan_graph_sees_all(PlanGraph *graph, uint32_t value);
/* It is of this dtype, whatever the network is made in. */
void plan_graph_give_dtype(PlanGraph *graph, uint32_t value, PlanDtype dtype);
/* A matrix that lies in 4 bits in a tensor of the dtype that the graph says. */
void plan_graph_pack(PlanGraph *graph, uint32_t value);
static inline PlanDtype plan_graph_dtype_of(const PlanGraphParameter *p, PlanDtype networks) {
    return p->has_own_dtype ? (PlanDtype)p->own_dtype : networks;
}
/* It is not trained, whatever the strategy says. */
void plan_graph_freeze(PlanGraph *graph, uint32_t value);
/* The module holds the parameter too: what freezes one freezes the other. */
void plan_graph_share(PlanGraph *graph, uint32_t module, uint32_t value);
uint32_t plan_graph_input(PlanGraph *graph, PlanDtype dtype, uint64_t elements, uint64_t bound);

/* What a stage is given by the one before, whose gradient it gives back. */
uint32_t plan_graph_arriving(PlanGraph *graph, uint64_t elements);
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
 * PyTorch's policies go by; or those of a module that it is in. */
bool plan_graph_is_named(const PlanGraph *graph, uint32_t module, const GRegex *whole);
bool plan_graph_is_in(const PlanGraph *graph, uint32_t module, const GRegex *whole);
bool plan_graph_is_in_block(const PlanGraph *graph, uint32_t module);
/* Whether a module's block is a compiler's program as a whole. */
bool plan_graph_is_in_program(const PlanGraph *graph, uint32_t module);
/* The block that a module is of; of none: the root. */
uint32_t plan_graph_block_of(const PlanGraph *graph, uint32_t module);

/* A registered buffer that is only there; none of its numbers matter to the plan. Or the same, made
 * where it is declared, between the parameters. */
void plan_graph_buffer(PlanGraph *graph, PlanDtype dtype, uint64_t elements);
uint32_t plan_graph_buffer_between(PlanGraph *graph, PlanDtype dtype, uint64_t elements);

/* Walking. */
void plan_graph_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n);
/* The same, but that the arguments go with their last reader, not when the module has returned. */
void plan_graph_enter_with(PlanGraph *graph, uint32_t module, const uint32_t *arguments,
                           unsigned n);
void plan_graph_leave(PlanGraph *graph, const uint32_t *results, unsigned n);
/* An op of one result, which is returned. Inputs, dims and attributes are as many as ops.def names,
 * in its order; an input may be PLAN_NONE where it is optional. */
uint32_t plan_graph_op(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                       uint64_t elements, const int64_t *dims, const double *attrs);
/* The same of as many results as ops.def names; one of no elements, where it is optional, is there
 * only by name. Returns the first; the others follow it. */
uint32_t plan_graph_op_making(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                              const PlanGraphResult *results, const int64_t *dims,
                              const double *attrs);
/* An op of one result, which is written where value `into` lies. */
uint32_t plan_graph_op_into(PlanGraph *graph, uint32_t into, PlanOpKind kind,
                            const uint32_t *inputs, const int64_t *dims);
/* x in a dtype: a copy, or x itself where it is in that already. Of a parameter lowered under
 * autocast there is one copy. */
uint32_t plan_graph_cast(PlanGraph *graph, uint32_t x, PlanDtype dtype);
/* x [rows, sum of cols], as views of so many columns each in ret_views. */
void plan_graph_split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views);
/* The same of what linear_parts made; their gradients are joined in rows all the same. */
void plan_graph_parts(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views);
/* A view of so many columns of x [rows, width] from one on. */
uint32_t plan_graph_slice(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t width,
                          uint64_t from, uint64_t cols);
uint32_t plan_graph_rest(PlanGraph *graph, uint32_t x);
uint32_t plan_graph_half(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t half, bool upper);
/* So many columns of x from `from` on, whose rows have `total` numbers (and lie where x's base has
 * them). Their gradient is found in rows of dy_width numbers from dy_from on. */
typedef struct {
    uint64_t rows, cols, from, total, dy_width, dy_from;
} PlanGraphColumns;
uint32_t plan_graph_columns(PlanGraph *graph, uint32_t x, const PlanGraphColumns *columns);
uint32_t plan_graph_heads(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t heads, uint64_t head_dim, PlanGraphHeads mode);
uint32_t plan_graph_repeated(PlanGraph *graph, uint32_t x, uint64_t times);
uint32_t plan_graph_shown(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t times, uint64_t head_dim);
/* Tokens [batch, rows, width] of each rank; those of all, [batch, ranks * rows, width]. */
typedef struct {
    uint64_t batch, rows, width;
} PlanGraphTokens;
uint32_t plan_graph_shared_gather(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_scatter(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* What was gathered of x, by another reader, whose gradient is scattered by itself. */
uint32_t plan_graph_shared_again(PlanGraph *graph, uint32_t x, uint32_t gathered,
                                 const PlanGraphTokens *tokens);
/* Of x, all ranks' tokens, each rank's own; where they are taken (once), and what is told that its
 * gradient is to be of all. */
uint32_t plan_graph_shared_own(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_taken(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* Where each rank has all tokens: x for a layer that ranks share, and what such a layer gives. */
uint32_t plan_graph_shared_read(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_sum(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* x [rows, cols] of each rank side by side. */
uint32_t plan_graph_shared_whole(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t cols);
/* Rows of a table of which this rank has so many (`part`), width numbers each; in *ret_mask which
 * of the n are another rank's and hold nothing of use. */
uint32_t plan_graph_shared_rows(PlanGraph *graph, uint32_t table, uint32_t index, uint64_t n,
                                uint64_t width, uint64_t part, uint32_t *ret_mask);
/* Zero where the mask says so, in place. */
void plan_graph_zero_masked(PlanGraph *graph, uint32_t mask, uint32_t x, uint64_t rows,
                            uint64_t width);
uint32_t plan_graph_shared_loss(PlanGraph *graph, uint32_t logits, uint32_t targets, uint64_t rows,
                                uint64_t cols);
/* The same in fp32, of logits as they are. */
uint32_t plan_graph_shared_compiled_loss(PlanGraph *graph, uint32_t logits, uint32_t targets,
                                         uint64_t rows, uint64_t cols);
/* Of SHARED_GATHER_FLOAT8's dims, behind the tokens': whether a norm made them, and looks for the
 * largest number. */
enum {
    PLAN_GRAPH_GATHER_IS_NORMS = 3
};
/* The product of x [m, k] and a weight [n, k], both cast to float8. */
typedef struct {
    int64_t m, n, k;
    int64_t maker; /* norm, SwiGLU or a ring's rows, from which x is made again; -1: x is kept */
    int64_t again; /* 1: the next layer in float8 takes x, too */
} PlanGraphFloat8Linear;
uint32_t plan_graph_float8_linear(PlanGraph *graph, uint32_t x, uint32_t weight, uint64_t m,
                                  uint64_t n, uint64_t k);
static inline const PlanGraphFloat8Linear *plan_graph_float8_linear_of(const PlanGraph *graph,
                                                                       const PlanGraphOp *op) {
    return (const PlanGraphFloat8Linear *)&g_array_index(graph->dims, int64_t, op->dims);
}
/* The product of x [m, k] and a weight [n, k] in 4 bits, with a bias or PLAN_NONE. */
uint32_t plan_graph_four_bit_linear(PlanGraph *graph, const uint32_t *x_weight_bias, uint64_t m,
                                    uint64_t n, uint64_t k);
/* Attention of this rank's part of each sequence to all of it, and its result in rows of tokens. */
typedef struct {
    int64_t batch, heads, kv_heads, seq, head_dim;
} PlanGraphRing;
uint32_t plan_graph_ring_attention(PlanGraph *graph, const uint32_t *q_k_v,
                                   const PlanGraphRing *ring, double scale);
static inline const PlanGraphRing *plan_graph_ring_of(const PlanGraph *graph,
                                                      const PlanGraphOp *op) {
    return (const PlanGraphRing *)&g_array_index(graph->dims, int64_t, op->dims);
}
/* Rows by expert, of all experts: those that ranks send here, [ranks, experts of each]. */
uint32_t plan_graph_exchange_splits(PlanGraph *graph, uint32_t counts, uint64_t experts);
/* Rows for other ranks: theirs for this one. Of its last result, before it is used: */
uint32_t plan_graph_exchange_send(PlanGraph *graph, uint32_t rows);
void plan_graph_exchange_await(PlanGraph *graph, uint32_t sent);
/* Of what splits gave: rows of each of this rank's experts; in *ret_order how n rows lie in order
 * of experts. */
uint32_t plan_graph_exchange_order(PlanGraph *graph, uint32_t splits, uint64_t experts, uint64_t n,
                                   uint32_t *ret_order);
/* Of x [rows, a + b] the first a columns of each row, and the others, in ret_views, whose rows lie
 * as x's do. The gradient of the first lies in rows of dy_row numbers, that of the others by
 * itself. */
typedef struct {
    int64_t rows, a, b, dy_row;
} PlanGraphLatentSplit;
void plan_graph_latent_split(PlanGraph *graph, uint32_t x, const PlanGraphLatentSplit *split,
                             uint32_t *ret_views);
/* Of rows of `row` numbers, one for each head of each token, `dim` from `from` on, by a table of
 * turns [seq, dim]. Their gradient lies in rows of dy_row numbers, from dy_from on. */
typedef struct {
    int64_t tokens, heads, dim, seq, row, from, dy_row, dy_from;
} PlanGraphLatentTurn;
uint32_t plan_graph_latent_turn(PlanGraph *graph, uint32_t x, uint32_t turns,
                                const PlanGraphLatentTurn *turn);
/* x, held by a node of autograd until what is given back goes. */
uint32_t plan_graph_latent_kept(PlanGraph *graph, uint32_t x);
/* Declares the next of ropes. */
void plan_graph_rope(PlanGraph *graph, uint64_t seq, uint64_t dim, double base);
/* The same, of complex numbers. */
void plan_graph_turns(PlanGraph *graph, uint64_t seq, uint64_t dim, double base);
/* Declares rope_frequencies, between the parameters. */
void plan_graph_rope_frequencies(PlanGraph *graph, uint64_t dim, double base);
/* A local variable of a function that is no module holds the value until now. */
void plan_graph_keep(PlanGraph *graph, uint32_t value);
/* Its variable has been given what the last op made; cut short, it still has value. */
void plan_graph_give_name(PlanGraph *graph, uint32_t value, uint32_t next);
/* Cut short, value goes as the other would, and after it: both are a function's variables. */
void plan_graph_goes_behind(PlanGraph *graph, uint32_t value, uint32_t other);
/* When both are let go of at once, value goes after the other. */
void plan_graph_let_go_after(PlanGraph *graph, uint32_t value, uint32_t other);
/* Whether autocast holds the copy of x until its region ends. */
bool plan_graph_is_kept_copy(const PlanGraph *graph, uint32_t x, uint32_t copy);
/* Of a call's arguments, given and as they were cast for it: those casts go after what it made
 * last, the first first. */
void plan_graph_let_go_of_casts(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                                unsigned n, uint32_t last_made);
uint32_t plan_graph_detached(PlanGraph *graph, uint32_t x);
/* A local variable of the module being walked holds the value until the module returns. */
void plan_graph_hold(PlanGraph *graph, uint32_t value);
/* The call of the module being walked holds it: until its hooks have run, too. */
void plan_graph_hold_argument(PlanGraph *graph, uint32_t value);
/* A function that is no module: what is walked until it returns is of the module, whose hooks do
 * not run. */
void plan_graph_call(PlanGraph *graph, uint32_t module);
void plan_graph_return(PlanGraph *graph);
/* The root's forward returns the value, which the last step made: it is held as results are. */
void plan_graph_return_value(PlanGraph *graph, uint32_t value);
/* Results of one pass are alive in the next. */
bool plan_graph_results_outlive_pass(const PlanGraph *graph);
/* What is walked from here on runs after backward and has no gradients: metrics. It is of the
 * module, whose hooks do not run. */
void plan_graph_after_backward(PlanGraph *graph, uint32_t module);
/* The region of autocast ends, if there is one: its copies of parameters are let go, in the module
 * that is called last. */
void plan_graph_leave_autocast(PlanGraph *graph, uint32_t module);
/* What products and attention compute in. */
PlanDtype plan_graph_product_dtype(const PlanGraph *graph);
/* The walk of a traced network, whose modules, parameters, buffers and inputs are declared. It is
 * not owned. */
void plan_graph_traced(PlanGraph *graph, const PlanTraced *traced);
/* After the walk: the loss, and who lets go of what when. */
void plan_graph_finish(PlanGraph *graph, uint32_t loss);

#define plan_graph_at(array, type, i) (&g_array_index((array), type, (i)))

static inline uint32_t plan_graph_ref(const PlanGraph *graph, uint32_t i) {
    return g_array_index(graph->value_refs, uint32_t, i);
}
