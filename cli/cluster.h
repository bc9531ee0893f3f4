/* cli/cluster.h - a cluster by its name, or by the path of its file.
 */
#pragma once

#include "models/cluster.h"

ModelCluster *cli_cluster_read(const char *name, GError **error);
