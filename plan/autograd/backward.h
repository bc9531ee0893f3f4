/* plan/autograd/backward.h - the words in which backward functions are written.
 *
 * Inside autograd/ only, for differentiate/: differentiate.c (PyTorch's ops, and who differentiates
 * which), linear.c, attention.c, heads.c (ops that know heads), norm.c (those of a norm written
 * out), experts.c (routing and grouped products), fused.c (those of fused kernels); and for what
 * shared/, float8/ and others do backward.
 */
#pragma once

#include "plan/autograd/eager.h"
#include "plan/op/names.h"

typedef struct {
    PlanRun *run;
    uint32_t node;
    const PlanGraphOp *op;
    const PlanTensor *dy;
    PlanTensor *dx;
} PlanBackward;

/* Dims, values and attributes of a kernel's op by their constants in plan/op/names.h: its values
 * are its operands; dx has a gradient for each. Those of others: plan/graph/kinds.h. */
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
    return g_array_index(b->run->graph->dims, int64_t, b->op->dims + i);
}

static inline const int64_t *dims(const PlanBackward *b) {
    return plan_graph_dims_of(b->run->graph, b->op);
}

static inline const double *attrs(const PlanBackward *b) {
    return plan_graph_attrs_of(b->run->graph, b->op);
}

/* A gradient with the shape of input i. */
static inline PlanTensor like_input(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *v = input(b, i);
    return plan_run_new_tensor(b->run, v->elements, (PlanDtype)v->dtype, name);
}

/* The same where that input wants one. */
static inline PlanTensor like_wanted(const PlanBackward *b, unsigned i, const char *name) {
    return wanted(b, i) ? like_input(b, i, name) : PLAN_NO_TENSOR;
}

/* The same in the dtype of the op's result, where that is the widest of its inputs'. */
static inline PlanTensor in_dtype_of_result(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *y = input(b, b->op->n_inputs);
    return plan_run_new_tensor(b->run, input(b, i)->elements, (PlanDtype)y->dtype, name);
}

static inline void begin(const PlanBackward *b, PlanOpKind kind, const int64_t *op_dims,
                         const double *op_attrs) {
    plan_builder_begin_op(&b->run->builder, kind, PLAN_AXIS_NONE, op_dims, op_attrs);
}

static inline void operand(const PlanBackward *b, PlanTensor tensor) {
    plan_run_operand(b->run, tensor);
}

/* Frees a gradient that the kernel always makes, if it is not wanted. */
static inline void drop_unwanted(const PlanBackward *b, unsigned i) {
    if (!wanted(b, i)) {
        plan_run_unref(b->run, b->dx[i]);
        b->dx[i] = PLAN_NO_TENSOR;
    }
}

/* Before the node is through: in PyTorch it is several. */
static inline void let_go_of_gradient(const PlanBackward *b, unsigned i) {
    PlanTensor *slot = &b->run->tape.slots.items[b->run->tape.nodes.items[b->node].slots + i];
    plan_run_unref(b->run, *slot);
    *slot = PLAN_NO_TENSOR;
}

/* Value i of the op, be it a parameter, an input or an output. */
static inline void value_operand(const PlanBackward *b, unsigned i) {
    const PlanGraphValue *v = input(b, i);
    if (v && v->parameter != PLAN_NONE) {
        PlanOperand p = b->run->flavour->parameter(b->run, v->parameter);
        plan_builder_operand(&b->run->builder, p);
    } else {
        operand(b, v ? plan_run_value(b->run, value_at(b, i)) : PLAN_NO_TENSOR);
    }
}

static inline void launch(const PlanBackward *b) {
    plan_run_launch(b->run);
}

/* The engine hands each input a gradient in that input's own dtype: casts what was made for i. */
void plan_give_own_dtype(const PlanBackward *b, unsigned i);

/* differentiate/fused.c */
void plan_rope_backward(const PlanBackward *b);
void plan_swiglu_backward(const PlanBackward *b);
void plan_add_norm_backward(const PlanBackward *b);
void plan_linear_gelu_backward(const PlanBackward *b);
void plan_linear_dw_db_backward(const PlanBackward *b);
/* Where the op's input is what another product's GELU made, for it alone: the gradient of what went
 * into that GELU, and of that product's bias. False: it is not, and nothing was done. */
bool plan_linear_dx_through_gelu(const PlanBackward *b);
/* Where q, k and v are the parts of one array's rows: their gradients in one. False likewise. */
bool plan_attention_backward_qkv(const PlanBackward *b);
void plan_cross_entropy_backward(const PlanBackward *b);
void plan_compiled_loss_backward(const PlanBackward *b);
void plan_chunked_loss_backward(const PlanBackward *b);
/* differentiate/heads.c */
void plan_negate_half_backward(const PlanBackward *b);
void plan_join_halves_backward(const PlanBackward *b);
void plan_half_backward(const PlanBackward *b);
void plan_columns_backward(const PlanBackward *b);
void plan_join_columns_backward(const PlanBackward *b);
void plan_negate_columns_backward(const PlanBackward *b);
void plan_table_mul_columns_backward(const PlanBackward *b);
void plan_table_mul_backward(const PlanBackward *b);
void plan_turn_backward(const PlanBackward *b);
void plan_sum_heads_backward(const PlanBackward *b);
void plan_heads_copy_backward(const PlanBackward *b);
void plan_heads_view_backward(const PlanBackward *b);
void plan_heads_matmul_backward(const PlanBackward *b);
void plan_masked_fill_backward(const PlanBackward *b);
void plan_bias_add_backward(const PlanBackward *b);
/* Input i was given to each of several sequences: the sum of theirs, for one as it comes. */
void plan_sum_sequences_backward(const PlanBackward *b, unsigned i, int64_t times, int64_t n);
/* differentiate/experts.c */
void plan_pick_columns_backward(const PlanBackward *b);
void plan_top_k_backward(const PlanBackward *b);
void plan_sum_each_backward(const PlanBackward *b);
void plan_total_columns_backward(const PlanBackward *b);
void plan_divide_column_backward(const PlanBackward *b);
void plan_grouped_linear_backward(const PlanBackward *b);
void plan_rows_of_backward(const PlanBackward *b);
void plan_place_rows_backward(const PlanBackward *b);
void plan_add_to_rows_backward(const PlanBackward *b);
/* differentiate/norm.c */
void plan_mul_broadcast_backward(const PlanBackward *b);
void plan_sum_columns_backward(const PlanBackward *b);
void plan_power_backward(const PlanBackward *b);
/* differentiate/linear.c: of the product alone. db: the bias's gradient, where it is made
 * already. */
void plan_linear_backward(const PlanBackward *b, PlanTensor db);
/* differentiate/attention.c */
void plan_attention_backward(const PlanBackward *b);
