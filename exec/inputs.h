/* exec/inputs.h - what a traced network is given in a pass: tensors of any dtype, one by one.
 *
 * They come from the safetensors file of --data, whose tensors are named 0, 1, ... in the order in
 * which the batch of the traced program made them, one row a sample, as they are stored; after the
 * last sample the first follows again. Without a file, numbers are normal, whole ones uniform below
 * their bound. Samples are dealt out by their number in the global batch. Threads: any.
 */
#pragma once

#include "exec/task.h"

/* Whether the op fills one: of a traced network, whose plan has calls. */
static inline bool exec_inputs_filled_by(const ExecContext *context, const PlanOp *op) {
    return op->kind == PLAN_OP_TRACED_INPUT ||
           (op->kind == PLAN_OP_BATCH && context->plan->n_calls > 0);
}

/* Whether the data have what such an op fills. */
bool exec_inputs_fit(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_inputs_fill(const ExecTask *t, GError **error);
