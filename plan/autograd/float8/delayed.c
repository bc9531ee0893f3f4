#include "plan/autograd/float8/delayed.h"
#include "plan/op/float8.h"

/* Each has scales of its own. */
enum {
    FORWARD,
    BACKWARD
};

/* What has a scale: in forward, in backward. */
enum {
    INPUT,
    WEIGHT,
    N_OF_FORWARD
};
enum {
    GRADIENT,
    N_OF_BACKWARD
};

/* The values of a layer's op: inputs, result, and what it leaves for backward. */
enum {
    LAYER_INPUT,
    LAYER_WEIGHT,
    LAYER_BIAS,
    LAYER_RESULT,
    LAYER_INPUT_CAST,
    LAYER_WEIGHT_CAST,
    LAYER_SCALES
};

enum {
    PASSES = 16,              /* amax_history_len, as Composer sets it; the default is 1024 */
    WORKSPACE_BYTES = 1 << 25 /* base.py, get_cublas_workspace_size_bytes(), of Hopper and later */
};

static uint64_t n_tensors(unsigned direction) {
    return direction == FORWARD ? N_OF_FORWARD : N_OF_BACKWARD;
}

static const PlanGraphDelayedLinear *shape_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_delayed_linear_of(run->graph, op);
}

static PlanFloat8Delay *delay_of(PlanRun *run, const PlanGraphDelayedLinear *d,
                                 unsigned direction) {
    return &run->float8.delays.items[2 * d->layer + direction];
}

/* ---- scales --------------------------------------------------------------------------------- */

static uint32_t new_state(PlanRun *run, uint64_t n, const char *name, double value) {
    uint32_t state =
        plan_builder_new(&run->builder, n, PLAN_FP32, PLAN_PARAMETERS_UNSHARDED, 0, name);
    LAUNCH_OPERANDS(run, PLAN_OP_FILL, DIMS((int64_t)n), &value, all_of(run, state));
    return state;
}

/* Layers make theirs when they first run. */
static void begin_layer(PlanRun *run, const PlanGraphDelayedLinear *d) {
    if (run->float8.delays.len > 2 * (uint32_t)d->layer) {
        return;
    }
    if (!run->float8.delays.len) {
        plan_builder_new(&run->builder, WORKSPACE_BYTES, PLAN_UINT8, PLAN_TEMPORARY_WORKSPACE, 0,
                         "workspace");
    }
    for (unsigned direction = FORWARD; direction <= BACKWARD; direction++) {
        uint64_t n = n_tensors(direction);
        PlanFloat8Delay delay = {.history = new_state(run, PASSES * n, "history", 0),
                                 .scale = new_state(run, n, "scale", 1)};
        plan_vector_push(&run->float8.delays, delay);
    }
}

static PlanOperand newest_of(const PlanFloat8Delay *delay, uint64_t n) {
    return plan_operand_part(delay->history, 0, n);
}

/* When all layers have run. */
static void make_room(PlanRun *run) {
    for (unsigned direction = FORWARD; direction <= BACKWARD; direction++) {
        run->float8.found[direction] =
            plan_builder_new(&run->builder, run->float8.delays.len / 2 * n_tensors(direction),
                             PLAN_FP32, PLAN_PARAMETERS_UNSHARDED, 0, "largest");
    }
}

/* Collects the newest largest numbers of all layers in one buffer, and takes the largest over all
 * ranks, whether they shard or hold copies. */
static void join(PlanRun *run, unsigned direction) {
    uint64_t ranks = run->strategy->ranks, n = n_tensors(direction);
    uint32_t n_layers = run->float8.delays.len / 2;
    if (ranks == 1) {
        return;
    }
    if (run->float8.found[direction] == PLAN_NONE) {
        make_room(run);
    }
    PlanOperand found = all_of(run, run->float8.found[direction]);
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE,
                          DIMS((int64_t)(n_layers * n)), NULL);
    for (uint32_t i = 0; i < n_layers; i++) {
        plan_builder_operand(&run->builder,
                             newest_of(&run->float8.delays.items[2 * i + direction], n));
    }
    plan_builder_operand(&run->builder, found);
    plan_run_launch(run);
    bool is_sharded = plan_strategy_shard_ranks(run->strategy) > 1;
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE,
                            is_sharded ? PLAN_AXIS_SHARD : PLAN_AXIS_REPLICATE, ranks,
                            PLAN_REDUCTION_MAX, NOTHING, found);
    plan_run_launch(run);
}

