/* plan/autograd/eager.h - plays PyTorch's eager program on the graph, and writes down what
 * it asks for.
 *
 * Inside plan/ only. A plan is made by running the training loop once per section without any data:
 * tensors have reference counts, an op's outputs are allocated when it is called, what its backward
 * needs is saved with it, and autograd runs its nodes in PyTorch's order (latest first, gradients
 * of parameters at once). A buffer is freed where PyTorch would free it: when its last holder lets
 * go. The flavour (DDP, FSDP2, ...) hooks in where PyTorch's own hooks sit.
 *
 * Files: tape.h what autograd remembers, ../flavours/flavour.h the hooks; eager.c tensors and
 * steps, forward.c ops; autograd.c the engine; differentiate/ one backward per op kind, saved.c
 * what it keeps for it; checkpoint.c, selective.c, recompute.c blocks that are run again;
 * ../optimizer/; ../build/build.c puts the sections together.
 */
#pragma once

#include "plan/autograd/tape.h"
#include "plan/builder.h"
#include "plan/flavours/flavour.h"
#include "plan/graph/graph.h"
#include "plan/op/calls.h"
#include "plan/strategy/strategy.h"

/* What is gathered, used and dropped together. Unit 0 is the root, which may own no parameter. */
typedef struct {
    uint32_t module;    /* that it begins with */
    GArray *parameters; /* uint32_t, in PyTorch's order */
    uint64_t elements;
    bool of_experts;     /* that ranks share */
    bool stays_whole;    /* after forward, whatever the strategy says of units */
    uint32_t n_aliases;  /* in the list when it was entered */
    bool is_returned_to; /* by backward: a result of its forward wants a gradient */
    uint32_t n_awaited;  /* of a flat one that is frozen: arguments without their gradients yet */
} PlanRunUnit;

enum {
    PLAN_STATE_EXP_AVG,
    PLAN_STATE_EXP_AVG_SQ,
    PLAN_STATE_STEPS, /* fused kernels count on the device */
    PLAN_STATE_MOMENTUM,
    PLAN_N_STATES
};

/* What a linear layer in float8 has cast of its input (float8/), for others that take it too. */
typedef struct {
    uint32_t value; /* PLAN_NONE: nothing */
    bool turned;
    PlanTensor cast, scale, kept, kept_scale; /* those kept for backward, where it is shared */
} PlanFloat8Input;
#define PLAN_NO_FLOAT8_INPUT                                                                       \
    ((PlanFloat8Input){.value = PLAN_NONE,                                                         \
                       .cast = PLAN_NO_TENSOR,                                                     \
                       .scale = PLAN_NO_TENSOR,                                                    \
                       .kept = PLAN_NO_TENSOR,                                                     \
                       .kept_scale = PLAN_NO_TENSOR})

/* Buffers beside a weight in 4 bits: the largest magnitude of each of its blocks, and a table of
 * values that nobody reads. With double quantization these magnitudes are bytes, and the others are
 * there, too. */
typedef struct {
    uint32_t absmax, code, offset, map, map_absmax;
} PlanFourBit;

/* Of asynchronous tensor parallel (shared/async.h): a product of all rows of a, [m, ...], and b, by
 * parts of these rows. Scales are of float8, and b8 is what holds b, if a tensor does. */
typedef struct {
    PlanOpKind kind;
    int64_t m, n, k;
    PlanOperand b;
    PlanTensor a_scale, b8, b_scale, made;
} PlanAsyncProduct;

/* What waits for the layers that read it, or for the scatter behind a layer. */
typedef struct {
    const PlanGraphOp *gather; /* or backward the scatter; NULL: nothing is gathered */
    const PlanGraphOp *layer;  /* whose result is scattered next; in backward, whose dx was made */
    PlanTensor own, all, turned, dx;
    PlanAsyncProduct products[3];
    unsigned n_products;
} PlanAsync;
#define PLAN_NO_ASYNC                                                                              \
    ((PlanAsync){.own = PLAN_NO_TENSOR,                                                            \
                 .all = PLAN_NO_TENSOR,                                                            \
                 .turned = PLAN_NO_TENSOR,                                                         \
                 .dx = PLAN_NO_TENSOR})

