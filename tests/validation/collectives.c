#include "tests/validation/collectives.h"

#include <string.h>

/* Which file stands for which machine; the first that fits. */
static const struct {
    const char *hardware;
    uint32_t nodes_from;
    const char *cluster;
} machines[] = {
    {"A100 80GB (p4de", 2, "a100-p4de"},
    {"A100", 1, "a100-node"},
    {"H100 80GB (a3-megagpu", 2, "h100-a3"},
    {"H100 2 nodes", 2, NULL},                 /* network not stated */
    {"H100 80GB (p5.48xlarge, EKS)", 2, NULL}, /* half of p5's own figures: no GPUDirect */
    {"H100 80GB (p5", 2, "h100-p5"},
    {"H100", 1, "dgx-h100"},
    {"H200 (p5en", 2, NULL},
    /* three rows */ {"H200", 1, "h200-node"},
    {"B200 (p6", 2, "b200-p6"},
    {"B200", 1, "b200-node"},
};

static const char *cluster_of(const char *hardware, uint32_t nodes) {
    for (unsigned i = 0; i < G_N_ELEMENTS(machines); i++) {
        if (g_str_has_prefix(hardware, machines[i].hardware) && nodes >= machines[i].nodes_from) {
            return machines[i].cluster;
        }
    }
    return NULL;
}

/* Fields may stand in quotation marks and hold commas. */
static GPtrArray *split_line(const char *line) {
    GPtrArray *fields = g_ptr_array_new_with_free_func(g_free);
    GString *field = g_string_new(NULL);
    bool quoted = false;
    for (; *line; line++) {
        if (*line == '"') {
            quoted = !quoted;
        } else if (*line == ',' && !quoted) {
            g_ptr_array_add(fields, g_strdup(field->str));
            g_string_truncate(field, 0);
        } else {
            g_string_append_c(field, *line);
        }
    }
    g_ptr_array_add(fields, g_string_free(field, FALSE));
    return fields;
}

static PlanOpKind kind_of(const char *op) {
    return g_str_equal(op, "all_reduce")   ? PLAN_OP_ALL_REDUCE
           : g_str_equal(op, "all_gather") ? PLAN_OP_ALL_GATHER
                                           : PLAN_OP_REDUCE_SCATTER;
}

static void clear_row(gpointer data) {
    g_free(((CollectiveRow *)data)->hardware);
}

GArray *collective_rows_read(const char *path) {
    enum {
        HARDWARE = 2,
        NODES,
        GPUS,
        OP = 6,
        ALGO,
        BYTES,
        TIME
    };
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(CollectiveRow));
    g_array_set_clear_func(rows, clear_row);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines + 1; *line && **line; line++) {
        g_autoptr(GPtrArray) f = split_line(*line);
        CollectiveRow row = {.nodes = (uint32_t)atoi(f->pdata[NODES]),
                             .ranks = (uint32_t)atoi(f->pdata[GPUS]),
                             .kind = kind_of(f->pdata[OP]),
                             .bytes = g_ascii_strtod(f->pdata[BYTES], NULL),
                             .time_us = g_ascii_strtod(f->pdata[TIME], NULL)};
        row.cluster = cluster_of(f->pdata[HARDWARE], row.nodes);
        if (!row.cluster) {
            continue;
        }
        row.hardware = g_strdup(f->pdata[HARDWARE]);
        row.algo = g_str_has_prefix(f->pdata[ALGO], "Ring") ? SIM_NCCL_RING
                   : g_str_equal(f->pdata[ALGO], "NVLS")    ? SIM_NCCL_NVLS
                                                            : SIM_NCCL_N_ALGOS;
        row.held_out = g_str_hash(*line) % 3 == 0;
        g_array_append_val(rows, row);
    }
    return rows;
}

/* A plan whose shard axis is the row's group. */
static SimNetworkPath path_of(const CollectiveRow *row, const ModelCluster *cluster) {
    Plan plan = {.world = row->ranks};
    ModelCluster machine = *cluster;
    machine.topology_gpus_per_node = row->ranks / row->nodes;
    plan.axes[PLAN_AXIS_SHARD] = row->ranks;
    plan.axes[PLAN_AXIS_REPLICATE] = plan.axes[PLAN_AXIS_PART] = 1;
    return sim_network_path(&machine, &plan, PLAN_AXIS_SHARD);
}

SimNcclChoice collective_row_choice(const CollectiveRow *row, const ModelCluster *cluster) {
    SimNetworkPath path = path_of(row, cluster);
    return sim_nccl_choose(&path.group, row->kind, row->bytes, row->algo, SIM_NCCL_N_PROTOS);
}

double collective_row_predict(const CollectiveRow *row, const ModelCluster *cluster) {
    SimNetworkPath path = path_of(row, cluster);
    SimNcclChoice choice = collective_row_choice(row, cluster);
    SimNetworkCost cost = sim_network_measured(cluster, &path.group, &choice, row->bytes);
    return (cost.latency_ns + cost.transfer_ns) / 1e3;
}
