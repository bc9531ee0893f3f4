#include "cli/source/cluster.h"

#include <string.h>

#include "cli/source/data-dir.h"
#include "plan/plan.h"
#include "sim/costs/nccl.h"

enum {
    MOST_NODES = 1000000 /* as of [topology] nodes */
};

static char *find_named(const char *name, GError **error) {
    return cli_data_find_named(CLI_DATA_CLUSTERS, name, error);
}

ModelCluster *cli_cluster_read_file(const char *path, GError **error) {
    return model_cluster_read_file_with(path, find_named, error);
}

char *cli_cluster_whole_text(const char *path, GError **error) {
    return model_cluster_whole_text(path, find_named, error);
}

static ModelCluster *read_named(const char *name, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, name, error);
    return path != NULL ? cli_cluster_read_file(path, error) : NULL;
}

/* "64", or "inter_node.nic_gb_per_s=100". */
static bool is_change(const char *text) {
    const char *equals = strchr(text, '=');
    if (equals == NULL) {
        return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    }
    /* Without a section it is none, and refused by the sections that have such a key. */
    gsize key = (gsize)(equals - text);
    return key > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz_.0123456789") == key;
}

/* How much of a name is ahead of the changes. */
static gsize length_of_file(const char *name) {
    g_autofree char *ahead = g_strdup(name);
    char *colon = strrchr(ahead, ':');
    while (colon != NULL && colon != ahead && is_change(colon + 1)) {
        *colon = '\0';
        colon = strrchr(ahead, ':');
    }
    return strlen(ahead);
}

char *cli_cluster_name_with_nodes(const char *name, uint64_t nodes) {
    gsize length = g_file_test(name, G_FILE_TEST_EXISTS) ? strlen(name) : length_of_file(name);
    GString *with = g_string_new_len(name, (gssize)length);
    g_string_append_printf(with, ":%" G_GUINT64_FORMAT, (guint64)nodes);
    g_auto(GStrv) changes = g_strsplit(name + length, ":", -1);
    for (char **change = changes; *change != NULL; change++) {
        if (strchr(*change, '=') != NULL) {
            g_string_append_printf(with, ":%s", *change);
        }
    }
    return g_string_free(with, FALSE);
}

static bool refuse(const ModelCluster *cluster, const char *wrong, GError **error) {
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "cluster %s: %s", cluster->name, wrong);
    return false;
}

char *cli_cluster_networked_with(const char *model) {
    g_auto(GStrv) names = cli_data_names(CLI_DATA_CLUSTERS);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(ModelCluster) other = read_named(names[i], NULL);
        if (other != NULL && other->inter_node_nic_gb_per_s > 0 &&
            g_str_equal(other->model, model)) {
            g_ptr_array_add(found, names[i]);
        }
    }
    g_ptr_array_add(found, NULL);
    g_autofree char *list = g_strjoinv(", ", (char **)found->pdata);
    return found->len > 1 ? g_strdup_printf(" (with these GPUs: %s)", list) : g_strdup("");
}

static bool refuse_alone(const ModelCluster *cluster, GError **error) {
    g_autofree char *others = cli_cluster_networked_with(cluster->model);
    g_autofree char *wrong =
        g_strdup_printf("its file has no network between nodes; give it "
                        "[inter_node] in a copy, or name a cluster that has one%s",
                        others);
    return refuse(cluster, wrong, error);
}

static bool set_nodes(ModelCluster *cluster, const char *text, GError **error) {
    uint64_t nodes;
    const char *wrong = NULL;
    if (!plan_parse_u64(text, &nodes) || nodes < 1 || nodes > MOST_NODES) {
        wrong = "give a number of nodes from 1 to 1000000";
    } else if (cluster->n_kinds > 0) {
        wrong = "its nodes are of several kinds, by number; change nodes in a copy of its file";
    } else if (nodes > 1 && cluster->inter_node_nic_gb_per_s <= 0) {
        return refuse_alone(cluster, error);
    }
    if (wrong != NULL) {
        return refuse(cluster, wrong, error);
    }
    cluster->topology_nodes = nodes;
    return true;
}

static bool set_number(ModelCluster *cluster, const char *key, const char *value, GError **error) {
    if (g_str_equal(key, "topology.nodes")) {
        return refuse(cluster,
                      "write :NODES behind its name (--knob ranks turns how many are used)", error);
    }
    if (cluster->n_kinds > 0) {
        return refuse(cluster, "its nodes are of several kinds; change a copy of its file", error);
    }
    g_autofree char *what = g_strdup_printf("cluster %s", cluster->name);
    const PlanIni ini = {.file_name = what};
    PlanIniEntry entry = {.section = "", .key = key, .value = value};
    g_autoptr(GPtrArray) entries = g_ptr_array_new();
    g_ptr_array_add(entries, &entry);
    return model_cluster_set(cluster, key, &ini, &entry, error) &&
           model_cluster_check_set(cluster, &ini, entries, error);
}

