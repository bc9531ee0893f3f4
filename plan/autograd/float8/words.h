/* plan/autograd/float8/words.h - the words in which linear layers in float8 are written: where the
 * numbers to be cast lie, the kernels, and what layers of one input leave for each other.
 *
 * Inside autograd/ only. float8.c has the layers of one rank, shared.c those that ranks share, and
 * kept.c what a compiler keeps for them.
 */
#pragma once

#include "plan/autograd/backward.h"
#include "plan/autograd/float8/layer.h"
#include "plan/autograd/shared/async.h"
#include "plan/op/float8.h"

/* A 16-bit matrix to be cast: x, or what a fused kernel makes of x as it reads it (made): SwiGLU of
 * x and `up`, or a norm with `weight` and `rstd`. */
typedef struct {
    PlanOperand x, up, weight, rstd;
    int64_t rows, cols;
    PlanFloat8Made made;
    PlanDtype to; /* e4m3 or e5m2 */
} PlanFloat8Source;

/* The values of a layer's op: inputs, result, and what it leaves for backward. */
enum {
    LAYER_INPUT,
    LAYER_WEIGHT,
    LAYER_RESULT,
    LAYER_WEIGHT_SCALE,
    LAYER_WEIGHT_CAST,
    LAYER_INPUT_CAST, /* of layers that ranks share, as what follows */
    LAYER_INPUT_SCALE
};

/* A gradient, for the products of dx (as it is) and of dw (with rows and columns exchanged). */
typedef struct {
    PlanScaled as_is, turned;
} PlanFloat8Gradient;

static inline void drop(PlanRun *run, const PlanScaled *cast) {
    plan_run_unref(run, cast->numbers);
    plan_run_unref(run, cast->scale);
}

static inline const PlanGraphFloat8Linear *shape_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_float8_linear_of(run->graph, op);
}

static inline void give(PlanRun *run, const PlanGraphOp *op, unsigned which, PlanTensor made) {
    plan_run_give(run, op, which - LAYER_RESULT, made);
}

static inline PlanTensor saved(const PlanBackward *b, unsigned which) {
    bool has_saved = b->run->tape.nodes.items[b->node].n_saved;
    return has_saved ? plan_run_value(b->run, value_at(b, which)) : PLAN_NO_TENSOR;
}

static inline bool is_there(PlanTensor x) {
    return x.storage != PLAN_NONE;
}

static inline bool plan_float8_by_rows(const PlanRun *run) {
    return run->graph->float8 == PLAN_FLOAT8_ROWWISE;
}

/* The scales of what backward's products sum over. */
static inline PlanFloat8Along plan_float8_along_columns(const PlanRun *run) {
    return plan_float8_by_rows(run) ? PLAN_FLOAT8_EACH_COLUMN : PLAN_FLOAT8_WHOLE;
}

static inline void plan_float8_begin(PlanRun *run, PlanOpKind kind, const int64_t *dims) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, dims, NULL);
}

PlanFloat8Source plan_float8_of_tensor(PlanRun *run, PlanTensor x, int64_t rows, int64_t cols);
PlanFloat8Source plan_float8_of_weight(PlanRun *run, const PlanGraphOp *op);

/* ---- scales ---------------------------------------------------------------------------------- */

/* found, in all of these: whoever makes the numbers looks for the largest as it goes, so that no
 * kernel reads them for that. */

/* The scale of a whole matrix, or one for each row or column (along), in fp32. */
PlanTensor plan_float8_scale(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                             bool found);
/* The same in a dtype: other than fp32 it is the largest magnitude itself. */
PlanTensor plan_float8_scale_as(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                                PlanDtype dtype, bool found);
/* The largest magnitude over all ranks of the tensor axis, in fp64. */
PlanTensor plan_float8_scale_of_all(PlanRun *run, const PlanFloat8Source *source,
                                    PlanFloat8Along along, bool found);
/* The same of a weight, or of what a layer is given: forward may have kept what it found. */
PlanTensor plan_float8_scale_of_known(PlanRun *run, const PlanFloat8Source *source,
                                      PlanFloat8Along along, bool found);
/* In one step, of n largest magnitudes, what a product multiplies by. */
PlanTensor plan_float8_inverse(PlanRun *run, PlanOperand of, uint64_t n, PlanFloat8Step step,
                               PlanDtype to);
