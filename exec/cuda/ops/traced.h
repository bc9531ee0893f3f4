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

bool exec_cuda_traced_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_cuda_traced_launch(const ExecTask *task, const ExecCudaLane *lane, GError **error);

/* What a pass of a traced network is given (exec/inputs.h). */
bool exec_cuda_fill_input(const ExecTask *task, const ExecCudaLane *lane, GError **error);