/* What the training loop holds of what forward returned (loop.h). */
typedef struct {
    PLAN_VECTOR(PlanTensor) held; /* the pass before's, then this one's */
    uint32_t n_taken;             /* of this pass */
    PLAN_VECTOR(uint32_t)
    buffers[2];      /* of what is held, of even and of odd passes, in order of making ... */
    unsigned parity; /* of this pass */
    uint32_t n_made; /* ... so many of them in this pass */
} PlanLoop;

/* Whose program it is. */
typedef struct {
    uint32_t rank;      /* of those that play this role, the first */
    uint32_t n_of_rank; /* a rank with several stages has a run for each; in the first: how many */
    const PlanRun *batch_of; /* the run that reads the batch, a rank's first; NULL: this one does */
    uint32_t first_unit, first_module; /* where its own begin, behind those of batch_of */
    const PlanParameter *parameters;   /* the plan's table, after which buffers are named */
    uint32_t first_parameter;          /* where this stage's begin in it */
    struct _PlanStages *stages;        /* of stages/; NULL: one stage has all layers */
} PlanRunOwner;

/* Of its step's forward and backward passes, the one that runs. */
typedef struct {
    uint64_t number;
    uint32_t n_folded; /* passes of a step that are not written (plan/fold.h) */
    bool is_last;      /* of the step */
    bool reduces;      /* it reduces gradients, and does not only add them up */
} PlanRunPass;

/* By module. */
typedef struct {
    uint32_t *unit_of;        /* the unit that owns its parameters */
    uint32_t *unit_opened_by; /* the unit that begins with the module; PLAN_NONE */
    uint32_t *unit_closed_by; /* the unit that ends with it; PLAN_NONE */
    bool *is_checkpointed;
    uint32_t n_checkpointed;
} PlanRunModules;

typedef struct {
    const char *const *names;    /* the flavour's */
    uint32_t n_of_flavour;       /* those of offload.c or stages/ have the numbers behind them */
    uint8_t ring, async, expert; /* numbers, behind all those; where they are used */
} PlanRunLanes;

/* Of modules being run, one in another. */
typedef struct {
    PLAN_VECTOR(uint32_t) buffers; /* made in them */
    PLAN_VECTOR(uint32_t) begins;  /* where each module's begin */
} PlanRunFrames;

typedef struct {
    PlanFloat8Input input;
    PlanTensor gradient_scale; /* of a gradient that was gathered so, for its layer */
} PlanRunFloat8;

/* A compiled program's backward, while it runs. */
typedef struct {
    PLAN_VECTOR(uint32_t) late;   /* parameters whose gradients it returns when it ends */
    PLAN_VECTOR(PlanTensor) held; /* arguments that its caller holds meanwhile */
} PlanRunProgram;

/* Of scaler.h. */
typedef struct {
    PlanTensor loss_scale, growth; /* from the first step on */
    PlanTensor found_inf;          /* of the step: whether a gradient is not finite */
} PlanRunScaler;

/* Of shared/exchange.h: what others are given, until waited for, and when they have it. */
typedef struct {
    PlanTensor tensor;
    uint32_t event;
} PlanRunSent;

/* Of parameters in 4 bits (four-bit.h). */
typedef struct {
    PlanFourBit *of_parameter; /* NULL: none is */
    uint32_t map; /* the table that each such parameter copies; PLAN_NONE: not made yet */
} PlanRunFourBit;

struct _PlanRun {
    PlanBuilder builder;
    const PlanGraph *graph;
    const PlanStrategy *strategy;
    const PlanFlavour *flavour;
    PlanCalls *calls; /* the plan's */
    gpointer state;   /* the flavour's */
    PlanRunOwner owner;
    PlanRunPass pass;
    PlanRunLanes lanes;

