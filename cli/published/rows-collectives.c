#include "cli/published/rows-collectives.h"

#include <math.h>

#include "cli/published/train/link.h"

static const char *const table_columns[] = {"source",
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
static const char *const rule_settings[] = {"cluster", "algo", "skip", NULL};
const CliRuleWords cli_collective_words = {table_columns, rule_settings};

static const struct {
    const char
        *name; /* its letters alone: sources write all_gather, AllGather, allgather_into_tensor */
    PlanOpKind kind;
} kinds[] = {{"allreduce", PLAN_OP_ALL_REDUCE},
             {"allgather", PLAN_OP_ALL_GATHER},
             {"reducescatter", PLAN_OP_REDUCE_SCATTER},
             {"alltoall", PLAN_OP_ALL_TO_ALL},
             {"sendrecv", PLAN_OP_PASS_ON}}; /* as NCCL's test of that name: around a ring */

/* ---- reading -------------------------------------------------------------------------------- */

/* Takes a constant; the row is skipped for it. Returns true: no error of the table's. */
static bool skip(CliCollectiveRow *row, const char *why) {
    row->skipped = why;
    return true;
}

static bool read_kind(const CliCsv *csv, const CliCsvRow *csv_row, CliCollectiveRow *row) {
    g_autoptr(GString) letters = g_string_new(NULL);
    for (const char *at = cli_csv_text(csv, csv_row, "op"); *at; at++) {
        if (g_ascii_isalpha(*at)) {
            g_string_append_c(letters, g_ascii_tolower(*at));
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_has_prefix(letters->str, kinds[i].name)) {
            row->kind = kinds[i].kind;
            return true;
        }
    }
    return skip(row, "not a collective of our plans");
}

/* NCCL's tests give either bandwidth instead of a time; busbw is algbw times what a rank sends. */
static double time_of(const CliCollectiveRow *row, double algbw, double busbw) {
    double sent = plan_op_sent(row->kind, row->ranks);
    return row->bytes / (algbw > 0 ? algbw : busbw / sent) / 1e3;
}

/* Where NVLink joins the hosts of a rack, a node is what it joins, whatever the table calls one. */
static double nodes_of(const CliCollectiveRow *row, double said, double gpus, double a_node) {
    if (row->cluster->intra_node_beyond_host) {
        return ceil(gpus / (double)row->cluster->topology_gpus_per_node);
    }
    return isnan(said) ? ceil(gpus / a_node) : said;
}

/* Each GPU then has a link of its own, and groups beside each other share nothing. */
static bool has_switch(const ModelCluster *cluster) {
    return cluster->intra_node_ll128 && !cluster->has_nvlinks;
}

static bool read_numbers(const CliCsv *csv, const CliCsvRow *csv_row, CliCollectiveRow *row,
                         GError **error) {
    static const char *const columns[] = {
        "nodes",   "gpus",       "gpus_per_node", "bytes",
        "time_us", "algbw_GBps", "busbw_GBps",    "concurrent_groups"};
    enum {
        NODES,
        GPUS,
        A_NODE,
        BYTES,
        TIME,
        ALGBW,
        BUSBW,
        GROUPS,
        N_NUMBERS
    };
    double n[N_NUMBERS];
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        if (!cli_csv_number(csv, csv_row, columns[i], &n[i], error)) {
            return false;
        }
    }
    double nodes = nodes_of(row, n[NODES], n[GPUS], n[A_NODE]);
    if (n[GROUPS] > 1 && (nodes > 1 || !has_switch(row->cluster))) {
        return skip(row, "several groups at once, which share links");
    }
    if (!(n[GPUS] >= 2 && n[GPUS] < 1e6 && n[BYTES] > 0)) {
        return skip(row, "the source does not say bytes, or of at least two GPUs");
    }
    if (!(nodes >= 1 && nodes <= n[GPUS])) {
        return skip(row, "the source does not say how many nodes");
    }
    row->nodes = (uint32_t)nodes;
    row->ranks = (uint32_t)n[GPUS];
    row->bytes = n[BYTES];
    row->nic_gb_per_s =
        cli_train_link_gb_per_s(cli_csv_text(csv, csv_row, "interconnect"), n[GPUS] / nodes);
    row->time_us = n[TIME] > 0 ? n[TIME] : time_of(row, n[ALGBW], n[BUSBW]);
    return row->time_us > 0 || skip(row, "neither a time nor a bandwidth is given");
}

/* NCCL's choice where no rule says. */
static bool read_algo(const CliPublished *published, const GPtrArray *given, SimNcclAlgo *ret_algo,
                      GError **error) {
    const PlanIniEntry *entry = cli_rules_entry(given, "algo");
    *ret_algo = SIM_NCCL_N_ALGOS;
    return !entry || sim_nccl_algo_parse(entry->value, ret_algo) ||
           plan_ini_refuse(cli_published_rules(published)->ini, entry, error,
                           "algo = %s is none of NCCL's; give ring, tree, nvls, nvlstree or pat",
                           entry->value);
}

static bool read_row(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                     CliCollectiveRow *row, GError **error) {
    g_autoptr(GPtrArray) settings =
        cli_rules_apply(cli_published_rules(published), csv, csv_row, NULL, 0);
    row->line = csv_row->line;
    row->skipped = cli_published_skip(settings);
    if (row->skipped) {
        return true;
    }
    row->cluster = cli_published_cluster(published, settings, error);
    if (!row->cluster || !read_algo(published, settings, &row->algo, error) ||
        !read_kind(csv, csv_row, row) || !read_numbers(csv, csv_row, row, error)) {
        return false;
    }
    if (!row->skipped && row->nodes > 1 &&
        !(row->nic_gb_per_s > 0 || row->cluster->inter_node_nic_gb_per_s > 0)) {
        return skip(row, "no cluster file of this hardware has a network");
    }
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

/* Ranks fill the row's nodes evenly, whatever nodes the cluster has. */
static SimNetworkPath path_of(const CliCollectiveRow *row, const ModelCluster *cluster) {
    ModelCluster machine = *cluster;
    machine.topology_gpus_per_node = row->ranks / row->nodes;
    if (row->nic_gb_per_s > 0) {
        machine.inter_node_nic_gb_per_s = row->nic_gb_per_s;
    }
    return sim_network_path_among(&machine, row->ranks, 1);
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
