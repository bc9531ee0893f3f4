/* plan/autograd/shared/shared.h - layers that the ranks of the tensor axis share, as torchtitan's
 * plan for Llama, and one like it for a GPT, have PyTorch's DTensors do it
 * (torch.distributed.tensor.parallel, with sequence parallel and loss_parallel; PyTorch 2.13,
 * recorded: tests/oracle/, *-tensor-*).
 *
 * Between the layers a rank has its part of every sequence, inside them all tokens and its part of
 * the columns (q, k, v, gate, up, head) or rows (o, down, embedding) of the weights. So four
 * things happen that one rank alone does not do, each of them one node of autograd: PlanGraphKind
 * names them, kinds.h what they make forward and backward. All collectives are functional ones:
 * each makes its result anew, and is waited for at once, so that they stand on the compute lane.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

static inline bool plan_shared_is_scatter(const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_SHARED_SCATTER ||
           (PlanGraphKind)op->kind == PLAN_GRAPH_SHARED_SCATTER_FLOAT8;
}

/* An N-th of a bias that every rank has and adds to its term of a sum, as DTensors divide it: a new
 * tensor. PLAN_NO_TENSOR: of another parameter, which is used as it is. */
PlanTensor plan_shared_part(PlanRun *run, uint32_t parameter);

/* Whether each tensor rank makes the parameter's gradient of its own tokens only, so that the
 * ranks' must be summed. */
bool plan_shared_is_summed(const PlanRun *run, uint32_t parameter);
/* What of a gradient is added to the sum of those that have come: all of it, but of a whole table's
 * this rank's rows, where its head has given those. */
PlanTensor plan_shared_addend(PlanRun *run, PlanTensor sum, PlanTensor gradient);
/* A parameter's gradient settled between tensor ranks: the sum of what each made of its own tokens,
 * or this rank's rows of a whole table's gradient. PLAN_NO_TENSOR: it needs no settling. */
PlanTensor plan_shared_settled(PlanRun *run, uint32_t parameter, PlanTensor gradient);

/* What was scattered was kept, and a block that is computed again copies in vain. */
void plan_shared_scatter_again(PlanRun *run, const PlanGraphOp *op);
/* But for what is cast before it is gathered: float8/ does that. */
void plan_shared_forward(PlanRun *run, const PlanGraphOp *op);
void plan_shared_backward(const PlanBackward *b);