    PlanRunUnit *units;
    uint32_t n_units;
    uint32_t *unit_of_parameter;
    PlanRunModules modules;

    PLAN_VECTOR(PlanStorage) storages;
    PlanTape tape;
    uint32_t checkpoint; /* that forward is in; PLAN_NONE */
    uint32_t n_products; /* matrix products without a bias, of the block that runs, so far */
    bool *is_summed;     /* of a traced network's sums: it is of this pass, and has been made */
    PLAN_VECTOR(PlanAlias) aliases;
    PlanRunFrames frames;
    PlanLoop loop;

    PlanRunFloat8 float8;
    PlanAsync async[2]; /* of forward (recomputed forward, too), and of backward */
    PlanRunSent sent;
    PlanRunFourBit four_bit;

    PlanEdge *producer_of_parameter; /* the parameter itself, or a part of a flat tensor */
    PlanTensor *gradients;           /* .grad of each whole parameter */
    PlanTensor *incoming;            /* what a parameter's accumulation waits with */
    PlanRunProgram program;
    PlanRunScaler scaler;
    uint32_t *states; /* optimizer buffers, PLAN_N_STATES a parameter; PLAN_NONE: not made */
};

/* Context of the instructions that follow. */
void plan_run_at(PlanRun *run, PlanPhase phase, uint32_t module);
void plan_run_at_unit(PlanRun *run, uint32_t unit);

/* Gradients of the unit's parameters go, from now on, to the split of its flat tensor. */
void plan_run_split_flat(PlanRun *run, uint32_t unit);

/* Tensors. A new one has one reference. */
PlanTensor plan_run_new_tensor(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
/* The same by PyTorch's `empty` (builder.h). */
PlanTensor plan_run_new_empty(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
PlanTensor plan_run_new_in(PlanRun *run, uint32_t buffer); /* of a buffer that does not live */
PlanTensor plan_run_ref(PlanRun *run, PlanTensor tensor);
void plan_run_unref(PlanRun *run,
                    PlanTensor tensor); /* frees the buffer with the last; no tensor is fine */
/* Launches the op begun last, on the compute lane. If PyTorch fills new memory (fills.c), its
 * results are filled first. */
void plan_run_launch(PlanRun *run);
/* Launches an op that takes the first elements of one buffer to those of another: COPY or CAST. */
void plan_run_copy(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                   uint64_t elements);

/* Inline, so that tensors need not be copied whole. */
static inline PlanTensor plan_run_value(PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    return (PlanTensor){run->tape.storage_of_value[v->base], v->offset, v->elements};
}
/* Input i of an op that is lowered to several. */
static inline PlanTensor plan_run_given(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + i));
}
static inline uint32_t plan_run_buffer_of(PlanRun *run, PlanTensor tensor) {
    return run->storages.items[tensor.storage].buffer;
}
/* Launches what an op of the graph is, and holds its views (forward.c). */
void plan_run_op(PlanRun *run, uint32_t op_id);
/* Sets output i of an op that is lowered to several; takes over the tensor's reference. */
void plan_run_give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made);

static inline PlanDtype plan_run_dtype_of(PlanRun *run, PlanTensor tensor) {
    return (PlanDtype)plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->dtype;
}
static inline PlanOperand plan_run_operand_of(PlanRun *run, PlanTensor tensor) { /* there is one */
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    uint64_t size = plan_dtype_bytes((PlanDtype)plan_builder_at(&run->builder, buffer)->dtype);
    uint64_t first = run->storages.items[tensor.storage].first + tensor.offset;
    return (PlanOperand){
        .buffer = buffer, .offset_bytes = first * size, .elements = tensor.elements};
}
/* Adds it to the op being built; it may be none. */
static inline void plan_run_operand(PlanRun *run, PlanTensor tensor) {
    PlanOperand at = {.buffer = PLAN_NONE};
    if (tensor.storage != PLAN_NONE) {
        at = plan_run_operand_of(run, tensor);
    }
    plan_builder_operand(&run->builder, at);
}

