/* plan/autograd/float8/words.h - what linear layers in float8 are written in: where numbers to be
 * cast lie, the kernels, and what layers of one input leave for each other. float8.c has the layers
 * of a rank, shared.c those that ranks share, kept.c what a compiler keeps for them.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"
#include "plan/op/float8.h"

/* A 16-bit matrix to be cast: x, or what a fused kernel makes of x as it reads it: SwiGLU of x and
 * `up`, or a norm with `weight` and `rstd`. */
typedef struct {
    PlanOperand x, up, weight, rstd;
    int64_t rows, cols;
    PlanFloat8Made made;
    PlanDtype to;
} PlanFloat8Source;

typedef struct {
    PlanTensor as_is, turned;
} PlanFloat8Casts;

static const PlanOperand plan_float8_nothing = {.buffer = PLAN_NONE};

static inline const PlanGraphFloat8Linear *shape_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_float8_linear_of(run->graph, op);
}

static inline bool plan_float8_by_rows(const PlanRun *run) {
    return run->graph->float8 == PLAN_FLOAT8_ROWWISE;
}

static inline void plan_float8_begin(PlanRun *run, PlanOpKind kind, const int64_t *dims) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, dims, NULL);
}

PlanFloat8Source plan_float8_of_tensor(PlanRun *run, PlanTensor x, int64_t rows, int64_t cols);
PlanFloat8Source plan_float8_of_weight(PlanRun *run, const PlanGraphOp *op);
/* Where the weight is gathered in float8; buffer PLAN_NONE: it is not. */
PlanOperand plan_float8_gathered_scale(PlanRun *run, const PlanGraphOp *op);

/* found: whoever makes the numbers looks for the largest as it goes. */
PlanTensor plan_float8_scale(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                             bool found);
PlanTensor plan_float8_scale_as(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                                PlanDtype dtype, bool found);
/* In fp64, the largest over the ranks of the tensor axis. */
PlanTensor plan_float8_scale_of_all(PlanRun *run, const PlanFloat8Source *source,
                                    PlanFloat8Along along, bool found);
/* The same of a weight or what a layer is given, which forward may have looked through, and kept
 * what it found. */
PlanTensor plan_float8_scale_of_known(PlanRun *run, const PlanFloat8Source *source,
                                      PlanFloat8Along along, bool found);
PlanFloat8Casts plan_float8_cast(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                                 PlanFloat8Along along, bool wants_as_is, bool wants_turned);
PlanTensor plan_float8_cast_rows(PlanRun *run, const PlanFloat8Source *source,
                                 PlanTensor *ret_scale);
/* What is in float8 already, [rows, cols, inner], with rows and columns exchanged. */
PlanTensor plan_float8_exchange(PlanRun *run, PlanOperand cast, const int64_t *dims,
                                PlanDtype dtype);
PlanTensor plan_float8_turn(PlanRun *run, const PlanFloat8Source *cast, PlanDtype dtype);
/* What a product multiplies by is found, in one step, of n numbers. */
PlanTensor plan_float8_inverse(PlanRun *run, PlanOperand of, uint64_t n, PlanFloat8Step step,
                               PlanDtype to);
/* a's scales are one for each row of the result, b's one for each column. scaled: for dx with
 * row-wise scales, how often its reader multiplies each number by its scales. turned: for dx, b
 * lies transposed. */
typedef struct {
    PlanTensor a, a_scale;
    PlanOperand b;
    PlanTensor b_scale, made;
    int64_t scaled;
    bool turned;
} PlanFloat8Product;
void plan_float8_multiply(PlanRun *run, PlanOpKind kind, const PlanGraphFloat8Linear *d,
                          const PlanFloat8Product *product);

bool plan_float8_has_cast(const PlanRun *run, const PlanGraphOp *op, bool turned);
void plan_float8_leave_cast(PlanRun *run, uint32_t value, bool turned, PlanTensor made,
                            PlanTensor scale);
/* Whether it is the first layer that takes its input, and so the last of these in backward. */
bool plan_float8_is_first_of_input(const PlanRun *run, const PlanGraphOp *op);

/* Whether the compiler saves its own copy of the weight for backward; it cannot tell that this is a
 * parameter, which it could keep for free. */
bool plan_float8_keeps_copy(PlanRun *run, const PlanGraphOp *op);

/* float8.c's, for layers that ranks share too. Whether a kernel of the compiler's makes the
 * gradient, and looks for the largest number. */
bool plan_float8_gradient_is_searched(const PlanGraph *graph, const PlanGraphOp *op);
/* It is left for the layers that share it, and for dw. */
void plan_float8_cast_input_turned(const PlanBackward *b, bool found);
/* Where x is SwiGLU's alone: that is made again, and dx[0] becomes the gradient of gate. */
bool plan_float8_go_through_swiglu(const PlanBackward *b);
void plan_float8_make_dw(const PlanBackward *b, PlanTensor turned, PlanTensor turned_scale);
/* shared.c's. */
void plan_float8_shared_forward(PlanRun *run, const PlanGraphOp *op);
void plan_float8_shared_backward(const PlanBackward *b);
