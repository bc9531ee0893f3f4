/* cli/source/cluster.h - a cluster by its name, or by the path of its file; and what of NCCL is
 * forced on it.
 */
#pragma once

#include "models/cluster.h"

/* What --cluster takes, for its help; and where there is none. */
#define CLI_CLUSTER_NAMED                                                                          \
    "a name (foreshard list clusters) or a file; NAME:NODES has another number of nodes, "         \
    "NAME:SECTION.KEY=VALUE another number of its file, or with =1.5x so many times it"
#define CLI_CLUSTER_LACKS                                                                          \
    "give a cluster, as in: --cluster a100-node (`foreshard list clusters` names them)"

/* name: "dgx-h100", "./mine.ini"; with ":64" behind it the same machine of 64 nodes, with
 * ":inter_node.nic_gb_per_s=100" that number of its file changed, with "=0.5x" to half of it, with
 * several of these all. Its name then has them too, as the numbers that they came to. */
ModelCluster *cli_cluster_read(const char *name, GError **error);
/* The file of one; what it says to be `like` may be a name. */
ModelCluster *cli_cluster_read_file(const char *path, GError **error);
/* Its text, to be edited: what others say that it is like is written out. Transfer full. */
char *cli_cluster_whole_text(const char *path, GError **error);
/* The same with that many nodes: "./mine.ini:2:host.record_us=1" with 16 of them is
 * "./mine.ini:16:host.record_us=1". Transfer full. */
char *cli_cluster_name_with_nodes(const char *name, uint64_t nodes);
/* One of these changes, without its colon. */
bool cli_cluster_change(ModelCluster *cluster, const char *change, GError **error);

/* " (with these GPUs: ...)": clusters with a network between nodes; "" for none. Transfer full. */
char *cli_cluster_networked_with(const char *model);
/* A note where several nodes are of a file that says only of one how collectives were measured. */
void cli_cluster_note(const ModelCluster *cluster);

/* Refuses a name for --nccl-algo or --nccl-proto that NCCL does not know. NULL: not given. */
bool cli_cluster_check_nccl(const char *algo, const char *proto, GError **error);
/* Forces what is not NULL; false where the cluster has no NCCL to be forced. */
bool cli_cluster_force_nccl(ModelCluster *cluster, const char *algo, const char *proto,
                            GError **error);
