/* NCCL's choice against figures worked out by hand from its source, and what we make of it against
 * published measurements that fitting has not seen. */
#include <math.h>
#include <string.h>

#include "cli/published/rows-collectives.h"
#include "cli/source/data-dir.h"
#include "sim/costs/sharing.h"
#include "trace/quantile.h"

/* ---- NCCL's own numbers --------------------------------------------------------------------- */

static SimNcclGroup hoppers(uint32_t ranks, uint32_t nodes) {
    bool far = nodes > 1;
    return (SimNcclGroup){.generation = SIM_NCCL_HOPPER,
                          .ranks = ranks,
                          .nodes = nodes,
                          .ranks_a_node = ranks / nodes,
                          .least_a_node = ranks / nodes,
                          .channels = far ? 8 : 12,
                          .channel_gb_per_s = far ? 48 : 30,
                          .near_gb_per_s = 360,
                          .nvls_heads = 8,
                          .nvls_head_gb_per_s = 40};
}

/* Latency and bandwidth of ring LL, LL128 and Simple, and of NVLS or the NVLS tree; arithmetic on
 * the constants of src/graph/tuning.cc, done apart from this code. */
static void expectations(void) {
    static const struct {
        PlanOpKind kind;
        uint32_t ranks, nodes;
        double latency[4], gb_per_s[4];
    } cases[] = {
        {PLAN_OP_ALL_GATHER, 8, 1, {10.8, 27.3, 32.2, 25}, {161, 379, 411, 208}},
        {PLAN_OP_REDUCE_SCATTER, 8, 1, {10.8, 27.3, 32.2, 25}, {161, 379, 411, 208}},
        {PLAN_OP_ALL_REDUCE, 8, 1, {15, 40.6, 56, 25}, {81, 189, 206, 272}},
        {PLAN_OP_ALL_GATHER, 4, 1, {8.4, 19.7, 18.6, 0}, {188, 442, 480, 0}},
        {PLAN_OP_ALL_GATHER, 2, 1, {7.2, 15.9, 11.8, 0}, {282, 662, 720, 0}},
        {PLAN_OP_ALL_GATHER, 16, 2, {23.3, 44.6, 70, 0}, {42, 313, 410, 0}},
        {PLAN_OP_ALL_GATHER, 64, 8, {81.5, 148, 297, 0}, {21, 298, 390, 0}},
        {PLAN_OP_ALL_REDUCE, 16, 2, {0, 0, 0, 66.8}, {0, 0, 0, 246}},
        /* To the next rank: one step, of its own; to the next node by one of eight NICs. */
        {PLAN_OP_PASS_ON, 8, 1, {7.2, 15.9, 11.8, 0}, {141, 331, 360, 0}},
        {PLAN_OP_PASS_ON, 16, 2, {9.3, 18, 22.4, 0}, {24, 36.7, 48, 0}},
        /* To all at once, seven eighths over NVLink; half of it by each GPU's own NIC. */
        {PLAN_OP_ALL_TO_ALL, 8, 1, {0, 0, 11.8, 0}, {0, 0, 411, 0}},
        {PLAN_OP_ALL_TO_ALL, 16, 2, {0, 0, 22.4, 0}, {0, 0, 96, 0}},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimNcclGroup group = hoppers(cases[i].ranks, cases[i].nodes);
        for (unsigned j = 0; j < 4; j++) {
            SimNcclAlgo algo = j < 3              ? SIM_NCCL_RING
                               : group.nodes == 1 ? SIM_NCCL_NVLS
                                                  : SIM_NCCL_NVLS_TREE;
            SimNcclTerms terms = sim_nccl_expect(&group, cases[i].kind, algo,
                                                 j < 3 ? (SimNcclProto)j : SIM_NCCL_SIMPLE, 64);
            if (cases[i].gb_per_s[j] > 0) {
                g_assert_cmpfloat(fabs(terms.latency_us - cases[i].latency[j]), <, 0.51);
                g_assert_cmpfloat(fabs(terms.gb_per_s - cases[i].gb_per_s[j]), <, 0.51);
            }
        }
    }
}

