#include "cli/cluster.h"

#include "cli/data-dir.h"

ModelCluster *cli_cluster_read(const char *name, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, name, error);
    return path != NULL ? model_cluster_read_file(path, error) : NULL;
}
