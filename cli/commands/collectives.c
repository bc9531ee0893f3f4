/* cli/commands/collectives.c - how long collectives take on a cluster, and what NCCL would choose.
 */
#include <math.h>
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "models/cluster.h"
#include "sim/costs/network.h"
#include "trace/json.h"

static const double TABLE_BYTES = 64 << 20; /* where --bytes does not say */

static const struct {
    PlanOpKind kind;
    const char *name;
} kinds[] = {{PLAN_OP_ALL_GATHER, "all_gather"},
             {PLAN_OP_REDUCE_SCATTER, "reduce_scatter"},
             {PLAN_OP_ALL_REDUCE, "all_reduce"}};

static double time_us(const ModelCluster *cluster, const SimNetworkPath *path, PlanOpKind kind,
                      double bytes) {
    SimNetworkCost cost = sim_network_cost(cluster, path, kind, bytes);
    return (cost.latency_ns + cost.transfer_ns) / 1e3;
}

/* Whether NCCL weighs this at all. */
static bool is_weighed(const SimNcclGroup *group, SimNcclProto proto, const SimNcclTerms *terms) {
    return terms->gb_per_s > 0 && !group->barred[proto];
}

static const double LEAST_BYTES = 16384, MOST_BYTES = 4294967296, TIMES_AS_MANY = 4;

/* ---- for people ----------------------------------------------------------------------------- */

/* Its time, and where NCCL chooses what it chose; the last of a line has nothing behind it. */
static void print_time(const ModelCluster *cluster, const SimNetworkPath *path, unsigned k,
                       double bytes) {
    bool is_last = k + 1 == G_N_ELEMENTS(kinds);
    printf(" %10.1f", time_us(cluster, path, kinds[k].kind, bytes));
    if (path->nccl) {
        SimNcclChoice choice = sim_network_choice(cluster, path, kinds[k].kind, bytes);
        g_autofree char *by = g_strdup_printf("%s %s", sim_nccl_algo_name(choice.algo),
                                              sim_nccl_proto_name(choice.proto));
        printf(" %-*s", is_last ? 0 : 15, by);
    } else if (!is_last) {
        printf("%15s", "");
    }
}

static void print_times(const ModelCluster *cluster, const SimNetworkPath *path) {
    printf("%10s", "bytes");
    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autofree char *head =
            g_strdup_printf("   %s (us)%s", kinds[k].name, path->nccl ? ", by" : "");
        printf(" %*s", k + 1 < G_N_ELEMENTS(kinds) ? -26 : 0, head);
    }
    printf("\n");
    for (double bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= TIMES_AS_MANY) {
        printf("%10.0f", bytes);
        for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
            print_time(cluster, path, k, bytes);
        }
        printf("\n");
    }
}

/* Of a node whose GPUs have NVLinks to each other, without a switch. */
static void print_rings(const ModelCluster *cluster, const SimNetworkPath *path) {
    if (path->links == SIM_LINKS_NODE) {
        cli_say("no NVLinks join them all: a ring over PCIe, of %.3g GB/s\n",
                path->group.channel_gb_per_s);
    } else {
        cli_say("joined pair by pair: in a node they have %.3g of the %" G_GUINT64_FORMAT
                " rings that its links make, of %.3g GB/s each\n",
                path->node_channels, cluster->intra_node_nccl_channels,
                cluster->intra_node_nccl_channel_gb_per_s);
    }
}

/* All that NCCL weighs, as NCCL_DEBUG_SUBSYS=TUNING prints it: latency us / bandwidth GB/s. */
static void print_table(const SimNcclGroup *group, double bytes) {
    printf("\nNCCL's own expectation, latency us / bandwidth GB/s (1e9 bytes), of %.0f bytes\n",
           bytes);
    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        printf("%-16s", kinds[k].name);
        for (SimNcclProto p = 0; p < SIM_NCCL_N_PROTOS; p++) {
            printf("%22s", sim_nccl_proto_name(p));
        }
        printf("\n");
        for (SimNcclAlgo a = 0; a < SIM_NCCL_N_ALGOS; a++) {
            printf("  %-14s", sim_nccl_algo_name(a));
            for (SimNcclProto p = 0; p < SIM_NCCL_N_PROTOS; p++) {
                SimNcclTerms terms = sim_nccl_expect(group, kinds[k].kind, a, p, bytes);
                if (is_weighed(group, p, &terms)) {
                    printf("%13.1f /%7.1f", terms.latency_us, terms.gb_per_s);
                } else {
                    printf("%22s", "-");
                }
            }
            printf("\n");
        }
    }
}

