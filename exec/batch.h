/* exec/batch.h - the samples of a batch op, made or read on the host.
 *
 * Samples are dealt out by their number in the global batch, so a global batch is the same on any
 * number of ranks. Threads: any.
 */
#pragma once

#include "exec/task.h"

/* Whether the data file, if there is one, has the tokens of a batch; true of any other op. */
bool exec_batch_fits(const ExecContext *context, const PlanOp *op, GError **error);
/* x and y (no y: vectors) get the op's samples. False: the data file holds no such tokens. */
bool exec_batch_fill(const ExecTask *task, gpointer x, gpointer y, GError **error);