static SimNcclTerms terms_of(const SimNcclGroup *group, PlanOpKind kind, SimNcclAlgo algo,
                             SimNcclProto proto) {
    return sim_nccl_expect(group, kind, algo, proto, 1 << 30);
}

static void assert_near(double value, double expected) {
    g_assert_cmpfloat(fabs(value - expected), <, 0.05);
}

/* Eight nodes of one rank each: seven steps, which take the network as a tree does; before NCCL
 * 2.23 as a ring, and there was no PAT. */
static void one_rank_a_node(void) {
    SimNcclGroup group = hoppers(8, 8), old = hoppers(8, 8);
    old.before_2_23 = true;
    const PlanOpKind gather = PLAN_OP_ALL_GATHER;
    assert_near(terms_of(&group, gather, SIM_NCCL_RING, SIM_NCCL_LL).latency_us, 41.6);
    assert_near(terms_of(&group, gather, SIM_NCCL_RING, SIM_NCCL_LL128).latency_us, 73.5);
    assert_near(terms_of(&group, gather, SIM_NCCL_RING, SIM_NCCL_SIMPLE).latency_us, 106.4);
    assert_near(terms_of(&group, gather, SIM_NCCL_PAT, SIM_NCCL_SIMPLE).latency_us, 42.4);
    assert_near(terms_of(&old, gather, SIM_NCCL_RING, SIM_NCCL_LL).latency_us, 25.5);
    assert_near(terms_of(&old, gather, SIM_NCCL_RING, SIM_NCCL_LL128).latency_us, 42);
    g_assert_cmpfloat(terms_of(&old, gather, SIM_NCCL_PAT, SIM_NCCL_SIMPLE).gb_per_s, ==, 0);
    SimNcclGroup two_each = hoppers(16, 8);
    assert_near(terms_of(&two_each, gather, SIM_NCCL_RING, SIM_NCCL_LL).latency_us, 33.5);
}

static void steps_over_pcie(void) {
    SimNcclGroup group = hoppers(4, 1);
    group.pcie = true;
    const PlanOpKind gather = PLAN_OP_ALL_GATHER;
    assert_near(terms_of(&group, gather, SIM_NCCL_RING, SIM_NCCL_LL).latency_us, 9.6);
    assert_near(terms_of(&group, gather, SIM_NCCL_RING, SIM_NCCL_SIMPLE).latency_us, 25.5);
    assert_near(terms_of(&group, PLAN_OP_ALL_REDUCE, SIM_NCCL_TREE, SIM_NCCL_LL).latency_us, 12.8);
}

/* Nodes of eight A100 with 48 GB/s between: two trees a node see as much of it as the links in the
 * node let them, up to twice; three see it once. */
static void trees_between_two_nodes(void) {
    static const struct {
        uint32_t nodes;
        double near, gb_per_s;
    } cases[] = {{2, 240, 44.2}, {2, 60, 27.6}, {2, 40, 22.1}, {3, 240, 22.1}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimNcclGroup group = hoppers(8 * cases[i].nodes, cases[i].nodes);
        group.generation = SIM_NCCL_AMPERE;
        group.channel_gb_per_s = 6;
        group.near_gb_per_s = cases[i].near;
        SimNcclTerms tree = terms_of(&group, PLAN_OP_ALL_REDUCE, SIM_NCCL_TREE, SIM_NCCL_SIMPLE);
        assert_near(tree.gb_per_s, cases[i].gb_per_s);
    }
}

