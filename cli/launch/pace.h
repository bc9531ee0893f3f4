/* cli/launch/pace.h - the table of exec/pace.h: how long a cluster's network takes for each
 * collective, and how many channels NCCL has for it. */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* The cluster of that name or file; NULL with error when there is none, or it has no place for the
 * plan's ranks. */
ModelCluster *cli_pace_cluster(const char *name, const Plan *plan, GError **error);
bool cli_pace_write(const Plan *plan, const ModelCluster *cluster, const char *path,
                    GError **error);
