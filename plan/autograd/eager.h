/* plan/autograd/eager.h - runs a network as eager PyTorch would, without data, and writes down each
 * instruction that PyTorch would give its device.
 *
 * Inside plan/ only. A plan is made by running the training loop once per section. As in PyTorch,
 * tensors have reference counts, an op's outputs are allocated when it is called, what its backward
 * needs is saved with it, and autograd runs nodes in its order (the latest first, gradients of
 * parameters at once). A buffer is freed when its last holder lets go. The flavour (DDP, FSDP2,
 * ...) is called where PyTorch's own hooks are.
 *
 * Files: tape.h what autograd remembers, ../flavours/flavour.h the hooks; eager.c tensors and
 * steps, forward.c ops; autograd.c the engine; differentiate/ one backward per op kind, saved.c
 * what it keeps for it; addends.c sums beside adapters in compiled blocks; checkpoint.c,
 * selective.c, recompute.c blocks that are run again; ../optimizer/; ../build/build.c puts the
 * sections together.
 */
#pragma once

#include "plan/autograd/tape.h"
#include "plan/builder.h"
#include "plan/flavours/flavour.h"
#include "plan/graph/graph.h"
#include "plan/op/calls.h"
#include "plan/strategy/strategy.h"

/* Parameters that are gathered, used and dropped together. Unit 0 is the root, which may own no
 * parameter. */
typedef struct {
    uint32_t module;    /* the first module of the unit */
    GArray *parameters; /* uint32_t, in PyTorch's order */
    uint64_t elements;
    bool of_experts;     /* of experts that ranks share */
    bool stays_whole;    /* it is not resharded after forward, whatever the strategy says */
    uint32_t n_aliases;  /* how many `aliases` of the run there were when it was entered */
    bool is_returned_to; /* backward comes to it: a result of its forward wants a gradient */
    uint32_t n_awaited;  /* FSDP1, frozen: how many arguments still lack their gradients */
} PlanRunUnit;

enum {
    PLAN_STATE_EXP_AVG,
    PLAN_STATE_EXP_AVG_SQ,
    PLAN_STATE_STEPS, /* fused kernels count on the device */
    PLAN_STATE_MOMENTUM,
    PLAN_N_STATES
};

/* Numbers in float8, and what they were scaled by. */
typedef struct {
    PlanTensor numbers, scale;
} PlanScaled;
#define PLAN_NO_SCALED ((PlanScaled){PLAN_NO_TENSOR, PLAN_NO_TENSOR})

/* What a float8 linear layer has cast of its input (float8/), for other layers that read it. */
typedef struct {
    uint32_t value; /* the input; PLAN_NONE: there is none */
    bool turned;    /* it was transposed */
    PlanScaled cast;
    PlanScaled kept; /* for backward, if ranks share the layers */
} PlanFloat8Input;
#define PLAN_NO_FLOAT8_INPUT                                                                       \
    ((PlanFloat8Input){.value = PLAN_NONE, .cast = PLAN_NO_SCALED, .kept = PLAN_NO_SCALED})

/* Buffers beside a weight in 4 bits, as bitsandbytes makes them: the largest magnitude of each
 * block (absmax) and a table of values (code) that no kernel reads. With double quantization absmax
 * are bytes, and the other three say what they stand for. */
typedef struct {
    uint32_t absmax, code, offset, map, map_absmax;
} PlanFourBit;

/* Asynchronous tensor parallel (shared/async.h): a product of a [m, k] and b, computed part by part
 * of a's rows. In float8 both have scales. b8 is the tensor that holds b, if one does. */
typedef struct {
    PlanOpKind kind;
    int64_t m, n, k;
    PlanOperand b;
    PlanTensor a_scale, b8, b_scale, made;
} PlanAsyncProduct;

/* A gather that waits to be merged with the products that read its result, or a product that waits
 * to be merged with the scatter of its result. */
typedef struct {
    const PlanGraphOp *gather; /* in backward the scatter; NULL: none waits */
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
    PLAN_VECTOR(PlanTensor) held; /* of the pass before, then of this one */
    uint32_t n_taken;             /* how many of this pass are among them */
    /* The buffers of what is held, of even and of odd passes, in the order in which they are made;
     * which of the two this pass has, and how many of them it has made. */
    PLAN_VECTOR(uint32_t) buffers[2];
    unsigned parity;
    uint32_t n_made;
} PlanLoop;