/* ---- for programs --------------------------------------------------------------------------- */

/* name: of the collective, where a row has it, too; else NULL. */
static void add_times(JsonBuilder *json, const ModelCluster *cluster, const SimNetworkPath *path,
                      PlanOpKind kind, const char *name) {
    for (double bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= TIMES_AS_MANY) {
        json_builder_begin_object(json);
        if (name) {
            trace_json_add_text(json, "collective", name);
        }
        trace_json_add_number(json, "bytes", bytes);
        trace_json_add_real(json, "time_us", time_us(cluster, path, kind, bytes));
        if (path->nccl) {
            SimNcclChoice choice = sim_network_choice(cluster, path, kind, bytes);
            trace_json_add_text(json, "algo", sim_nccl_algo_name(choice.algo));
            trace_json_add_text(json, "proto", sim_nccl_proto_name(choice.proto));
        }
        json_builder_end_object(json);
    }
}

static void add_expected(JsonBuilder *json, const SimNcclGroup *group, PlanOpKind kind,
                         double bytes) {
    for (SimNcclAlgo a = 0; a < SIM_NCCL_N_ALGOS; a++) {
        for (SimNcclProto p = 0; p < SIM_NCCL_N_PROTOS; p++) {
            SimNcclTerms terms = sim_nccl_expect(group, kind, a, p, bytes);
            if (is_weighed(group, p, &terms)) {
                json_builder_begin_object(json);
                trace_json_add_text(json, "algo", sim_nccl_algo_name(a));
                trace_json_add_text(json, "proto", sim_nccl_proto_name(p));
                trace_json_add_real(json, "latency_us", terms.latency_us);
                trace_json_add_real(json, "gb_per_s", terms.gb_per_s);
                json_builder_end_object(json);
            }
        }
    }
}

/* table_bytes: 0 is no table. */
static void print_json(const ModelCluster *cluster, const SimNetworkPath *path,
                       double table_bytes) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "cluster", cluster->name);
    trace_json_add_int(json, "ranks", path->ranks);
    trace_json_add_int(json, "nodes", path->nodes);
    trace_json_add_int(json, "ranks_a_node", path->ranks_a_node);
    trace_json_begin_object(json, "times");
    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        trace_json_begin_array(json, kinds[k].name);
        add_times(json, cluster, path, kinds[k].kind, NULL);
        json_builder_end_array(json);
    }
    json_builder_end_object(json);
    if (table_bytes > 0 && path->nccl) {
        trace_json_begin_object(json, "expected");
        trace_json_add_number(json, "bytes", table_bytes);
        for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
            trace_json_begin_array(json, kinds[k].name);
            add_expected(json, &path->group, kinds[k].kind, table_bytes);
            json_builder_end_array(json);
        }
        json_builder_end_object(json);
    }
    json_builder_end_object(json);
    cli_output_print_json(json);
}

static void print_csv(const ModelCluster *cluster, const SimNetworkPath *path) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_begin_array(json, "rows");
    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        add_times(json, cluster, path, kinds[k].kind, kinds[k].name);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    cli_rows_print_csv(json, "rows");
}

/* ---- the command ---------------------------------------------------------------------------- */

typedef struct {
    char *cluster, *algo, *proto;
    int ranks, stride;
    double bytes; /* NAN: not given */
    gboolean table, json, csv;
} Options;

