/* plan/autograd/shared/table.c - a table of which each rank has some rows. */
#include "plan/autograd/shared/words.h"

PlanSharedLocal plan_shared_local_of(PlanRun *run, PlanTensor index, int64_t n, int64_t part) {
    PlanSharedLocal local;
    PlanTensor below = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "below_mask");
    PlanTensor above = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "above_mask");
    local.mask = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "outside_mask");
    begin_of_rank(run, PLAN_OP_OUTSIDE_MASK,
                  DIMS([OUTSIDE_MASK_N] = n, [OUTSIDE_MASK_PART] = part));
    LAUNCH_BEGUN(run, index, below, above, local.mask);
    drop(run, below);
    drop(run, above);
    PlanTensor copy = new_like(run, index, (uint64_t)n, "index_copy");
    local.index = new_like(run, index, (uint64_t)n, "local_index");
    begin_of_rank(run, PLAN_OP_LOCAL_INDEX, DIMS([LOCAL_INDEX_N] = n, [LOCAL_INDEX_PART] = part));
    LAUNCH_BEGUN(run, index, local.mask, copy, local.index);
    drop(run, copy);
    return local;
}

static PlanOperand parameter_of(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    uint32_t value = plan_graph_ref(run->graph, op->values + i);
    return run->flavour->parameter(run, plan_graph_value_at(run->graph, value)->parameter);
}

void plan_shared_rows_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    int64_t n = d[PLAN_GRAPH_SHARED_ROWS_N], width = d[PLAN_GRAPH_SHARED_ROWS_WIDTH];
    int64_t part = d[PLAN_GRAPH_SHARED_ROWS_PART];
    PlanSharedLocal local = plan_shared_local_of(run, plan_run_given(run, op, 1), n, part);
    PlanTensor y = plan_run_new_tensor(run, (uint64_t)(n * width), run->graph->dtype, "y");
    LAUNCH_OPERANDS(run, PLAN_OP_EMBEDDING,
                    DIMS([EMBEDDING_N] = n, [EMBEDDING_WIDTH] = width, [EMBEDDING_VOCAB] = part),
                    NULL, parameter_of(run, op, 0), plan_run_operand_of(run, local.index),
                    plan_run_operand_of(run, y));
    drop(run, local.index);
    plan_run_give(run, op, 0, y);
    plan_run_give(run, op, 1, local.mask);
}

/* Every rank has all tokens' gradients, and makes that of the whole table: where it is reduced,
 * this rank's rows are copied out of it. */
void plan_shared_rows_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    int64_t n = dim(b, PLAN_GRAPH_SHARED_ROWS_N), width = dim(b, PLAN_GRAPH_SHARED_ROWS_WIDTH);
    int64_t rows = dim(b, PLAN_GRAPH_SHARED_ROWS_PART) * (int64_t)run->graph->shared.tensor;
    b->dx[0] = new_like(run, b->dy[0], (uint64_t)(rows * width), "dw");
    KERNEL(b, PLAN_OP_EMBEDDING_BACKWARD,
           DIMS([EMBEDDING_BACKWARD_N] = n, [EMBEDDING_BACKWARD_WIDTH] = width,
                [EMBEDDING_BACKWARD_VOCAB] = rows),
           NULL, dy(b, 0), value(b, 1), dx(b, 0));
}
