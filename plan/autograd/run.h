/* plan/autograd/run.h - a rank while its program is written: whose it is, what of its network there
 * is at the moment, and what it holds from step to step. Inside plan/ only.
 *
 * A rank that plays several stages has a run for each.
 */
#pragma once

#include "plan/autograd/tape.h"
#include "plan/builder.h"
#include "plan/flavours/flavour.h"
#include "plan/graph/graph.h"
#include "plan/op/calls.h"
#include "plan/strategy/strategy.h"

/* ---- what does not change -------------------------------------------------------------------- */

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

typedef struct {
    const char *const *names;    /* the flavour's */
    uint32_t n_of_flavour;       /* lanes of offload.c or stages/ are numbered from here */
    uint8_t ring, async, expert; /* and these after them, as far as they are used */
} PlanRunLanes;

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

/* By module. */
typedef struct {
    uint32_t *unit_of;        /* the unit that owns its parameters */
    uint32_t *unit_opened_by; /* the unit that begins with the module; PLAN_NONE */
    uint32_t *unit_closed_by; /* the unit that ends with it; PLAN_NONE */
    bool *is_checkpointed;
    uint32_t n_checkpointed;
    bool checkpoints_reenter; /* torch.utils.checkpoint, reentrant */
} PlanRunModules;

/* Buffers beside a weight in 4 bits, as bitsandbytes makes them: the largest magnitude of each
 * block (absmax) and a table of values (code) that no kernel reads. With double quantization absmax
 * are bytes, and the other three say what they stand for. */
typedef struct {
    uint32_t absmax, code, offset, map, map_absmax;
} PlanFourBit;

/* Of parameters in 4 bits (four-bit.h). */
typedef struct {
    PlanFourBit *of_parameter; /* NULL: none is */
    uint32_t map; /* the table that each such parameter copies; PLAN_NONE: not made yet */
} PlanRunFourBit;

/* ---- while a pass runs ----------------------------------------------------------------------- */

/* The forward and backward pass that runs, of those of its step. */
typedef struct {
    uint64_t number;
    uint32_t microbatch; /* that runs, of a batch that a schedule of stages plays in parts */
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

/* The stack of modules whose forward is running. */
typedef struct {
    PLAN_VECTOR(uint32_t) buffers; /* made in them, in order */
    PLAN_VECTOR(uint32_t) begins;  /* by module of the stack: its first buffer among those */
} PlanRunFrames;

/* A compiled program's backward, while it runs. */
typedef struct {
    PLAN_VECTOR(uint32_t) late;   /* parameters whose gradients it returns when it ends */
    PLAN_VECTOR(PlanTensor) held; /* its arguments, while its caller holds them */
} PlanRunProgram;

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

/* Buffers of a layer with delayed scales (float8/delayed.h): largest numbers of the last passes,
 * and the scales in use. */
typedef struct {
    uint32_t history, scale;
} PlanFloat8Delay;

typedef struct {
    PlanFloat8Input input;
    PlanTensor gradient_scale; /* of a gradient that was gathered in float8, for its layer */
    PLAN_VECTOR(PlanFloat8Delay) delays; /* of each layer forward's, then backward's */
    uint32_t found[2]; /* buffers: in forward and in backward, of all layers and ranks; PLAN_NONE */
} PlanRunFloat8;

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

/* A tensor that is being sent (shared/exchange.h), and the event that says it has been. */
typedef struct {
    PlanTensor tensor;
    uint32_t event;
} PlanRunSent;

/* ---- from step to step ----------------------------------------------------------------------- */

enum {
    PLAN_STATE_EXP_AVG,
    PLAN_STATE_EXP_AVG_SQ,
    PLAN_STATE_STEPS, /* fused kernels count on the device */
    PLAN_STATE_MOMENTUM,
    /* In 8 bits exp_avg and exp_avg_sq are places; behind both, in this order, what they are of. */
    PLAN_STATE_ABSMAX,
    PLAN_STATE_MAP,
    PLAN_STATE_ABSMAX_SQ,
    PLAN_STATE_MAP_SQ,
    PLAN_N_STATES
};

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

/* What a scaled loss needs (optimizer/scaler.h). */
typedef struct {
    PlanTensor loss_scale, growth; /* from the first step on */
    PlanTensor found_inf;          /* of the step: whether a gradient is not finite */
} PlanRunScaler;

/* ---- all of it ------------------------------------------------------------------------------- */

struct _PlanRun {
    PlanBuilder builder; /* to which all is written */

    /* What does not change. */
    const PlanGraph *graph; /* but for an evaluation's */
    const PlanStrategy *strategy;
    const PlanFlavour *flavour;
    PlanCalls *calls; /* the plan's */
    PlanRunOwner owner;
    PlanRunLanes lanes;
    PlanRunUnit *units;
    uint32_t n_units;
    uint32_t *unit_of_parameter;
    PlanRunModules modules;
    uint32_t *ignored; /* FSDP: buffers of whole parameters that it leaves alone; NULL: none */
    PlanRunFourBit four_bit;

    /* While a pass runs. */
    PlanRunPass pass;
    PlanRunEvaluation evaluation;
    PLAN_VECTOR(PlanStorage) storages;
    PlanTape tape;
    PLAN_VECTOR(PlanAlias) aliases;
    PlanRunFrames frames;
    uint32_t checkpoint; /* the one whose block forward is in; PLAN_NONE */
    uint32_t reentered;  /* the reentrant one whose block backward is in; PLAN_NONE */
    uint32_t n_products; /* matrix products without a bias so far, of the block that runs */
    bool *is_summed;     /* traced, by sum of gradients: this pass has made it */
    PlanEdge *producer_of_parameter; /* the parameter itself, or a part of a flat tensor */
    PlanTensor *incoming;            /* by parameter: gradients that came and wait for others */
    PlanRunProgram program;
    PlanRunFloat8 float8;
    PlanAsync async[2]; /* of forward and its recomputation; of backward */
    PlanRunSent sent;

    /* From step to step. */
    gpointer state;        /* the flavour's */
    PlanTensor *gradients; /* .grad of each whole parameter */
    uint32_t *states;      /* optimizer buffers, PLAN_N_STATES a parameter; PLAN_NONE: not made */
    PlanLoop loop;
    PlanRunScaler scaler;
};

/* Of a rank's runs one writes, and hands the program on to the next. */
static inline void plan_run_hand_on(PlanRun *from, PlanRun *to) {
    if (from != to) {
        uint32_t unit = to->owner.first_unit, module = to->owner.first_module;
        to->builder = from->builder;
        to->builder.first_unit = unit;
        to->builder.first_module = module;
        from->builder = (PlanBuilder){.unit = PLAN_NONE};
    }
}

/* ---- its parameters -------------------------------------------------------------------------- */

static inline const PlanGraphParameter *plan_run_parameter(const PlanRun *run, uint32_t i) {
    return plan_graph_parameter_at(run->graph, i);
}
/* The number of a unit's i-th parameter. */
static inline uint32_t plan_run_parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}
static inline bool plan_unit_has_parameters(const PlanRun *run, uint32_t unit) {
    return run->units[unit].parameters->len > 0;
}

/* The wrapper leaves it alone (key ignored). */
static inline bool plan_run_is_ignored(const PlanRun *run, uint32_t parameter) {
    return plan_run_parameter(run, parameter)->ignored;
}

static inline bool plan_run_is_frozen(const PlanRun *run, uint32_t parameter) {
    return plan_run_parameter(run, parameter)->frozen;
}
