#include "cli/validate/rows-collectives.h"

#include <math.h>

const char *const cli_collective_columns[] = {"source",
                                              "source_ref",
                                              "measured_date",
                                              "hardware",
                                              "nodes",
                                              "gpus",
                                              "gpus_per_node",
                                              "concurrent_groups",
                                              "interconnect",
                                              "op",
                                              "algo",
                                              "dtype",
                                              "bytes",
                                              "time_us",
                                              "algbw_GBps",
                                              "busbw_GBps",
                                              "inplace_time_us",
                                              "inplace_busbw_GBps",
                                              "tool",
                                              "value_origin",
                                              "notes",
                                              NULL};

static const struct {
    const char *name;
    PlanOpKind kind;
} kinds[] = {{"all_reduce", PLAN_OP_ALL_REDUCE},
             {"all_gather", PLAN_OP_ALL_GATHER},
             {"reduce_scatter", PLAN_OP_REDUCE_SCATTER}};

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_kind(const CliCsv *csv, const CliCsvRow *row, PlanOpKind *ret_kind,
                      GError **error) {
    const char *op = cli_csv_text(csv, row, "op");
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_equal(op, kinds[i].name)) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    }
    return cli_csv_refuse(csv, row->line, error,
                          "op is '%s'; give all_reduce, all_gather or reduce_scatter, or a rule "
                          "that skips it",
                          op);
}

static bool read_numbers(const CliCsv *csv, const CliCsvRow *row, CliCollectiveRow *ret_row,
                         GError **error) {
    double nodes, gpus, bytes, time_us;
    if (!cli_csv_number(csv, row, "nodes", &nodes, error) ||
        !cli_csv_number(csv, row, "gpus", &gpus, error) ||
        !cli_csv_number(csv, row, "bytes", &bytes, error) ||
        !cli_csv_number(csv, row, "time_us", &time_us, error)) {
        return false;
    }
    if (!(nodes >= 1 && gpus >= 2 && gpus >= nodes && gpus < 1e6 && bytes > 0 && time_us > 0)) {
        return cli_csv_refuse(csv, row->line, error,
                              "a collective needs nodes, gpus (at least two, and one a node), "
                              "bytes and time_us above 0; give them");
    }
    ret_row->nodes = (uint32_t)nodes;
    ret_row->ranks = (uint32_t)gpus;
    ret_row->bytes = bytes;
    ret_row->time_us = time_us;
    return true;
}

static SimNcclAlgo algo_of(const GPtrArray *settings) {
    SimNcclAlgo algo = SIM_NCCL_N_ALGOS;
    const char *name = cli_rules_value(settings, "algo");
    return name && sim_nccl_algo_parse(name, &algo) ? algo : SIM_NCCL_N_ALGOS;
}

static bool read_row(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                     CliCollectiveRow *row, GError **error) {
    g_autoptr(GPtrArray) settings =
        cli_rules_apply(cli_published_rules(published), csv, csv_row, NULL);
    row->line = csv_row->line;
    row->skipped = cli_published_skip(settings);
    if (row->skipped) {
        return true;
    }
    row->cluster = cli_published_cluster(published, settings, error);
    if (!row->cluster || !read_kind(csv, csv_row, &row->kind, error) ||
        !read_numbers(csv, csv_row, row, error)) {
        return false;
    }
    row->algo = algo_of(settings);
    row->held_out = cli_published_held_out(csv_row);
    row->label = g_strdup_printf("%s of %.0f bytes", cli_csv_text(csv, csv_row, "op"), row->bytes);
    row->group = g_strdup_printf("%s, %u node%s", cli_csv_text(csv, csv_row, "hardware"),
                                 row->nodes, row->nodes > 1 ? "s" : "");
    return true;
}

static void clear_row(gpointer data) {
    CliCollectiveRow *row = data;
    g_free(row->label);
    g_free(row->group);
}

GArray *cli_collective_rows(const CliCsv *csv, CliPublished *published, GError **error) {
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(CliCollectiveRow));
    g_array_set_clear_func(rows, clear_row);
    for (unsigned i = 0; i < csv->n_rows; i++) {
        CliCollectiveRow row = {0};
        bool good = read_row(csv, &csv->rows[i], published, &row, error);
        g_array_append_val(rows, row);
        if (!good) {
            return NULL;
        }
    }
    return g_steal_pointer(&rows);
}

/* ---- predicting ----------------------------------------------------------------------------- */

/* A plan whose shard axis is the row's group. */
static SimNetworkPath path_of(const CliCollectiveRow *row, const ModelCluster *cluster) {
    Plan plan = {.world = row->ranks};
    ModelCluster machine = *cluster;
    machine.topology_gpus_per_node = row->ranks / row->nodes;
    plan.axes[PLAN_AXIS_SHARD] = row->ranks;
    plan.axes[PLAN_AXIS_REPLICATE] = plan.axes[PLAN_AXIS_PART] = 1;
    return sim_network_path(&machine, &plan, PLAN_AXIS_SHARD);
}

SimNcclChoice cli_collective_choice(const CliCollectiveRow *row, const ModelCluster *cluster) {
    SimNetworkPath path = path_of(row, cluster);
    return sim_nccl_choose(&path.group, row->kind, row->bytes, row->algo, SIM_NCCL_N_PROTOS);
}

double cli_collective_predict_us(const CliCollectiveRow *row, const ModelCluster *cluster) {
    SimNetworkPath path = path_of(row, cluster);
    SimNcclChoice choice = cli_collective_choice(row, cluster);
    SimNetworkCost cost = sim_network_measured(cluster, &path.group, &choice, row->bytes);
    return (cost.latency_ns + cost.transfer_ns) / 1e3;
}
