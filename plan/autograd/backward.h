/* plan/autograd/backward.h - the words in which backward functions are written.
 *
 * Inside autograd/ only. A backward function is given the gradients of its op's results (dy) and
 * makes those of its inputs (dx): it allocates them, and launches a KERNEL or several.
 * PLAN_NO_TENSOR in dx: that input has no gradient.
 *
 * differentiate.c has the table of which function belongs to which op kind, and the functions of
 * PyTorch's own ops; the files beside it have the others, by theme. Ops of shared layers, float8
 * and the like have theirs in shared/, float8/ and so on, in the same words.
 */
#pragma once

#include "plan/autograd/launch.h"
#include "plan/op/names.h"

typedef struct {
    PlanRun *run;
    uint32_t node;         /* of the tape */
    const PlanGraphOp *op; /* the op of forward */
    const PlanTensor *dy;  /* one for each result of op; PLAN_NO_TENSOR: nobody used it */
    PlanTensor *dx;        /* one for each input of op, to be filled in */
} PlanBackward;

/* The backward of a node's op: given the gradients of its outputs (one per output, may be none),
 * makes those of the inputs that want one into ret_inputs. */
void plan_differentiate(PlanRun *run, uint32_t node, const PlanTensor *outputs,
                        PlanTensor *ret_inputs);

/* ---- the op of forward ----------------------------------------------------------------------- */

/* The values of an op that is one kernel are its operands, inputs before results, and its dims and
 * attributes are that kernel's: i is a constant of plan/op/names.h. The dims of other kinds are in
 * plan/graph/kinds.h. */
static inline uint32_t value_at(const PlanBackward *b, unsigned i) {
    return plan_graph_ref(b->run->graph, b->op->values + i);
}

static inline const PlanGraphValue *input(const PlanBackward *b, unsigned i) {
    uint32_t value = value_at(b, i);
    return value == PLAN_NONE ? NULL : plan_graph_value_at(b->run->graph, value);
}

static inline bool wanted(const PlanBackward *b, unsigned i) {
    const PlanGraphValue *v = input(b, i);
    return v && v->requires_grad;
}

static inline int64_t dim(const PlanBackward *b, unsigned i) {
    return b->run->graph->dims.items[b->op->dims + i];
}

static inline const int64_t *dims(const PlanBackward *b) {
    return plan_graph_dims_of(b->run->graph, b->op);
}

