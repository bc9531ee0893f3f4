/* cli/choose/machines.h - the machines that are asked about: what an hour of each costs, and how
 * much of its memory is not to be used.
 */
#pragma once

#include "models/cluster.h"

/* Of ModelCluster, one a name. prices: "2.50" of all, "dgx-h100=2.50" of one; NULL: as their files
 * have it. spare_percent: of a GPU's memory, as though it were somebody else's. A budget asks for
 * the price of each. Transfer full. */
GPtrArray *cli_choose_machines(char **names, char **prices, double spare_percent, bool has_budget,
                               GError **error);
/* Whether an hour of each kind of its nodes has a price. */
bool cli_machine_is_priced(const ModelCluster *cluster);
