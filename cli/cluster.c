#include "cli/cluster.h"

#include <string.h>

#include "cli/data-dir.h"
#include "plan/plan.h"
#include "sim/nccl.h"

enum {
    MOST_NODES = 1000000 /* as of [topology] nodes */
};

static ModelCluster *read_named(const char *name, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, name, error);
    return path != NULL ? model_cluster_read_file(path, error) : NULL;
}

/* What is behind the last colon, where that is nothing but a number; NULL: there is none. */
static const char *nodes_of(const char *name) {
    const char *colon = strrchr(name, ':');
    bool any = colon != NULL && colon != name && colon[1] != '\0';
    return any && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? colon + 1 : NULL;
}

/* As if the file said so, but that it has no line to name. */
static bool set_nodes(ModelCluster *cluster, const char *name, const char *text, GError **error) {
    uint64_t nodes;
    const char *wrong = NULL;
    if (!plan_parse_u64(text, &nodes) || nodes < 1 || nodes > MOST_NODES) {
        wrong = "give a number of nodes from 1 to 1000000";
    } else if (cluster->n_kinds > 0) {
        wrong = "its nodes are of several kinds, by number; change nodes in a copy of its file";
    } else if (nodes > 1 && cluster->inter_node_nic_gb_per_s <= 0) {
        wrong = "its file has no network between nodes; give it [inter_node] in a copy, or name a "
                "cluster that has one";
    }
    if (wrong != NULL) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "cluster %s: %s", name, wrong);
        return false;
    }
    char *own_name = cluster->name, *own_title = cluster->title;
    cluster->topology_nodes = nodes;
    cluster->name = g_strdup_printf("%s:%" G_GUINT64_FORMAT, own_name, (guint64)nodes);
    cluster->title = g_strdup_printf("%s; here with %" G_GUINT64_FORMAT " node%s", own_title,
                                     (guint64)nodes, nodes == 1 ? "" : "s");
    g_free(own_name);
    g_free(own_title);
    return true;
}

ModelCluster *cli_cluster_read(const char *name, GError **error) {
    const char *nodes = nodes_of(name);
    if (nodes == NULL || g_file_test(name, G_FILE_TEST_EXISTS)) {
        return read_named(name, error);
    }
    g_autofree char *file = g_strndup(name, (gsize)(nodes - 1 - name));
    g_autoptr(ModelCluster) cluster = read_named(file, error);
    return cluster != NULL && set_nodes(cluster, name, nodes, error) ? g_steal_pointer(&cluster)
                                                                     : NULL;
}

bool cli_cluster_check_nccl(const char *algo, const char *proto, GError **error) {
    const char *algos[SIM_NCCL_N_ALGOS + 1] = {NULL}, *protos[SIM_NCCL_N_PROTOS + 1] = {NULL};
    for (unsigned i = 0; i < SIM_NCCL_N_ALGOS; i++) {
        algos[i] = sim_nccl_algo_name((SimNcclAlgo)i);
    }
    for (unsigned i = 0; i < SIM_NCCL_N_PROTOS; i++) {
        protos[i] = sim_nccl_proto_name((SimNcclProto)i);
    }
    SimNcclAlgo known_algo;
    SimNcclProto known_proto;
    bool bad_algo = algo != NULL && !sim_nccl_algo_parse(algo, &known_algo);
    bool bad_proto = proto != NULL && !sim_nccl_proto_parse(proto, &known_proto);
    if (bad_algo || bad_proto) {
        g_autofree char *names = g_strjoinv(", ", (char **)(bad_algo ? algos : protos));
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "--nccl-%s is one of %s",
                    bad_algo ? "algo" : "proto", names);
    }
    return !bad_algo && !bad_proto;
}