/* The switch adds for three GPUs of a node and more; it gathers for 32 and fewer. */
static void how_many_the_switch_serves(void) {
    static const struct {
        PlanOpKind kind;
        uint32_t ranks;
        bool allowed;
    } cases[] = {
        {PLAN_OP_ALL_REDUCE, 2, false},      {PLAN_OP_ALL_REDUCE, 3, true},
        {PLAN_OP_ALL_REDUCE, 72, true},      {PLAN_OP_ALL_GATHER, 2, false},
        {PLAN_OP_ALL_GATHER, 32, true},      {PLAN_OP_ALL_GATHER, 33, false},
        {PLAN_OP_REDUCE_SCATTER, 33, false},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimNcclGroup group = hoppers(cases[i].ranks, 1);
        SimNcclTerms nvls = terms_of(&group, cases[i].kind, SIM_NCCL_NVLS, SIM_NCCL_SIMPLE);
        g_assert_cmpint(nvls.gb_per_s > 0, ==, cases[i].allowed);
    }
    SimNcclGroup pairs = hoppers(4, 2), threes = hoppers(6, 2);
    const PlanOpKind reduce = PLAN_OP_ALL_REDUCE;
    g_assert_cmpfloat(terms_of(&pairs, reduce, SIM_NCCL_NVLS_TREE, SIM_NCCL_SIMPLE).gb_per_s, ==,
                      0);
    g_assert_cmpfloat(terms_of(&threes, reduce, SIM_NCCL_NVLS_TREE, SIM_NCCL_SIMPLE).gb_per_s, >,
                      0);
}

/* Hand-overs as the size grows, to the power of two above. */
static void choices(void) {
    static const struct {
        PlanOpKind kind;
        uint32_t ranks, nodes;
        double mib;
        const char *expected;
    } cases[] = {
        {PLAN_OP_ALL_GATHER, 8, 1, 4, "ring ll"},
        {PLAN_OP_ALL_GATHER, 8, 1, 8, "ring ll128"},
        {PLAN_OP_ALL_GATHER, 8, 1, 32, "ring simple"},
        {PLAN_OP_ALL_REDUCE, 8, 1, 1, "ring ll"},
        {PLAN_OP_ALL_REDUCE, 8, 1, 2, "nvls simple"},
        {PLAN_OP_ALL_GATHER, 4, 1, 2, "ring ll"},
        {PLAN_OP_ALL_GATHER, 4, 1, 4, "ring simple"},
        {PLAN_OP_ALL_GATHER, 16, 2, 1, "ring ll128"},
        {PLAN_OP_ALL_GATHER, 16, 2, 64, "ring simple"},
        {PLAN_OP_ALL_GATHER, 64, 8, 256, "ring simple"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimNcclGroup group = hoppers(cases[i].ranks, cases[i].nodes);
        if (group.ranks < 8) {
            group.nvls_heads = 0;
        }
        SimNcclChoice c = sim_nccl_choose(&group, cases[i].kind, cases[i].mib * 1048576,
                                          SIM_NCCL_N_ALGOS, SIM_NCCL_N_PROTOS);
        g_autofree char *name =
            g_strdup_printf("%s %s", sim_nccl_algo_name(c.algo), sim_nccl_proto_name(c.proto));
        g_assert_cmpstr(name, ==, cases[i].expected);
    }
    SimNcclGroup group = hoppers(8, 1);
    SimNcclChoice forced =
        sim_nccl_choose(&group, PLAN_OP_ALL_REDUCE, 1 << 26, SIM_NCCL_TREE, SIM_NCCL_LL128);
    g_assert_cmpint(forced.algo, ==, SIM_NCCL_TREE);
    g_assert_cmpint(forced.proto, ==, SIM_NCCL_LL128);
    forced = sim_nccl_choose(&group, PLAN_OP_ALL_GATHER, 1 << 26, SIM_NCCL_TREE, SIM_NCCL_N_PROTOS);
    g_assert_cmpint(forced.algo, ==, SIM_NCCL_RING); /* no tree gathers */
}

static const char *chosen(const SimNcclGroup *group, SimNcclProto forced) {
    return sim_nccl_proto_name(
        sim_nccl_choose(group, PLAN_OP_ALL_GATHER, 1 << 20, SIM_NCCL_N_ALGOS, forced).proto);
}

static void barred_protocols(void) {
    SimNcclGroup group = hoppers(16, 2);
    g_assert_cmpstr(chosen(&group, SIM_NCCL_N_PROTOS), ==, "ll128");
    group.barred[SIM_NCCL_LL128] = true;
    g_assert_cmpstr(chosen(&group, SIM_NCCL_N_PROTOS), ==, "ll");
    group.barred[SIM_NCCL_LL] = true;
    g_assert_cmpstr(chosen(&group, SIM_NCCL_N_PROTOS), ==, "simple");
    g_assert_cmpstr(chosen(&group, SIM_NCCL_LL128), ==, "ll128"); /* NCCL_PROTO lifts the bar */
}

/* What bars LL128 on a cluster: PCIe bars it wherever two ranks share a node, a network that
 * reorders wherever ranks do not. */
static void barred_by_cluster(void) {
    ModelCluster cluster = {.device_compute_capability = 80,
                            .topology_nodes = 4,
                            .topology_gpus_per_node = 2,
                            .intra_node_nccl_channels = 1,
                            .intra_node_nccl_channel_gb_per_s = 20,
                            .inter_node_nic_gb_per_s = 10,
                            .inter_node_ll = 1};
    static const struct {
        uint64_t near, far;
        bool in_a_node, across, one_a_node;
    } cases[] = {{1, 1, false, false, false}, {0, 1, true, true, false}, {1, 0, false, true, true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        cluster.intra_node_ll128 = cases[i].near;
        cluster.inter_node_ll128 = cases[i].far;
        Plan plan = {
            .world = 8,
            .axes = {[PLAN_AXIS_SHARD] = 2, [PLAN_AXIS_REPLICATE] = 4, [PLAN_AXIS_TENSOR] = 1}};
        SimNetworkPath in_a_node = sim_network_path(&cluster, &plan, PLAN_AXIS_SHARD);
        SimNetworkPath one_a_node = sim_network_path(&cluster, &plan, PLAN_AXIS_REPLICATE);
        plan.axes[PLAN_AXIS_SHARD] = 8;
        SimNetworkPath across = sim_network_path(&cluster, &plan, PLAN_AXIS_SHARD);
        g_assert_cmpint(in_a_node.group.barred[SIM_NCCL_LL128], ==, cases[i].in_a_node);
        g_assert_cmpint(across.group.barred[SIM_NCCL_LL128], ==, cases[i].across);
        g_assert_cmpint(one_a_node.group.barred[SIM_NCCL_LL128], ==, cases[i].one_a_node);
        g_assert_false(across.group.barred[SIM_NCCL_LL]);
    }
}

/* ---- published tables ------------------------------------------------------------------------ */

static CliPublished *open_tables(void) {
    g_autoptr(GError) error = NULL;
    CliPublished *tables = cli_published_open("collectives", &cli_collective_words, &error);
    g_assert_no_error(error);
    return tables;
}

static GArray *read_rows(CliPublished *tables) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliCsv) csv = cli_csv_read(g_getenv("FORESHARD_TEST_COLLECTIVES"), &error);
    g_assert_no_error(error);
    GArray *rows = cli_collective_rows(csv, tables, &error);
    g_assert_no_error(error);
    return rows;
}

