/* plan/autograd/differentiate-fused.c - the backward of what a tuned stack runs as one kernel.
 *
 * These ops are no PyTorch ops; what they keep is what such kernels keep (see their rows in
 * ops.def). Elsewhere a fused network differentiates as an eager one.
 */
#include "plan/autograd/backward.h"

/* The rotation turned back. */
void plan_rope_backward(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_ROPE, (int64_t[]){dim(b, 0), dim(b, 1), dim(b, 2), dim(b, 3), 1}, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 2);
    operand(b, b->dx[0]);
    launch(b);
}

/* Of a checkpointed block a compiler makes the hidden layer again in the same kernel, so that both
 * gradients and it are there at once. */
void plan_swiglu_backward(const PlanBackward *b) {
    bool again = b->run->graph->compiled && b->run->nodes.items[b->node].checkpoint != PLAN_NONE;
    PlanTensor hidden = again ? like_input(b, 0, "hidden") : PLAN_NO_TENSOR;
    b->dx[0] = like_input(b, 0, "dgate");
    b->dx[1] = like_input(b, 1, "dup");
    begin(b, PLAN_OP_SWIGLU_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    operand(b, b->dx[1]);
    launch(b);
    plan_run_unref(b->run, hidden);
}

/* Both summands have the same gradient, in one tensor: the norm's, and that of the sum itself. */
void plan_add_norm_backward(const PlanBackward *b, bool centred) {
    unsigned sum = centred ? 4 : 3;
    bool has_bias = centred && value_at(b, 3) != PLAN_NONE;
    b->dx[0] = like_input(b, 0, "dx");
    b->dx[1] = plan_run_ref(b->run, b->dx[0]);
    b->dx[2] = like_input(b, 2, "dw");
    if (has_bias) {
        b->dx[3] = like_input(b, 3, "dc");
    }
    begin(b, centred ? PLAN_OP_ADD_LAYERNORM_BACKWARD : PLAN_OP_ADD_RMSNORM_BACKWARD, dims(b),
          NULL);
    operand(b, b->dy[0]);
    operand(b, b->dy[1]);
    value_operand(b, sum);
    value_operand(b, sum + 2);
    if (centred) {
        value_operand(b, sum + 3);
    }
    value_operand(b, 2);
    operand(b, b->dx[0]);
    operand(b, b->dx[2]);
    if (centred) {
        operand(b, b->dx[3]);
    }
    launch(b);
}

/* First through GELU, from what went into it, then through the product. */
void plan_linear_gelu_backward(const PlanBackward *b) {
    int64_t n = dim(b, 0) * dim(b, 1);
    PlanTensor before =
        plan_run_new_tensor(b->run, (uint64_t)n, (PlanDtype)input(b, 0)->dtype, "dx_gelu");
    begin(b, attrs(b)[0] > 0 ? PLAN_OP_GELU_ERF_BACKWARD : PLAN_OP_GELU_TANH_BACKWARD, &n, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 4);
    operand(b, before);
    launch(b);
    PlanBackward product = *b;
    product.dy = &before;
    plan_linear_backward(&product);
    plan_run_unref(b->run, before);
}

/* The logits' gradient is written over the logits, unless metrics read them later: there is no
 * second buffer of their size. */
void plan_cross_entropy_backward(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    bool in_place = graph->n_train_steps == graph->steps->len;
    b->dx[0] = in_place ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, 0)))
                        : like_input(b, 0, "dlogits");
    begin(b, PLAN_OP_CROSS_ENTROPY_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 3);
    value_operand(b, 4);
    value_operand(b, 0);
    operand(b, b->dx[0]);
    launch(b);
}