/* What a functional all-reduce over the tensor axis makes of x, in a new tensor
 * (shared/shared.c). */
PlanTensor plan_shared_reduced(PlanRun *run, PlanTensor x, PlanReduction reduction);
/* Ranks that share layers have its gradient each of their own tokens. */
bool plan_shared_is_summed(const PlanRun *run, uint32_t parameter);
/* What this rank has of a parameter's gradient where ranks share layers: the sum of what each has
 * made of its own tokens, or of a whole table's the rows that are its own; PLAN_NO_TENSOR: the
 * gradient as it is. */
PlanTensor plan_shared_settled(PlanRun *run, uint32_t parameter, PlanTensor gradient);

/* Checkpoints: checkpoint.c, ... */
void plan_run_enter_checkpoint(PlanRun *run, uint32_t step);
void plan_run_leave_checkpoint(PlanRun *run);
void plan_run_end_checkpoint(PlanRun *run, PlanCheckpoint *checkpoint); /* all has been used */
/* ... selective.c, ... */
void plan_run_keep_selected(PlanRun *run, uint32_t op_id); /* of the block forward is in */
/* Largest numbers of weights and of what layers in float8 are given: kept by selective
 * checkpointing of compiled blocks that ranks share, so that nobody looks for them again; now,
 * of one. */
bool plan_run_keeps_largest(const PlanRun *run);
void plan_run_keep_largest(PlanRun *run);
/* Whether the result of the product that runs, or of one so many behind it, is kept. */
bool plan_run_keeps_product(const PlanRun *run, unsigned ahead);
/* ... and recompute.c. */
void plan_run_recompute(PlanRun *run, uint32_t checkpoint);
/* What recomputing shares with forward (eager.c). */
void plan_run_step(PlanRun *run,
                   uint32_t step); /* the whole step, except what autograd records of it */
void plan_run_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node);
void plan_run_let_go(PlanRun *run, const PlanGraphStep *step);
void plan_run_begin_frame(PlanRun *run);
void plan_run_end_frame(PlanRun *run);
void plan_run_drop_saved(PlanRun *run, uint32_t node); /* what it keeps; once is enough */

static inline bool plan_run_is_frozen(const PlanRun *run, uint32_t parameter) {
    return plan_graph_parameter_at(run->graph, parameter)->frozen;
}

/* The program, in parts. */
void plan_run_forward(PlanRun *run);
void plan_run_backward(PlanRun *run);
/* Of what a stage returned, given its gradient; of the last stage's loss (PLAN_NO_TENSOR). */
void plan_run_stage_backward(PlanRun *run, PlanTensor gradient);
void plan_run_after_backward(PlanRun *run);
/* One of the gradients that a compiled backward is called with: before PyTorch 2.12 its caller
 * holds them until it is through. */
void plan_run_call_program(PlanRun *run, PlanTensor gradient);
/* runs: n of one rank, of which the first has the builder. */
void plan_run_optimizer(PlanRun *runs, uint32_t n, bool first);

/* Forward of one graph op's backward: given the gradients of its outputs (one per output, may be
 * none), makes those of the inputs that want one into ret_inputs. */
void plan_differentiate(PlanRun *run, uint32_t node, const PlanTensor *outputs,
                        PlanTensor *ret_inputs);
/* Whether backward asks for any of its values, parameters too. */
bool plan_saves_anything(const PlanGraph *graph, const PlanGraphOp *op);
/* Which of its values an op keeps for its backward, in the order in which they are let go. */
unsigned plan_saved_values(const PlanGraph *graph, const PlanGraphOp *op, uint8_t *ret_positions);
/* Whether a norm of a sum keeps what it adds up: of a compiled block, where the second summand is
 * smaller than the sum, and the first is kept anyhow. */
bool plan_keeps_summands(const PlanGraph *graph, const PlanGraphOp *op);
/* A column that others are divided by is summed up anew for backward. */
bool plan_makes_column_again(const PlanGraph *graph, const PlanGraphOp *op);