/* Whose program it is. */
typedef struct {
    uint32_t rank; /* the first of those that play this role */
    /* A rank with several stages has a run for each. The first of them: how many there are. The
     * others: batch_of is the first, which reads the batch, and the units and modules of the runs
     * before this one come before its own. */
    uint32_t n_of_rank;
    const PlanRun *batch_of; /* NULL: this run is the first */
    uint32_t first_unit, first_module;
    const PlanParameter *parameters; /* in the plan's table, whose names buffers get */
    uint32_t first_parameter;        /* its number in that table */
    struct _PlanStages *stages;      /* NULL: there is one stage */
} PlanRunOwner;

/* The forward and backward pass that runs, of those of its step. */
typedef struct {
    uint64_t number;
    uint32_t n_folded;   /* passes of the step that are not written out (plan/fold.h) */
    bool is_last;        /* of the step */
    bool reduces;        /* it reduces gradients; others only accumulate them */
    bool copies_results; /* of the root, if its graph says so, too */
} PlanRunPass;

/* An evaluation (plan/build/evaluate.h). While it runs its graph and storages are the run's, and
 * training's lie here. */
typedef struct {
    const PlanGraph *graph;     /* NULL: there is none */
    uint32_t *storage_of_value; /* by value of that graph */
    bool precedes;              /* the step at hand comes behind one */
} PlanRunEvaluation;

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
    uint32_t n_of_flavour;       /* lanes of offload.c or stages/ are numbered from here */
    uint8_t ring, async, expert; /* and these after them, as far as they are used */
} PlanRunLanes;

/* The stack of modules whose forward is running. */
typedef struct {
    PLAN_VECTOR(uint32_t) buffers; /* made in them, in order */
    PLAN_VECTOR(uint32_t) begins;  /* by module of the stack: its first buffer among those */
} PlanRunFrames;

typedef struct {
    PlanFloat8Input input;
    PlanTensor gradient_scale; /* of a gradient that was gathered in float8, for its layer */
} PlanRunFloat8;

/* A compiled program's backward, while it runs. */
typedef struct {
    PLAN_VECTOR(uint32_t) late;   /* parameters whose gradients it returns when it ends */
    PLAN_VECTOR(PlanTensor) held; /* its arguments, while its caller holds them */
} PlanRunProgram;

/* Of scaler.h. */
typedef struct {
    PlanTensor loss_scale, growth; /* from the first step on */
    PlanTensor found_inf;          /* of the step: whether a gradient is not finite */
} PlanRunScaler;

/* Of shared/exchange.h: a tensor being sent, and the event that says it has been. */
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
    PlanRunEvaluation evaluation;
    PlanRunLanes lanes;

    PlanRunUnit *units;
    uint32_t n_units;
    uint32_t *unit_of_parameter;
    uint32_t *ignored; /* FSDP: buffers of whole parameters that it leaves alone; NULL: none */
    PlanRunModules modules;

    PLAN_VECTOR(PlanStorage) storages;
    PlanTape tape;
    uint32_t checkpoint; /* the one whose block forward is in; PLAN_NONE */
    uint32_t n_products; /* matrix products without a bias so far, of the block that runs */
    bool *is_summed;     /* traced, by sum of gradients: this pass has made it */
    PLAN_VECTOR(PlanAlias) aliases;
    PlanRunFrames frames;
    PlanLoop loop;

    PlanRunFloat8 float8;
    PlanAsync async[2]; /* of forward and its recomputation; of backward */
    PlanRunSent sent;
    PlanRunFourBit four_bit;

    PlanEdge *producer_of_parameter; /* the parameter itself, or a part of a flat tensor */
    PlanTensor *gradients;           /* .grad of each whole parameter */
    PlanTensor *incoming;            /* by parameter: gradients that came and wait for others */
    PlanRunProgram program;
    PlanRunScaler scaler;
    uint32_t *states; /* optimizer buffers, PLAN_N_STATES a parameter; PLAN_NONE: not made */
};

static inline const PlanGraphParameter *plan_run_parameter(const PlanRun *run, uint32_t i) {
    return plan_graph_parameter_at(run->graph, i);
}
/* Of a unit the i-th. */
static inline uint32_t plan_run_parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}
static inline bool plan_unit_has_parameters(const PlanRun *run, uint32_t unit) {
    return run->units[unit].parameters->len > 0;
}

