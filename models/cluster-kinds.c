/* models/cluster-kinds.c - nodes of a cluster that differ: sections [nodes NAME].
 *
 *     [nodes old]
 *     at = 2-3, 7           which of the nodes 0, 1, 2, ...
 *     like = v100-dgx       what that cluster's file says of the machine; or a file beside this one
 *     device.sms = 80       and any number of the machine by itself, as SECTION.KEY
 *
 * What is not said is as in the rest of the cluster. How many nodes there are and what lies between
 * them is one for all: the sections [topology], [inter_node] and [collectives] (but for a NIC).
 */
#include <string.h>

#include "models/cluster-private.h"

const ModelCluster *model_cluster_node(const ModelCluster *cluster, uint64_t node) {
    bool is_of_kind = cluster->n_kinds && node < cluster->topology_nodes;
    return model_cluster_kind(cluster, is_of_kind ? cluster->kind_of_node[node] : 0);
}

/* "3" or "2-5" */
static bool parse_range(const char *text, uint64_t *ret_first, uint64_t *ret_last) {
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    if (!ends[0] || !plan_parse_u64(g_strstrip(ends[0]), ret_first)) {
        return false;
    }
    *ret_last = *ret_first;
    return !ends[1] || (plan_parse_u64(g_strstrip(ends[1]), ret_last) && *ret_last >= *ret_first);
}

static bool read_at(ModelCluster *cluster, uint32_t kind, const PlanIni *ini,
                    const PlanIniEntry *entry, GError **error) {
    g_auto(GStrv) ranges = g_strsplit(entry->value, ",", -1);
    for (char **range = ranges; *range; range++) {
        uint64_t first, last;
        if (!parse_range(g_strstrip(*range), &first, &last)) {
            return plan_ini_refuse(ini, entry, error,
                                   "at = %s names no nodes; write them as 2-3, 7", entry->value);
        }
        if (last >= cluster->topology_nodes) {
            return plan_ini_refuse(ini, entry, error,
                                   "there is no node %" G_GUINT64_FORMAT
                                   ": the cluster has %" G_GUINT64_FORMAT ", counted from 0",
                                   last, cluster->topology_nodes);
        }
        for (uint64_t node = first; node <= last; node++) {
            if (cluster->kind_of_node[node]) {
                return plan_ini_refuse(ini, entry, error,
                                       "node %" G_GUINT64_FORMAT " is of two kinds; name it once",
                                       node);
            }
            cluster->kind_of_node[node] = kind;
        }
    }
    return true;
}

static bool take_like(ModelCluster *cluster, ModelCluster *kind, const PlanIni *ini,
                      const PlanIniEntry *entry, const ModelClusterReading *reading,
                      GError **error) {
    g_autoptr(ModelCluster) like = model_cluster_read_like(ini, entry, reading, error);
    if (like) {
        model_cluster_take_machine(kind, like);
        model_cluster_digest_too(cluster, like);
    }
    return like != NULL;
}

static bool read_number_of_kind(ModelCluster *kind, const PlanIni *ini, const PlanIniEntry *entry,
                                GError **error) {
    g_auto(GStrv) parts = g_strsplit(entry->key, ".", 2);
    if (parts[0] && model_cluster_is_shared(parts[0]) &&
        !g_str_equal(entry->key, "inter_node.nic_gb_per_s")) {
        return plan_ini_refuse(ini, entry, error,
                               "[%s] is one for all nodes; a kind of node has none of its own",
                               parts[0]);
    }
    return model_cluster_set(kind, entry->key, ini, entry, error);
}

/* The section's file first, whatever the order of lines: numbers are said to differ from it. */
static bool read_kind(ModelCluster *cluster, const char *section, const PlanIni *ini,
                      const ModelClusterReading *reading, GError **error) {
    ModelCluster *kind = cluster->kinds[cluster->n_kinds++];
    const PlanIniEntry *like = plan_ini_find(ini, section, "like");
    const PlanIniEntry *at = plan_ini_find(ini, section, "at");
    g_autoptr(GPtrArray) entries = g_ptr_array_new();
    g_free(kind->name);
    kind->name = g_strstrip(g_strdup(section + strlen(MODEL_CLUSTER_KIND)));
    if (like && !take_like(cluster, kind, ini, like, reading, error)) {
        return false;
    }
    for (unsigned i = 0; i < ini->n_entries; i++) {
        PlanIniEntry *entry = &ini->entries[i];
        if (!g_str_equal(entry->section, section)) {
            continue;
        }
        g_ptr_array_add(entries, entry);
        if (entry != like && entry != at && !read_number_of_kind(kind, ini, entry, error)) {
            return false;
        }
    }
    if (!at) {
        return plan_ini_refuse(ini, entries->pdata[entries->len - 1], error,
                               "section [%s] lacks the key at; say which nodes, as in at = 2-3",
                               section);
    }
    return read_at(cluster, cluster->n_kinds, ini, at, error) &&
           model_cluster_check_set(kind, ini, entries, error);
}

bool model_cluster_read_kinds(ModelCluster *cluster, const PlanIni *ini,
                              const ModelClusterReading *reading, GError **error) {
    g_autoptr(GPtrArray) sections = g_ptr_array_new();
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const char *section = ini->entries[i].section;
        if (model_cluster_is_kind(section) &&
            !g_ptr_array_find_with_equal_func(sections, section, g_str_equal, NULL)) {
            g_ptr_array_add(sections, (gpointer)section);
        }
    }
    if (!sections->len) {
        return true;
    }
    ModelCluster **kinds = g_new0(ModelCluster *, sections->len);
    for (guint i = 0; i < sections->len; i++) {
        kinds[i] = model_cluster_copy(cluster);
    }
    cluster->kinds = kinds;
    cluster->kind_of_node = g_new0(uint32_t, cluster->topology_nodes);
    bool read = true;
    for (guint i = 0; i < sections->len && read; i++) {
        read = read_kind(cluster, g_ptr_array_index(sections, i), ini, reading, error);
    }
    for (guint i = cluster->n_kinds; i < sections->len; i++) {
        model_cluster_free(kinds[i]);
    }
    return read;
}
