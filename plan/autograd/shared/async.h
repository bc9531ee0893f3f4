/* plan/autograd/shared/async.h - asynchronous tensor parallel: what Inductor's micro-pipeline pass
 * (torch._inductor.config._micro_pipeline_tp, PyTorch 2.13) puts in place of collectives and the
 * products beside them, in compiled blocks of several sequences.
 *
 * A gather and the products that read what it gathers are one operator, and so are a product and
 * the scatter behind it; backward, a gather of a gradient and the product for dx. Each is cut in as
 * many parts as ranks: while one part is multiplied, on one of two lanes by turns, the next is
 * copied from another rank's symmetric memory. These operators are PyTorch's own Python
 * (torch/distributed/_symmetric_memory), which the recordings ran (tests/oracle/,
 * *-tensor-async-*).
 *
 * Parts are numbered in the order in which a rank comes to them, its own first; where they lie is
 * each rank's matter (plan_op_takes_parts()). PyTorch's lie one behind the other also where a
 * product makes them, and its compiler's kernels read the sequences out of that; here each part
 * lies in its sequences at once, which takes the same bytes.
 *
 * Inside autograd/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

/* The lane beside compute. */
extern const char *const plan_async_lanes[];

/* Whether the pass replaces this gather, or backward the gather of this scatter; and this scatter,
 * whose product waits for it. */
bool plan_async_gathers(PlanRun *run, const PlanGraphOp *op);
bool plan_async_scatters(PlanRun *run, const PlanGraphOp *op);

/* Defers a gather to the layers that read its result; the last of them launches it with all their
 * products. _gathered: its result, in the order in which copies arrive. _turned: the same in the
 * order of sequences, for backward. */
void plan_async_begin_gather(PlanRun *run, const PlanGraphOp *gather, PlanTensor own);
PlanTensor plan_async_gathered(PlanRun *run);
PlanTensor plan_async_reordered(PlanRun *run);
/* Defers a layer's product, if it reads a deferred gather or if its result is scattered next; in
 * the second case the product itself never exists, only the scattered sums. False: neither, and
 * nothing was done. */
bool plan_async_multiply(PlanRun *run, const PlanGraphOp *op, PlanTensor x,
                         PlanAsyncProduct product, PlanTensor *ret_made);
/* A linear layer in 16 bits, likewise. */
bool plan_async_linear(PlanRun *run, const PlanGraphOp *op);
/* This rank's part of the product that waits, summed up over the ranks. */
PlanTensor plan_async_scatter(PlanRun *run);

/* A gradient in 16 bits, gathered, and dx of the layer before the scatter, which that takes. */
PlanTensor plan_async_gather_gradient(const PlanBackward *b);
PlanTensor plan_async_take_dx(const PlanBackward *b); /* PLAN_NO_TENSOR: it was not made so */
/* In float8 what is gathered waits for the layer's cast weight. */
bool plan_async_awaits_dx(PlanRun *run);
void plan_async_make_dx(PlanRun *run, const PlanAsyncProduct *product);