static inline PlanPhase plan_run_forward_phase(const PlanRun *run) {
    return run->graph->evaluates ? PLAN_PHASE_EVALUATION : PLAN_PHASE_FORWARD;
}

/* Phase, module and unit that the following instructions carry. */
void plan_run_at(PlanRun *run, PlanPhase phase, uint32_t module);
void plan_run_at_unit(PlanRun *run, uint32_t unit);

/* FSDP1: from now on gradients of the unit's parameters flow into its flat parameter. */
void plan_run_split_flat(PlanRun *run, uint32_t unit);

/* ---- tensors. A new one has one reference ---- */
PlanTensor plan_run_new_tensor(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
/* As torch.empty() does (plan_builder_alloc_empty()). */
PlanTensor plan_run_new_empty(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
PlanTensor plan_run_new_in(PlanRun *run, uint32_t buffer); /* in a buffer that is free now */
PlanTensor plan_run_ref(PlanRun *run, PlanTensor tensor);
void plan_run_unref(PlanRun *run,
                    PlanTensor tensor); /* frees the buffer with the last; no tensor is fine */
/* The same of a variable's, which then has none. */
void plan_run_drop(PlanRun *run, PlanTensor *tensor);
/* Launches the op begun last on the compute lane. With deterministic algorithms PyTorch fills its
 * new outputs first (fills.c). */
void plan_run_launch(PlanRun *run);
/* Launches a COPY, CAST or ACCUMULATE of the first elements of one buffer into another. */
void plan_run_into(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                   uint64_t elements);

/* The tensor of a graph value. Inline, to save copying the struct. */
static inline PlanTensor plan_run_value(PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    return (PlanTensor){run->tape.storage_of_value[v->base], v->offset, v->elements};
}
/* Input i of a graph op that becomes several launches. */
static inline PlanTensor plan_run_given(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + i));
}
static inline uint32_t plan_run_buffer_of(PlanRun *run, PlanTensor tensor) {
    return run->storages.items[tensor.storage].buffer;
}
/* Runs an op of the graph forward: launches its kernels, makes its views (forward.c). */
void plan_run_op(PlanRun *run, uint32_t op_id);
/* Sets output i of a graph op that becomes several launches; takes over the tensor's reference. */
void plan_run_give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made);

static inline PlanDtype plan_run_dtype_of(PlanRun *run, PlanTensor tensor) {
    return (PlanDtype)plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->dtype;
}
/* A tensor as an operand; no tensor is a missing one. */
static inline PlanOperand plan_run_operand_of(PlanRun *run, PlanTensor tensor) {
    if (tensor.storage == PLAN_NONE) {
        return (PlanOperand){.buffer = PLAN_NONE};
    }
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    uint64_t size = plan_dtype_bytes((PlanDtype)plan_builder_at(&run->builder, buffer)->dtype);
    uint64_t first = run->storages.items[tensor.storage].first + tensor.offset;
    return (PlanOperand){
        .buffer = buffer, .offset_bytes = first * size, .elements = tensor.elements};
}
/* Adds one tensor to another, on the compute lane. */
void plan_run_accumulate(PlanRun *run, PlanTensor from, PlanTensor to);
/* Adds it to the op being built. */
static inline void plan_run_operand(PlanRun *run, PlanTensor tensor) {
    plan_builder_operand(&run->builder, plan_run_operand_of(run, tensor));
}

/* What a functional all-reduce over the tensor axis makes of x, in a new tensor
 * (shared/shared.c). */
PlanTensor plan_shared_reduced(PlanRun *run, PlanTensor x, PlanReduction reduction);
/* Whether each tensor rank makes the parameter's gradient of its own tokens only, so that the
 * ranks' must be summed. */
bool plan_shared_is_summed(const PlanRun *run, uint32_t parameter);
/* A parameter's gradient settled between tensor ranks: the sum of what each made of its own tokens,
 * or this rank's rows of a whole table's gradient. PLAN_NO_TENSOR: it needs no settling. */
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

/* The wrapper leaves it alone (key ignored). */
static inline bool plan_run_is_ignored(const PlanRun *run, uint32_t parameter) {
    return plan_run_parameter(run, parameter)->ignored;
}

static inline bool plan_run_is_frozen(const PlanRun *run, uint32_t parameter) {
    return plan_run_parameter(run, parameter)->frozen;
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
