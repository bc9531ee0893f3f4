/* plan/autograd/shared/loss-compiled.c - the same loss where torch.compile makes one program of it,
 * as torchtitan's since April 2025 (Inductor of PyTorch 2.13, recorded: *-tensor-loss-kernel-*).
 *
 * Collectives are the same three, each in place of what a kernel has left. The gradient is made in
 * forward, but for its factor: in fp32, beside zeros in which each row has -1 at its target. So two
 * tensors of the logits' size in fp32 are there for a moment, and one until backward, which needs
 * the logits no more.
 */
#include "plan/autograd/shared/words.h"

static PlanTensor new_numbers(PlanRun *run, int64_t n, const char *name) {
    return plan_run_new_tensor(run, (uint64_t)n, PLAN_FP32, name);
}

/* For each row, over the columns of all ranks: the largest logit, and the sum. */
typedef struct {
    PlanTensor most, sum;
} Softmax;

static Softmax softmax_of(PlanRun *run, PlanTensor logits, const int64_t *shape) {
    Softmax s = {.most = new_numbers(run, shape[0], "most")};
    LAUNCH(run, PLAN_OP_LARGEST, shape, NULL, logits, s.most);
    plan_shared_all_reduce(run, s.most, PLAN_REDUCTION_MAX);
    s.sum = new_numbers(run, shape[0], "sum");
    LAUNCH(run, PLAN_OP_SUM_OF_EXPS, shape, NULL, logits, s.most, s.sum);
    plan_shared_all_reduce(run, s.sum, PLAN_REDUCTION_SUM);
    return s;
}

void plan_shared_compiled_loss_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    int64_t rows = d[CROSS_ENTROPY_ROWS], cols = d[CROSS_ENTROPY_COLS];
    int64_t shape[] = {rows, cols}, all[] = {rows * cols}; /* of all kernels but the mean's */
    PlanTensor logits = plan_run_given(run, op, 0), target = plan_run_given(run, op, 1);
    Softmax softmax = softmax_of(run, logits, shape);
    PlanTensor zeros = new_numbers(run, rows * cols, "less_target");
    LAUNCH(run, PLAN_OP_FILL, all, &(double){0}, zeros);
    PlanTensor picked = new_numbers(run, rows, "picked");
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    begin_of_rank(run, PLAN_OP_PICK_TARGETS, shape);
    LAUNCH_BEGUN(run, target, logits, softmax.most, softmax.sum, zeros, picked, mask);
    plan_shared_all_reduce(run, picked, PLAN_REDUCTION_SUM);
    PlanTensor loss = new_numbers(run, 1, "loss"), total = new_numbers(run, 1, "total");
    plan_builder_begin_op(&run->builder, PLAN_OP_MEAN_PICKED, PLAN_AXIS_NONE, DIMS(rows), NULL);
    plan_vector_push(&run->builder.loss_ops, run->builder.ops.len - 1);
    LAUNCH_BEGUN(run, target, picked, loss, total);
    drop(run, picked);
    PlanTensor gradient = new_numbers(run, rows * cols, "gradient");
    LAUNCH(run, PLAN_OP_ADD_SOFTMAX, shape, NULL, zeros, logits, softmax.most, softmax.sum,
           gradient);
    drop(run, softmax.most);
    drop(run, zeros);
    drop(run, softmax.sum);
    plan_run_give(run, op, 0, loss);
    plan_run_give(run, op, 1, gradient);
    plan_run_give(run, op, 2, mask);
    plan_run_give(run, op, 3, total);
}

/* The gradient overwrites the tensor that forward left, if it has that dtype, because nothing else
 * reads it. */
void plan_shared_compiled_loss_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanTensor left = plan_run_value(run, value_at(b, 3)),
               mask = plan_run_value(run, value_at(b, 4));
    b->dx[0] = (PlanDtype)input(b, 0)->dtype == PLAN_FP32 ? plan_run_ref(run, left)
                                                          : like_input(b, 0, "dlogits");
    LAUNCH(run, PLAN_OP_SCALE_COUNTED, dims(b), NULL, left, mask, b->dy[0],
           plan_run_value(run, value_at(b, 5)), b->dx[0]);
}
