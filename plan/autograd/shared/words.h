/* plan/autograd/shared/words.h - the words in which layers that ranks share are written: their
 * kernels, an index in a rank's part of a table.
 *
 * For shared.c (tokens), table.c (lookups), collectives.c, loss.c (the loss by PyTorch's ops) and
 * loss-compiled.c (by a compiler's) alone.
 */
#pragma once

#include "plan/autograd/backward.h"
#include "plan/autograd/shared/collectives.h"

/* An op that asks for the rank's place among those that share. */
static inline void begin_of_rank(PlanRun *run, PlanOpKind kind, const int64_t *op_dims) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_TENSOR, op_dims, NULL);
}

static inline PlanTensor new_like(PlanRun *run, PlanTensor x, uint64_t elements, const char *name) {
    return plan_run_new_tensor(run, elements, plan_run_dtype_of(run, x), name);
}

static inline void drop(PlanRun *run, PlanTensor x) {
    plan_run_unref(run, x);
}

typedef struct {
    PlanTensor mask;  /* of indices that are another rank's */
    PlanTensor index; /* of the others, in this rank's part */
} PlanSharedLocal;

PlanSharedLocal plan_shared_local_of(PlanRun *run, PlanTensor index, int64_t n, int64_t part);

/* Lookups in a table of which each rank has some rows. */
void plan_shared_rows_forward(PlanRun *run, const PlanGraphOp *op);
void plan_shared_rows_backward(const PlanBackward *b);

void plan_shared_loss_forward(PlanRun *run, const PlanGraphOp *op);
void plan_shared_loss_backward(const PlanBackward *b);
void plan_shared_compiled_loss_forward(PlanRun *run, const PlanGraphOp *op);
void plan_shared_compiled_loss_backward(const PlanBackward *b);
