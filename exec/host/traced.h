/* exec/host/traced.h - ops of traced networks on CPU ranks: calls of ATen's ops (traced/call.h),
 * each by a general kernel.
 *
 * To add an op: a row in the table of the file that has its like (traced-each.c element by element,
 * traced-rows.c norms, softmax, sums and losses, traced-products.c products and attention,
 * traced-windows.c convolutions and pooling, traced-places.c what is moved), and, where it leans on
 * sizes without looking, a rule in traced/shapes.c. What no row knows is refused by name, before
 * training.
 */
#pragma once

#include "exec/task.h"

/* Before training: whether the op's call is known, and stays inside of its operands. */
bool exec_traced_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_traced_run(const ExecTask *t, GError **error);
