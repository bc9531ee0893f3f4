/* exec/host/costs.h - what CPU ranks cost: lanes, segments and collectives, measured one by one.
 * Threads: the host's. */
#pragma once

#include "exec/costs.h"

/* Appends lines of exec/costs.h. */
bool exec_host_costs(const ExecCosts *costs, GError **error);