void plan_delayed_begin(PlanRun *run) {
    if (run->float8.delays.len) {
        join(run, FORWARD);
    }
}

/* A layer's own, before its first cast. */
static void update(PlanRun *run, const PlanGraphDelayedLinear *d, unsigned direction) {
    const PlanFloat8Delay *delay = delay_of(run, d, direction);
    uint64_t n = n_tensors(direction);
    uint32_t found = run->float8.found[direction];
    double largest = plan_float8_largest(direction == FORWARD ? PLAN_E4M3 : PLAN_E5M2);
    if (found != PLAN_NONE) {
        uint64_t before = (uint64_t)d->layer * n * plan_dtype_bytes(PLAN_FP32);
        LAUNCH_OPERANDS(run, PLAN_OP_COPY, DIMS((int64_t)n), NULL,
                        plan_operand_part(found, before, n), newest_of(delay, n));
    }
    LAUNCH_OPERANDS(run, PLAN_OP_FLOAT8_DELAY,
                    DIMS([FLOAT8_DELAY_PASSES] = PASSES, [FLOAT8_DELAY_TENSORS] = (int64_t)n),
                    &largest, all_of(run, delay->history), all_of(run, delay->scale));
}

static PlanOperand number_of(uint32_t buffer, unsigned which) {
    return plan_operand_part(buffer, which * plan_dtype_bytes(PLAN_FP32), 1);
}

/* ---- casts and products --------------------------------------------------------------------- */

/* A matrix's sides. */
typedef struct {
    int64_t rows, cols;
    PlanTensor as_is, turned;
} Cast;

static Cast new_cast(PlanRun *run, int64_t rows, int64_t cols, PlanDtype to) {
    uint64_t n = (uint64_t)(rows * cols);
    PlanTensor as_is = plan_run_new_tensor(run, n, to, "float8");
    return (Cast){rows, cols, as_is, plan_run_new_tensor(run, n, to, "float8_turned")};
}

static void launch_cast(PlanRun *run, const Cast *cast, PlanOperand x, const PlanFloat8Delay *delay,
                        unsigned which, PlanTensor db) {
    LAUNCH_OPERANDS(
        run, PLAN_OP_FLOAT8_DELAYED_CAST,
        DIMS([FLOAT8_DELAYED_CAST_ROWS] = cast->rows, [FLOAT8_DELAYED_CAST_COLS] = cast->cols),
        NULL, x, number_of(delay->scale, which), plan_run_operand_of(run, cast->as_is),
        plan_run_operand_of(run, cast->turned), plan_run_operand_of(run, db),
        number_of(delay->history, which));
}

static PlanOperand parameter_of(PlanRun *run, const PlanGraphOp *op, unsigned which) {
    uint32_t value = plan_graph_ref(run->graph, op->values + which);
    return value == PLAN_NONE
               ? NOTHING
               : run->flavour->parameter(run, plan_graph_value_at(run->graph, value)->parameter);
}

static PlanTensor multiplied(PlanRun *run, const PlanGraphOp *op, const Cast *x, const Cast *w,
                             const PlanFloat8Delay *delay) {
    const PlanGraphDelayedLinear *d = shape_of(run, op);
    PlanTensor y =
        plan_run_new_tensor(run, (uint64_t)(d->m * d->n), (PlanDtype)run->graph->dtype, "y");
    PlanOperand bias = parameter_of(run, op, LAYER_BIAS);
    bool has_bias = bias.buffer != PLAN_NONE;
    plan_builder_begin_op(
        &run->builder, has_bias ? PLAN_OP_FLOAT8_LINEAR_BIAS : PLAN_OP_FLOAT8_LINEAR,
        PLAN_AXIS_NONE,
        DIMS([FLOAT8_LINEAR_M] = d->m, [FLOAT8_LINEAR_N] = d->n, [FLOAT8_LINEAR_K] = d->k,
             [FLOAT8_LINEAR_X_SCALES] = 1, [FLOAT8_LINEAR_W_SCALES] = 1),
        NULL);
    plan_run_operand(run, x->as_is);
    plan_builder_operand(&run->builder, number_of(delay->scale, INPUT));
    plan_run_operand(run, w->as_is);
    plan_builder_operand(&run->builder, number_of(delay->scale, WEIGHT));
    if (has_bias) {
        plan_builder_operand(&run->builder, bias);
    }
    plan_run_operand(run, y);
    plan_run_launch(run);
    return y;
}

static void give(PlanRun *run, const PlanGraphOp *op, unsigned which, PlanTensor made) {
    plan_run_give(run, op, which - LAYER_RESULT, made);
}

