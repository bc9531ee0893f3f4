/* models/cluster-private.h - what reading a cluster is made of: its file (cluster-read.c), the keys
 * that there are (cluster-keys.c), what it is like (cluster-like.c), kinds of node
 * (cluster-kinds.c), NVLinks (cluster-links.c). */
#pragma once

#include <float.h>

#include "models/cluster.h"

#define MODEL_CLUSTER_REQUIRED (-DBL_MAX) /* as a number's fallback: the file must say it */

/* A row of cluster-keys.def: a number, and where it stands in a cluster. */
typedef struct {
    const char *section, *key, *help;
    double min, max, fallback;
    gsize offset;
    bool whole;
} ModelClusterKey;

extern const ModelClusterKey model_cluster_keys[];
extern const gsize model_cluster_n_keys;

/* NULL: there is none. */
const ModelClusterKey *model_cluster_find_key(const char *section, const char *key);
/* The whole number if it is one, else the real. */
void model_cluster_set_number(ModelCluster *cluster, const ModelClusterKey *row, double value,
                              uint64_t whole);
/* Of an entry that has no row, and of a SECTION.KEY likewise: an error that says what there is. */
bool model_cluster_refuse_key(const PlanIni *ini, const PlanIniEntry *entry, GError **error);
bool model_cluster_refuse_number(const char *name, const PlanIni *ini, const PlanIniEntry *entry,
                                 GError **error);

#define MODEL_CLUSTER_KIND "nodes " /* sections of a kind begin so: "nodes NAME" */
bool model_cluster_is_kind(const char *section);
bool model_cluster_is_shared(const char *section); /* one for all nodes of a cluster */
/* A file that is being read, and the one that is like it and has it read. */
typedef struct _ModelClusterReading ModelClusterReading;
struct _ModelClusterReading {
    const char *path;
    ModelClusterFind find;               /* NULL: names mean files beside alone */
    const ModelClusterReading *asked_by; /* NULL: it is read for itself */
};

ModelCluster *model_cluster_read_text(const char *text, gsize length,
                                      const ModelClusterReading *reading, GError **error);
/* Reads the [nodes NAME] sections of a cluster that is read otherwise. */
bool model_cluster_read_kinds(ModelCluster *cluster, const PlanIni *ini,
                              const ModelClusterReading *reading, GError **error);
/* The cluster that an entry `like` names: a file beside, or what `find` has of that name. */
ModelCluster *model_cluster_read_like(const PlanIni *ini, const PlanIniEntry *entry,
                                      const ModelClusterReading *reading, GError **error);
/* The text of that file. Transfer full. */
char *model_cluster_text_of_like(const PlanIni *ini, const PlanIniEntry *entry,
                                 const ModelClusterReading *reading, char **ret_path,
                                 gsize *ret_length, GError **error);
/* A trace knows a machine again by all that was read of it. */
void model_cluster_digest_too(ModelCluster *cluster, const ModelCluster *like);
/* The key nvlinks; and whether it goes together with the others. */
bool model_cluster_read_links(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                              GError **error);
bool model_cluster_check_links(const ModelCluster *cluster, const PlanIni *ini,
                               const PlanIniEntry *entry, GError **error);
/* Copies all numbers of another cluster, but not what a cluster's kinds of node share. */
void model_cluster_take_machine(ModelCluster *cluster, const ModelCluster *other);