/* The same of those that are joined over ranks; and joined and inverted, one after the other. */
PlanTensor plan_float8_inverse_of(PlanRun *run, PlanTensor largest, PlanDtype to);
PlanTensor plan_float8_joined_scale(PlanRun *run, const PlanFloat8Source *source,
                                    PlanFloat8Along along, bool found);
/* The scale of a weight that is gathered in float8; buffer PLAN_NONE: it is not. */
PlanOperand plan_float8_gathered_scale(PlanRun *run, const PlanGraphOp *op);

/* ---- casts and products ---------------------------------------------------------------------- */

/* Casts by a scale, as the numbers are, and with rows and columns exchanged unless ret_turned is
 * NULL; or exchanged alone. */
PlanTensor plan_float8_cast(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                            PlanFloat8Along along, PlanTensor *ret_turned);
PlanTensor plan_float8_cast_turned(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                                   PlanFloat8Along along);
/* Casts row by row, and finds each row's scale as it goes. */
PlanScaled plan_float8_cast_rows(PlanRun *run, const PlanFloat8Source *source);
/* Finds columns' scales, or that of the whole, and casts with rows and columns exchanged. */
PlanScaled plan_float8_found_turned(PlanRun *run, const PlanFloat8Source *source);
/* What is in float8 already, with rows and columns exchanged: of [rows, cols, inner], as the dims
 * of float8_turn say; or of a matrix. */
PlanTensor plan_float8_exchange(PlanRun *run, PlanOperand from, const int64_t *dims,
                                PlanDtype dtype);
PlanTensor plan_float8_turn(PlanRun *run, const PlanFloat8Source *from, PlanDtype dtype);

/* A product `made` of a and b. a's scales are one for each row of it, b's one for each column. */
typedef struct {
    PlanScaled a;
    PlanOperand b;
    PlanTensor b_scale, made;
    int64_t scaled; /* dx with row-wise scales: how often its reader multiplies by its scales */
    bool turned;    /* dx: b lies transposed */
} PlanFloat8Product;
void plan_float8_multiply(PlanRun *run, PlanOpKind kind, const PlanGraphFloat8Linear *d,
                          const PlanFloat8Product *product);

/* ---- layers of one input --------------------------------------------------------------------- */

/* Whether another layer has left a cast of this layer's input; and leaving one. */
bool plan_float8_has_cast(const PlanRun *run, const PlanGraphOp *op, bool turned);
void plan_float8_leave_cast(PlanRun *run, uint32_t value, bool turned, PlanScaled cast);

/* Whether the compiler saves its own copy of the weight for backward: it cannot tell that this is a
 * parameter, which it could keep for nothing (kept.c). */
bool plan_float8_keeps_copy(PlanRun *run, const PlanGraphOp *op);

/* ---- of dw.c --------------------------------------------------------------------------------- */

/* Casts the layer's input with rows and columns exchanged, and leaves it for the layers that share
 * the input, and for dw. */
void plan_float8_cast_input_turned(const PlanBackward *b, bool found);
/* If the layer alone reads what a SwiGLU made: that is made again, and dx[0] becomes the gradient
 * of gate. False: it does not, and nothing was done. */
bool plan_float8_go_through_swiglu(const PlanBackward *b);
/* The SwiGLU that made what the layer alone reads, and the edge to it; NULL: there is none. */
PlanNode *plan_float8_node_of_swiglu(const PlanBackward *b, PlanEdge **ret_edge);
void plan_float8_make_dw(const PlanBackward *b, const PlanScaled *dy_turned);

/* ---- of shared.c ----------------------------------------------------------------------------- */

/* By the largest number of each of several groups, of which each rank has a part. ret_turned NULL:
 * as it is alone. */
PlanScaled plan_float8_cast_joined(PlanRun *run, const PlanFloat8Source *source,
                                   PlanFloat8Along along, bool found, PlanTensor *ret_turned);
/* For products in parts. scale: of what w multiplies. */
PlanAsyncProduct plan_float8_async_product(PlanRun *run, PlanOpKind kind,
                                           const PlanGraphFloat8Linear *d, PlanTensor scale,
                                           const PlanScaled *w, PlanTensor made);
void plan_float8_shared_forward(PlanRun *run, const PlanGraphOp *op);
void plan_float8_shared_backward(const PlanBackward *b);
