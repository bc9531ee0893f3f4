/* exec/cuda/ops/traced.h - ops of traced networks on a GPU: calls of ATen's ops, each by a kernel
 * of this program's or by several.
 *
 * To add an op: a row in the table of the file that has its like (traced-rows.c norms, softmax,
 * sums, losses and tables, traced-products.c products and attention, traced-places.c what is moved,
 * traced-windows.c convolutions, pools and batch norm;
 * exec/traced/each.def element by element, for CPU ranks too), and where it leans on sizes a rule
 * in exec/traced/shapes.c. What no row knows is refused before training, by name.
 */
#pragma once

#include "exec/cuda/ops/launch.h"

bool exec_cuda_traced_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_cuda_traced_launch(const ExecTask *task, const ExecCudaLane *lane, GError **error);

/* What a pass of a traced network is given. */
bool exec_cuda_fills_input(const ExecContext *context, const PlanOp *op);
bool exec_cuda_fill_input(const ExecTask *task, const ExecCudaLane *lane, GError **error);