/* ---- without a switch ----------------------------------------------------------------------- */

static SimNetworkPath near_path(const ModelCluster *cluster, uint32_t stride, uint32_t ranks,
                                uint32_t first) {
    Plan plan = {.world = stride * ranks, .axes = {1, ranks, stride, 1, 1}};
    return sim_network_path_of(cluster, &plan, PLAN_AXIS_REPLICATE, first);
}

/* Four GPUs, joined pair by pair by a third of their links each: two have four of twelve rings and
 * share no link with two others; what takes all four shares with all. */
static void pairs_of_four(void) {
    ModelCluster cluster = {.device_compute_capability = 90,
                            .topology_nodes = 2,
                            .topology_gpus_per_node = 4,
                            .intra_node_nccl_channels = 12,
                            .intra_node_nccl_channel_gb_per_s = 30,
                            .intra_node_ll128 = 1,
                            .inter_node_nic_gb_per_s = 50,
                            .inter_node_ll = 1,
                            .inter_node_ll128 = 1,
                            .has_nvlinks = true};
    for (unsigned a = 0; a < 4; a++) {
        for (unsigned b = 0; b < 4; b++) {
            cluster.nvlinks[a][b] = a == b ? 0 : 6;
        }
    }
    SimNetworkPath neighbours = near_path(&cluster, 1, 2, 0), apart = near_path(&cluster, 2, 2, 0);
    SimNetworkPath other = near_path(&cluster, 2, 2, 1), all = near_path(&cluster, 1, 4, 0);
    SimNetworkPath nodes = near_path(&cluster, 4, 2, 0);
    g_assert_cmpfloat(fabs(neighbours.group.channels - 4), <, 1e-9);
    g_assert_cmpfloat(fabs(apart.group.channels - 4), <, 1e-9);
    g_assert_cmpfloat(fabs(all.group.channels - 12), <, 1e-9);
    g_assert_cmpfloat(nodes.group.channels * nodes.group.channel_gb_per_s, ==, 50);
    g_assert_cmpuint(sim_collective_channels(&neighbours), ==, 8);
    g_assert_cmpuint(neighbours.links & apart.links, ==, 0);
    g_assert_cmpuint(other.links & apart.links, ==, 0);
    g_assert_cmpuint(all.links & apart.links, ==, apart.links);
    g_assert_cmpuint(nodes.links, ==, SIM_LINKS_NETWORK);
    SimNcclTerms nvls =
        sim_nccl_expect(&all.group, PLAN_OP_ALL_REDUCE, SIM_NCCL_NVLS, SIM_NCCL_SIMPLE, 1e8);
    g_assert_cmpfloat(nvls.gb_per_s, ==, 0); /* the switch adds, and there is none */
    /* Bridges in pairs: two have all of their links, four go over PCIe, where LL128 is barred. */
    memset(cluster.nvlinks, 0, sizeof cluster.nvlinks);
    cluster.nvlinks[0][1] = cluster.nvlinks[1][0] = 12;
    cluster.nvlinks[2][3] = cluster.nvlinks[3][2] = 12;
    cluster.intra_node_pcie_gb_per_s = 20;
    neighbours = near_path(&cluster, 1, 2, 0);
    all = near_path(&cluster, 1, 4, 0);
    g_assert_cmpfloat(neighbours.group.channels, ==, 12);
    g_assert_false(neighbours.group.barred[SIM_NCCL_LL128]);
    g_assert_cmpfloat(all.group.channels * all.group.channel_gb_per_s, ==, 20);
    g_assert_true(all.group.barred[SIM_NCCL_LL128]);
    g_assert_cmpuint(all.links, ==, SIM_LINKS_NODE);
}

