/* models/cluster-private.h - what the reader of a cluster and that of its kinds of node share. */
#pragma once

#include "models/cluster.h"

bool model_cluster_is_kind(const char *section);   /* "nodes NAME" */
bool model_cluster_is_shared(const char *section); /* one for all nodes of a cluster */
/* Reads the [nodes NAME] sections of a cluster that is read otherwise. */
bool model_cluster_read_kinds(ModelCluster *cluster, const PlanIni *ini, ModelClusterFind find,
                              GError **error);
/* The cluster that an entry `like` names: a file beside, or what `find` has of that name. */
ModelCluster *model_cluster_read_like(const PlanIni *ini, const PlanIniEntry *entry,
                                      ModelClusterFind find, GError **error);
/* A trace knows a machine again by all that was read of it. */
void model_cluster_digest_too(ModelCluster *cluster, const ModelCluster *like);
/* The key nvlinks; and whether it goes together with the others. */
bool model_cluster_read_links(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                              GError **error);
bool model_cluster_check_links(const ModelCluster *cluster, const PlanIni *ini,
                               const PlanIniEntry *entry, GError **error);
/* All that is not shared, as another cluster has it. */
void model_cluster_take_machine(ModelCluster *cluster, const ModelCluster *other);
