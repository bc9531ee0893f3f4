/* exec/host/costs.h - what CPU ranks cost: lanes, segments and collectives, measured one by one.
 * Threads: the host's. */
#pragma once

#include "exec/comm/comm.h"

/* Lines of exec/costs.h. NULL with error. */
GString *exec_host_costs(const ExecComm *comm, const char *between, GError **error);