static inline const double *attrs(const PlanBackward *b) {
    return plan_graph_attrs_of(b->run->graph, b->op);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* A new gradient with the shape of input i. */
static inline PlanTensor like_input(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *v = input(b, i);
    return plan_run_new_tensor(b->run, v->elements, (PlanDtype)v->dtype, name);
}

/* The same if that input wants a gradient; else no tensor. */
static inline PlanTensor like_wanted(const PlanBackward *b, unsigned i, const char *name) {
    return wanted(b, i) ? like_input(b, i, name) : PLAN_NO_TENSOR;
}

/* The same in the dtype of the op's result, which is the widest of its inputs'. */
static inline PlanTensor in_dtype_of_result(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *y = input(b, b->op->n_inputs);
    return plan_run_new_tensor(b->run, input(b, i)->elements, (PlanDtype)y->dtype, name);
}

/* Frees the gradient of input i, which the kernel makes in any case, if nobody wants it. */
static inline void drop_unwanted(const PlanBackward *b, unsigned i) {
    if (!wanted(b, i)) {
        plan_run_drop(b->run, &b->dx[i]);
    }
}

/* Frees the gradient of result i now, while the node still runs: in PyTorch this node is several,
 * and the one that read it is through. */
static inline void let_go_of_gradient(const PlanBackward *b, unsigned i) {
    uint32_t slots = b->run->tape.nodes.items[b->node].slots;
    plan_run_drop(b->run, &b->run->tape.slots.items[slots + i]);
}

/* ---- launching ------------------------------------------------------------------------------- */

/* Operands: a tensor of the function's own, the gradient of result i, that of input i, and value i
 * of the op of forward, be it a parameter, an input or a result. No tensor is a missing operand. */
static inline PlanOperand tensor(const PlanBackward *b, PlanTensor made) {
    return plan_run_operand_of(b->run, made);
}

static inline PlanOperand dy(const PlanBackward *b, unsigned i) {
    return tensor(b, b->dy[i]);
}

static inline PlanOperand dx(const PlanBackward *b, unsigned i) {
    return tensor(b, b->dx[i]);
}

static inline PlanOperand value(const PlanBackward *b, unsigned i) {
    const PlanGraphValue *v = input(b, i);
    return v && v->parameter != PLAN_NONE
               ? b->run->flavour->parameter(b->run, v->parameter)
               : tensor(b, v ? plan_run_value(b->run, value_at(b, i)) : PLAN_NO_TENSOR);
}

static inline void begin(const PlanBackward *b, PlanOpKind kind, const int64_t *op_dims,
                         const double *op_attrs) {
    plan_builder_begin_op(&b->run->builder, kind, PLAN_AXIS_NONE, op_dims, op_attrs);
}

static inline void operand(const PlanBackward *b, PlanOperand at) {
    plan_builder_operand(&b->run->builder, at);
}

static inline void launch(const PlanBackward *b) {
    plan_run_launch(b->run);
}

/* One kernel, of operands in the order of its row. Where they depend on something it is begun,
 * given each operand, and launched. */
#define KERNEL(b, ...) LAUNCH_OPERANDS((b)->run, __VA_ARGS__)

/* x cast, in a new tensor. */
PlanTensor plan_cast_of(const PlanBackward *b, PlanTensor x, PlanDtype dtype, const char *name);
/* Casts what was made for input i to that input's own dtype, in which the engine hands it on. */
void plan_give_own_dtype(const PlanBackward *b, unsigned i);

/* ---- backward functions of differentiate/ ---------------------------------------------------- */

/* linear.c. db: the bias's gradient, if it has been made already. */
void plan_linear_backward(const PlanBackward *b, PlanTensor db);
void plan_linear_gelu_backward(const PlanBackward *b); /* GELU ends the product */

/* attention.c */
void plan_attention_backward(const PlanBackward *b);

/* heads.c: ops that know heads, and rotations and views of parts of heads. */
void plan_negate_half_backward(const PlanBackward *b);
void plan_join_halves_backward(const PlanBackward *b);
void plan_half_backward(const PlanBackward *b);
void plan_columns_backward(const PlanBackward *b);
void plan_join_columns_backward(const PlanBackward *b);
void plan_negate_columns_backward(const PlanBackward *b);
void plan_table_mul_columns_backward(const PlanBackward *b);
void plan_table_mul_part_backward(const PlanBackward *b);
void plan_sub_backward(const PlanBackward *b);
void plan_table_mul_backward(const PlanBackward *b);
void plan_turn_backward(const PlanBackward *b);
void plan_sum_heads_backward(const PlanBackward *b);
void plan_heads_copy_backward(const PlanBackward *b);
void plan_heads_view_backward(const PlanBackward *b);
void plan_heads_matmul_backward(const PlanBackward *b);
void plan_masked_fill_backward(const PlanBackward *b);
void plan_bias_add_backward(const PlanBackward *b);
void plan_join_sinks_backward(const PlanBackward *b);
void plan_sub_column_backward(const PlanBackward *b);
/* Input i, of n elements, was used by `times` sequences: its gradient is the sum of theirs, and
 * that of one sequence as it comes. */
void plan_sum_sequences_backward(const PlanBackward *b, unsigned i, int64_t times, int64_t n);

/* norm.c: a norm that is written out in ops. */
void plan_mul_broadcast_backward(const PlanBackward *b);
void plan_sum_columns_backward(const PlanBackward *b);
void plan_power_backward(const PlanBackward *b);

/* experts.c: routing and grouped products. */
void plan_pick_columns_backward(const PlanBackward *b);
void plan_top_k_backward(const PlanBackward *b);
void plan_sum_each_backward(const PlanBackward *b);
void plan_total_columns_backward(const PlanBackward *b);
void plan_divide_column_backward(const PlanBackward *b);
void plan_grouped_linear_backward(const PlanBackward *b);
void plan_grouped_product_backward(const PlanBackward *b);
void plan_clamp_columns_backward(const PlanBackward *b);
void plan_rows_of_backward(const PlanBackward *b);
void plan_place_rows_backward(const PlanBackward *b);
void plan_add_to_rows_backward(const PlanBackward *b);

/* ../addends.c */
void plan_add_scaled_backward(const PlanBackward *b);

/* hidden.c: what makes a hidden layer. */
void plan_swiglu_backward(const PlanBackward *b);
void plan_gelu_backward(const PlanBackward *b);
/* From the gradient of SwiGLU's result, which is dx[0], to its arguments': dx[0] is then gate's,
 * and the node at the edge's end has both. */
void plan_go_through_swiglu(const PlanBackward *b, PlanEdge *edge);
/* Whether the product reads a hidden layer that a compiler makes again in backward, and nobody else
 * does. Then, from that layer's gradient, which is dx[0], on to those of what went into it. */
bool plan_reads_hidden_made_again(const PlanBackward *b);
void plan_go_through_hidden(const PlanBackward *b);

/* fused.c: what a tuned stack runs as one kernel. */
void plan_rope_backward(const PlanBackward *b);
void plan_add_norm_backward(const PlanBackward *b);
/* If q, k and v are parts of the rows of one array: makes their gradients as one array. False: they
 * are not, and nothing was done. */
bool plan_attention_backward_qkv(const PlanBackward *b);
void plan_cross_entropy_backward(const PlanBackward *b);
void plan_compiled_loss_backward(const PlanBackward *b);
void plan_chunked_loss_backward(const PlanBackward *b);
