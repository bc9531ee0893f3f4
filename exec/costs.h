/* exec/costs.h - what the executor itself costs on this machine: for `foreshard calibrate`.
 *
 * Every rank measures at once, as every rank works at once; numbers are means over ranks.
 */
#pragma once

#include "exec/comm.h"

/* Lines "name us": of the host's calls, of a lane, of segments; and "COLLECTIVE bytes us". The
 * communicator's shard axis holds all ranks. NULL with error. */
GString *exec_costs_measure(const ExecComm *comm, GError **error);
