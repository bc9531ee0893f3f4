/* exec/host/ring.h - what ranks do that share sequences: attention of some rows to some keys, and
 * what merges it.
 */
#pragma once

#include "exec/host/launch.h"

void exec_ring_compute(const ExecTask *task); /* one of the RING_OPs of plan/op/ops.def */

/* Rotary tables of the positions of the rank's tokens. */
void exec_ring_tables(const ExecTask *task);