/* "0.5x" is half the file's number, and is said as that is. NULL: its file has none. Transfer
 * full. */
static char *as_number(const ModelCluster *cluster, const char *key, const char *value,
                       GError **error) {
    g_autofree char *times = g_strndup(value, strcspn(value, "x"));
    double factor, number;
    bool is_whole;
    if (!g_str_equal(value + strlen(times), "x") || !plan_parse_double(times, &factor) ||
        factor <= 0 || !model_cluster_number(cluster, key, &number, &is_whole)) {
        return g_strdup(value);
    }
    if (number == 0) {
        g_autofree char *wrong = g_strdup_printf(
            "its file has no %s of which %s could be; give the number itself", key, value);
        refuse(cluster, wrong, error);
        return NULL;
    }
    return g_strdup_printf(is_whole ? "%.0f" : "%.15g", factor * number);
}

/* Its name says what it is not as in its file, so that a trace that names it does. */
static void rename_changed(ModelCluster *cluster, const char *change, bool is_nodes) {
    static const char HERE[] = "; here with "; /* a file that is like another may say so, too */
    bool is_first = strstr(cluster->title, HERE) == NULL;
    char *own_name = cluster->name, *own_title = cluster->title;
    g_auto(GStrv) pair = g_strsplit(change, "=", 2);
    g_autofree char *number =
        is_nodes ? g_strdup(change) : model_cluster_number_text(pair[0], pair[1]);
    cluster->name = g_strdup_printf("%s:%s", own_name, change);
    cluster->title = g_strdup_printf("%s%s%s%s", own_title, is_first ? HERE : ", ", number,
                                     !is_nodes                  ? ""
                                     : g_str_equal(change, "1") ? " node"
                                                                : " nodes");
    g_free(own_name);
    g_free(own_title);
}

bool cli_cluster_change(ModelCluster *cluster, const char *change, GError **error) {
    g_auto(GStrv) pair = g_strsplit(change, "=", 2);
    if (pair[1] == NULL) {
        bool good = set_nodes(cluster, change, error);
        if (good) {
            rename_changed(cluster, change, true);
        }
        return good;
    }
    g_autofree char *value = as_number(cluster, pair[0], pair[1], error);
    bool good = value != NULL && set_number(cluster, pair[0], value, error);
    if (good) {
        g_autofree char *settled = g_strconcat(pair[0], "=", value, NULL);
        rename_changed(cluster, settled, false);
    }
    return good;
}

/* "dgx-h100:16nodes" names a cluster, and then says what cannot be done to it. */
static bool is_no_change(const char *name, GError **error) {
    g_auto(GStrv) parts = g_strsplit(name, ":", 2);
    g_autofree char *path =
        parts[0] && parts[1] ? cli_data_find(CLI_DATA_CLUSTERS, parts[0], NULL) : NULL;
    if (path != NULL) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "cluster %s: behind its name stand :NODES or :SECTION.KEY=VALUE, not ':%s'",
                    parts[0], parts[1]);
    }
    return path != NULL;
}

ModelCluster *cli_cluster_read(const char *name, GError **error) {
    gsize length = length_of_file(name);
    bool is_there = g_file_test(name, G_FILE_TEST_EXISTS);
    if (name[length] == '\0' || is_there) {
        return is_there || !is_no_change(name, error) ? read_named(name, error) : NULL;
    }
    g_autofree char *file = g_strndup(name, length);
    g_auto(GStrv) changes = g_strsplit(name + length + 1, ":", -1);
    g_autoptr(ModelCluster) cluster = read_named(file, error);
    guint n_counts = 0;
    for (guint i = 0; cluster != NULL && changes[i] != NULL; i++) {
        n_counts += strchr(changes[i], '=') == NULL;
        if (n_counts > 1) {
            refuse(cluster, "two numbers of nodes stand behind its name; give one", error);
            return NULL;
        }
        if (!cli_cluster_change(cluster, changes[i], error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&cluster);
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

bool cli_cluster_force_nccl(ModelCluster *cluster, const char *algo, const char *proto,
                            GError **error) {
    bool asked = algo != NULL || proto != NULL;
    if (asked && cluster->device_compute_capability == 0) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "--nccl-%s has no effect on %s, whose ranks do not use NCCL; leave it away",
                    algo != NULL ? "algo" : "proto", cluster->name);
        return false;
    }
    model_cluster_force_nccl(cluster, algo, proto);
    return true;
}