/* The rate of the largest all-reduce of each number of GPUs of a DGX-1, over what the rings of its
 * cube mesh make of links of 22 to 23 GB/s: equal, but of five GPUs, one of which has a single
 * neighbour that passes on what is not its own (NCCL's path by another GPU), a fifth more. */
static void rings_of_the_cube_mesh(void) {
    g_autoptr(CliPublished) tables = open_tables();
    g_autoptr(GArray) rows = read_rows(tables);
    double busiest[9] = {0};
    for (guint i = 0; i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        if (!row->skipped && g_str_equal(row->cluster->name, "v100-dgx")) {
            double rate = row->bytes / row->time_us / 1e3 * 2 * (row->ranks - 1) / row->ranks;
            busiest[row->ranks] = fmax(busiest[row->ranks], rate);
            g_assert_cmpuint(row->ranks, <=, 8);
            double rings = 6 * model_cluster_links_share(row->cluster, (1u << row->ranks) - 1);
            g_assert_cmpfloat(rate, <, 23 * rings);
        }
    }
    for (unsigned n = 2; n <= 8; n++) {
        static const unsigned rings[] = {0, 0, 1, 2, 4, 2, 2, 4, 6};
        g_test_message("%u GPUs: %.1f GB/s, %.1f a ring", n, busiest[n], busiest[n] / rings[n]);
        g_assert_cmpfloat(busiest[n], >, (n == 5 ? 18.5 : 21) * rings[n]);
    }
}

/* ---- measurements --------------------------------------------------------------------------- */

static void add(GHashTable *bins, const char *name, double error) {
    GArray *errors = g_hash_table_lookup(bins, name);
    if (!errors) {
        errors = g_array_new(FALSE, FALSE, sizeof(double));
        g_hash_table_insert(bins, g_strdup(name), errors);
    }
    g_array_append_val(errors, error);
}

