/* cli/pace.h - the table of exec/pace.h: how long a cluster's network takes for each collective. */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* False with error: the cluster has no place for the plan's ranks. */
bool cli_pace_fits(const Plan *plan, const ModelCluster *cluster, GError **error);
bool cli_pace_write(const Plan *plan, const ModelCluster *cluster, const char *path,
                    GError **error);