/* Transfer full; NULL: nothing is. */
static char *wrong_with(const Options *o, const ModelCluster *cluster) {
    uint64_t ranks = model_cluster_ranks(cluster);
    if (o->ranks < 2 || o->stride < 1) {
        return g_strdup("-n is 2 or more, and --stride 1 or more");
    }
    uint64_t wanted = (uint64_t)o->ranks * (uint64_t)o->stride;
    uint64_t a_node = cluster->topology_gpus_per_node;
    if (wanted > MIN(ranks, UINT32_MAX)) {
        return g_strdup_printf(
            "-n times --stride is more than the cluster has ranks, %" G_GUINT64_FORMAT
            "; name a larger one, or this one with more nodes (NAME:%" G_GUINT64_FORMAT ")",
            ranks, (wanted + a_node - 1) / a_node);
    }
    if (o->csv && (o->json || o->table)) {
        return g_strdup_printf("--csv is a form of its own, of the times alone; leave %s away",
                               o->json ? "--json" : "--table");
    }
    if (!isnan(o->bytes) && !o->table) {
        return g_strdup("--bytes is the size for --table; add that");
    }
    return o->bytes < 1 || o->bytes > 1e15 ? g_strdup("--bytes is a size from 1 to 1e15") : NULL;
}

static double table_bytes(const Options *o) {
    return isnan(o->bytes) ? TABLE_BYTES : o->bytes;
}

static void print_text(const ModelCluster *cluster, const SimNetworkPath *path, const Options *o) {
    cli_say("%s: %d ranks on %u node%s, %u of them on one\n", cluster->title, o->ranks, path->nodes,
            path->nodes == 1 ? "" : "s", path->ranks_a_node);
    if (cluster->has_nvlinks && path->nccl) {
        print_rings(cluster, path);
    }
    print_times(cluster, path);
    if (o->table && path->nccl) {
        print_table(&path->group, table_bytes(o));
    }
}

static int show(const Options *o) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = cli_cluster_read(o->cluster, &error);
    if (!cluster || !cli_cluster_check_nccl(o->algo, o->proto, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    cli_cluster_note(cluster);
    g_autofree char *wrong = wrong_with(o, cluster);
    if (wrong) {
        return cli_complain(CLI_BAD_INPUT, "%s", wrong);
    }
    if (!cli_cluster_force_nccl(cluster, o->algo, o->proto, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    SimNetworkPath path = sim_network_path_among(cluster, (uint32_t)o->ranks, (uint32_t)o->stride);
    if (o->json) {
        print_json(cluster, &path, o->table ? table_bytes(o) : 0);
    } else if (o->csv) {
        print_csv(cluster, &path);
    } else {
        print_text(cluster, &path, o);
    }
    return CLI_OK;
}

static const CliCommand command = {
    .words = "",
    .give = "options alone, as in: --cluster dgx-h100",
    .summary =
        "Predicts how long each collective takes alone on a cluster, by size of the whole tensor, "
        "and which algorithm and protocol NCCL would choose.",
    .examples = "Examples:\n"
                "  foreshard collectives --cluster dgx-h100 -n 64 --table\n"
                "  foreshard collectives --cluster a100-roce -n 64 --stride 8 --nccl-algo ring\n\n"
                "Exit status: 0 shown; 2 the cluster cannot be read, or a setting is refused.",
};

int cmd_collectives(int argc, char **argv) {
    Options o = {.ranks = 8, .stride = 1, .bytes = NAN};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &o.cluster, "the machine: " CLI_CLUSTER_NAMED,
         "C"},
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &o.ranks, "ranks of the group (default 8)", "N"},
        {"stride", 0, 0, G_OPTION_ARG_INT, &o.stride,
         "from one rank of the group to the next (default 1); 8 joins the first GPU of each node "
         "of 8",
         "N"},
        {"nccl-algo", 0, 0, G_OPTION_ARG_STRING, &o.algo,
         "force NCCL's algorithm, as NCCL_ALGO does", "NAME"},
        {"nccl-proto", 0, 0, G_OPTION_ARG_STRING, &o.proto,
         "force NCCL's protocol, as NCCL_PROTO does", "NAME"},
        {"table", 0, 0, G_OPTION_ARG_NONE, &o.table,
         "print every algorithm and protocol that NCCL weighs, for --bytes", NULL},
        {"bytes", 0, 0, G_OPTION_ARG_DOUBLE, &o.bytes,
         "size for --table (default 67108864, 64 MiB)", "BYTES"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &o.json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &o.csv, "print the times as CSV, a line each", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    return o.cluster ? show(&o) : cli_complain(CLI_BAD_INPUT, "%s", CLI_CLUSTER_LACKS);
}