/* Of a machine no more than the goal of all. */
static void hold_clusters(GHashTable *bins, const GArray *rows) {
    for (guint i = 0; i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        GArray *errors = row->skipped ? NULL : g_hash_table_lookup(bins, row->cluster->name);
        g_assert_true(!errors || errors->len < 5 || trace_median_of(errors) <= 0.12);
    }
}

static void print_bins(GHashTable *bins) {
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(bins), (GCompareFunc)strcmp);
    for (GList *i = names; i; i = i->next) {
        GArray *errors = g_hash_table_lookup(bins, i->data);
        g_test_message("%-28s %3u rows, median error %5.1f %%", (const char *)i->data, errors->len,
                       trace_median_of(errors) * 100);
    }
}

/* Rows held out of fitting: every third. */
static void measurements(void) {
    g_autoptr(CliPublished) tables = open_tables();
    g_autoptr(GArray) rows = read_rows(tables);
    g_autoptr(GHashTable) bins =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        if (row->skipped || !row->held_out) {
            continue;
        }
        SimNcclChoice choice = cli_collective_choice(row, row->cluster);
        double off = fabs(cli_collective_predict_us(row, row->cluster) / row->time_us - 1);
        g_autofree char *how =
            g_strdup_printf("%s %s, 1e%d bytes", sim_nccl_algo_name(choice.algo),
                            sim_nccl_proto_name(choice.proto), (int)floor(log10(row->bytes)));
        add(bins, how, off);
        add(bins, row->cluster->name, off);
        g_array_append_val(all, off);
    }
    print_bins(bins);
    hold_clusters(bins, rows);
    double middle = trace_median_of(all);
    double most = trace_quantile((double *)(gpointer)all->data, all->len, 0.9);
    g_test_message("all: %u rows held out, median error %.1f %%, 90th percentile %.1f %%", all->len,
                   middle * 100, most * 100);
    g_assert_cmpuint(all->len, >=, 740);
    g_assert_cmpfloat(middle, <=, 0.1);
    g_assert_cmpfloat(most, <=, 0.36);
}

static double gather_us(const char *cluster, unsigned gpus, double bytes) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, cluster, &error);
    g_autoptr(ModelCluster) file = path ? model_cluster_read_file(path, &error) : NULL;
    g_assert_no_error(error);
    CliCollectiveRow row = {.nodes = 1,
                            .ranks = gpus,
                            .kind = PLAN_OP_ALL_GATHER,
                            .algo = SIM_NCCL_RING,
                            .bytes = bytes};
    return cli_collective_predict_us(&row, file);
}

/* OpenXLA's table, the least of a few sizes: what grows with the GPUs is a step of the ring. */
static void steps_in_a_rack(void) {
    static const struct {
        unsigned gpus;
        double us;
    } measured[] = {{4, 17.1}, {8, 17.7}, {16, 29.3}, {32, 51.2}, {64, 98}, {72, 102.4}};
    for (unsigned i = 0; i < G_N_ELEMENTS(measured); i++) {
        double us = gather_us("gb200-nvl72", measured[i].gpus, 4096);
        g_test_message("%u GPUs: %.1f us measured, %.1f predicted", measured[i].gpus,
                       measured[i].us, us);
        g_assert_cmpfloat(fabs(us / measured[i].us - 1), <, 0.2);
    }
}

/* They reach seven tenths of what rings among four carry; on A100's switch all of it. */
static void two_on_a_switch(void) {
    double gigabyte = 1e9;
    double two = gather_us("dgx-h100", 2, gigabyte), four = gather_us("dgx-h100", 4, gigabyte);
    g_assert_cmpfloat(two / four, >, 0.9 * (1.0 / 2) / (3.0 / 4) / 0.7);
    double apart = gather_us("a100-node", 2, gigabyte) / gather_us("a100-node", 4, gigabyte);
    g_assert_cmpfloat(apart, <, 1.1 * (1.0 / 2) / (3.0 / 4));
}

/* Between nodes, the four numbers of a machine that was measured on 16 GPUs alone (fit-collectives:
 * all-reduces over two p5 nodes), which a100-roce and dgx-h100 take over, tell rings of 512 and
 * 1024 GPUs of another network to a fifth: latency grows as NCCL counts it. */
