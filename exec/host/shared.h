/* exec/host/shared.h - what ranks do that share layers: lookups in a part of a table, and the loss
 * of logits of which each rank has some columns.
 */
#pragma once

#include "exec/host/launch.h"

/* One of the SHARE_OPs of plan/op/ops.def. False: an index outside its table. */
bool exec_shared_compute(const ExecTask *task);