void plan_delayed_forward(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphDelayedLinear *d = shape_of(run, op);
    begin_layer(run, d);
    if (run->builder.phase != PLAN_PHASE_RECOMPUTE) {
        update(run, d, FORWARD);
    }
    const PlanFloat8Delay delay = *delay_of(run, d, FORWARD);
    Cast w = new_cast(run, d->n, d->k, PLAN_E4M3), x = new_cast(run, d->m, d->k, PLAN_E4M3);
    launch_cast(run, &x, plan_run_operand_of(run, plan_run_given(run, op, LAYER_INPUT)), &delay,
                INPUT, PLAN_NO_TENSOR);
    launch_cast(run, &w, parameter_of(run, op, LAYER_WEIGHT), &delay, WEIGHT, PLAN_NO_TENSOR);
    give(run, op, LAYER_RESULT, multiplied(run, op, &x, &w, &delay));
    PlanTensor scales = plan_run_new_tensor(run, N_OF_FORWARD, PLAN_FP32, "scale");
    LAUNCH_OPERANDS(run, PLAN_OP_COPY, DIMS(N_OF_FORWARD), NULL, all_of(run, delay.scale),
                    plan_run_operand_of(run, scales));
    give(run, op, LAYER_INPUT_CAST, x.turned);
    give(run, op, LAYER_WEIGHT_CAST, w.turned);
    give(run, op, LAYER_SCALES, scales);
    plan_run_unref(run, x.as_is);
    plan_run_unref(run, w.as_is);
}

/* ---- backward ------------------------------------------------------------------------------- */

static PlanOperand kept(const PlanBackward *b, unsigned which) {
    return tensor(b, plan_run_value(b->run, value_at(b, which)));
}

static PlanOperand kept_scale(const PlanBackward *b, unsigned which) {
    return number_of(kept(b, LAYER_SCALES).buffer, which);
}

static Cast cast_gradient(const PlanBackward *b, const PlanFloat8Delay *delay) {
    const PlanGraphDelayedLinear *d = shape_of(b->run, b->op);
    Cast g = new_cast(b->run, d->m, d->n, PLAN_E5M2);
    b->dx[LAYER_BIAS] = like_wanted(b, LAYER_BIAS, "db");
    launch_cast(b->run, &g, dy(b, 0), delay, GRADIENT, b->dx[LAYER_BIAS]);
    return g;
}

void plan_delayed_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanGraphDelayedLinear *d = shape_of(run, b->op);
    update(run, d, BACKWARD);
    const PlanFloat8Delay delay = *delay_of(run, d, BACKWARD);
    PlanOperand scale = number_of(delay.scale, GRADIENT);
    Cast g = cast_gradient(b, &delay);
    b->dx[LAYER_INPUT] = like_input(b, LAYER_INPUT, "dx");
    KERNEL(
        b, PLAN_OP_FLOAT8_LINEAR_DX,
        DIMS([FLOAT8_LINEAR_DX_M] = d->m, [FLOAT8_LINEAR_DX_N] = d->n, [FLOAT8_LINEAR_DX_K] = d->k,
             [FLOAT8_LINEAR_DX_SCALED] = 0, [FLOAT8_LINEAR_DX_DY_SCALES] = 1,
             [FLOAT8_LINEAR_DX_W_SCALES] = 1, [FLOAT8_LINEAR_DX_TURNED] = 1),
        NULL, tensor(b, g.as_is), scale, kept(b, LAYER_WEIGHT_CAST), kept_scale(b, WEIGHT),
        dx(b, LAYER_INPUT));
    b->dx[LAYER_WEIGHT] = like_input(b, LAYER_WEIGHT, "dw");
    KERNEL(b, PLAN_OP_FLOAT8_LINEAR_DW,
           DIMS([FLOAT8_LINEAR_DW_M] = d->m, [FLOAT8_LINEAR_DW_N] = d->n,
                [FLOAT8_LINEAR_DW_K] = d->k, [FLOAT8_LINEAR_DW_DY_SCALES] = 1,
                [FLOAT8_LINEAR_DW_X_SCALES] = 1, [FLOAT8_LINEAR_DW_BEHIND] = 0),
           NULL, tensor(b, g.turned), scale, kept(b, LAYER_INPUT_CAST), kept_scale(b, INPUT),
           dx(b, LAYER_WEIGHT));
    plan_run_unref(run, g.as_is);
    plan_run_unref(run, g.turned);
    if (d->layer == 0) {
        join(run, BACKWARD);
    }
}