static void sixteen_gpus_tell_a_thousand(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, "a100-roce", &error);
    g_autoptr(ModelCluster) small = path ? model_cluster_read_file(path, &error) : NULL;
    g_assert_no_error(error);
    g_autoptr(CliPublished) tables = open_tables();
    g_autoptr(GArray) rows = read_rows(tables);
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    double sum = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        if (row->skipped || !g_str_equal(row->cluster->name, "a100-perlmutter") ||
            row->ranks < 512) {
            continue;
        }
        ModelCluster large = *row->cluster;
        large.collectives_far_extra_us = small->collectives_far_extra_us;
        large.collectives_far_latency_factor = small->collectives_far_latency_factor;
        large.collectives_far_bandwidth_factor = small->collectives_far_bandwidth_factor;
        large.collectives_far_ramp_factor = small->collectives_far_ramp_factor;
        double off = cli_collective_predict_us(row, &large) / row->time_us - 1;
        sum += off;
        off = fabs(off);
        g_array_append_val(errors, off);
    }
    g_assert_cmpuint(errors->len, ==, 33);
    double middle = trace_median_of(errors);
    g_test_message("512 and 1024 GPUs: %u rows, median error %.1f %%, mean %+.1f %%", errors->len,
                   middle * 100, sum / errors->len * 100);
    g_assert_cmpfloat(middle, <=, 0.2);
    g_assert_cmpfloat(fabs(sum / errors->len), <=, 0.2);
}

/* Eight ranks side by side share layers inside a node; what shards has one rank in each. */
static void shared_layers_stay_in_a_node(void) {
    ModelCluster cluster = {.topology_nodes = 4,
                            .topology_gpus_per_node = 8,
                            .intra_node_nccl_channel_gb_per_s = 20,
                            .intra_node_nccl_channels = 8,
                            .inter_node_nic_gb_per_s = 10};
    Plan plan = {.world = 32,
                 .axes = {[PLAN_AXIS_NONE] = 1,
                          [PLAN_AXIS_REPLICATE] = 1,
                          [PLAN_AXIS_SHARD] = 4,
                          [PLAN_AXIS_PART] = 1,
                          [PLAN_AXIS_TENSOR] = 8}};
    SimNetworkPath tensor = sim_network_path(&cluster, &plan, PLAN_AXIS_TENSOR);
    SimNetworkPath shard = sim_network_path(&cluster, &plan, PLAN_AXIS_SHARD);
    g_assert_cmpuint(tensor.ranks, ==, 8);
    g_assert_cmpuint(tensor.nodes, ==, 1);
    g_assert_cmpuint(shard.ranks, ==, 4);
    g_assert_cmpuint(shard.nodes, ==, 4);
    g_assert_cmpuint(shard.ranks_a_node, ==, 1);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/nccl/expectations", expectations);
    g_test_add_func("/sim/nccl/one rank a node", one_rank_a_node);
    g_test_add_func("/sim/nccl/steps over PCIe", steps_over_pcie);
    g_test_add_func("/sim/nccl/trees between two nodes", trees_between_two_nodes);
    g_test_add_func("/sim/nccl/how many the switch serves", how_many_the_switch_serves);
    g_test_add_func("/sim/nccl/choices", choices);
    g_test_add_func("/sim/nccl/barred protocols", barred_protocols);
    g_test_add_func("/sim/nccl/barred by cluster", barred_by_cluster);
    g_test_add_func("/sim/nccl/pairs of four", pairs_of_four);
    g_test_add_func("/sim/nccl/rings of the cube mesh", rings_of_the_cube_mesh);
    g_test_add_func("/sim/nccl/measurements held out", measurements);
    g_test_add_func("/sim/nccl/steps in a rack", steps_in_a_rack);
    g_test_add_func("/sim/nccl/two on a switch", two_on_a_switch);
    g_test_add_func("/sim/nccl/sixteen GPUs tell a thousand", sixteen_gpus_tell_a_thousand);
    g_test_add_func("/sim/nccl/shared layers stay in a node", shared_layers_stay_in_a_node);
    return g_test_run();
}
