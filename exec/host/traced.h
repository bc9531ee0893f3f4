/* exec/host/traced.h - ops of traced networks on CPU ranks: calls of ATen's ops (traced/call.h),
 * each by a general kernel.
 *
 * A function for each name in traced/calls.def: traced-each.c element by element, traced-rows.c
 * norms, softmax, sums and losses, traced-products.c products and attention, traced-windows.c
 * convolutions, pools and batch norm, traced-places.c what is moved.
 */
#pragma once

#include "exec/task.h"

/* Before training: whether the op's call is known, and stays inside of its operands. */
bool exec_traced_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_traced_run(const ExecTask *t, GError **error);
