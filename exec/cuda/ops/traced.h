/* exec/cuda/ops/traced.h - ops of traced networks on a GPU: calls of ATen's ops, each by a kernel
 * of this program's or by several.
 *
 * A function for each name in exec/traced/calls.def: traced.c element by element, traced-rows.c
 * norms, softmax, sums, losses and tables, traced-products.c products and attention,
 * traced-windows.c convolutions, pools and batch norm, traced-places.c what is moved. What of these
 * a GPU does not do is in a table in traced.c.
 */
#pragma once

#include "exec/cuda/ops/launch.h"

/* The calls of a plan, each read from its text when an op first has it: to read one takes the host
 * longer than to launch it. Blocks that are alike share theirs. Threads: the host's. */
ExecCudaTraced *exec_cuda_traced_new(void);
void exec_cuda_traced_free(ExecCudaTraced *traced); /* NULL is fine */

bool exec_cuda_traced_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_cuda_traced_launch(const ExecTask *task, const ExecCudaLane *lane, GError **error);

/* What a pass of a traced network is given (exec/inputs.h). */
bool exec_cuda_fill_input(const ExecTask *task, const ExecCudaLane *lane, GError **error);
