/* sim/fabric: which links a hop takes, and what they carry. sim/jitter: mean, spread, order. */
#include <glib.h>
#include <math.h>

#include "sim/jitter.h"
#include "sim/links/fabric.h"

/* 4 nodes of 2, two nodes a leaf: 8 ranks, leaves 0 (nodes 0, 1, first places), 1 (second places),
 * 2 and 3 (nodes 2, 3). */
static const SimFabricShape shape = {
    .ranks = 8, .ranks_a_node = 2, .nodes_a_leaf = 2, .nvlink = 240, .nic = 25, .uplink = 40};

/* Capacities along a hop, "240 240". */
static char *hop(const SimFabric *fabric, uint32_t from, uint32_t to) {
    uint32_t path[SIM_FABRIC_LONGEST], n = sim_fabric_hop(fabric, from, to, path);
    GString *line = g_string_new(NULL);
    for (uint32_t i = 0; i < n; i++) {
        g_string_append_printf(line, "%s%g", i ? " " : "", fabric->capacities[path[i]]);
    }
    return g_string_free(line, FALSE);
}

static void assert_hop(const SimFabric *fabric, uint32_t from, uint32_t to, const char *expected) {
    g_autofree char *line = hop(fabric, from, to);
    g_assert_cmpstr(line, ==, expected);
}

static void test_hops(void) {
    g_autoptr(SimFabric) fabric = sim_fabric_new(&shape);
    assert_hop(fabric, 0, 1, "240 240");
    assert_hop(fabric, 0, 2, "25 25");       /* next node, same rail, same leaf */
    assert_hop(fabric, 2, 4, "25 40 40 25"); /* to another leaf, by the spine */
    assert_hop(fabric, 0, 3, "25 40 40 25"); /* another rail: other leaves */
    sim_fabric_scale_nic(fabric, 2, 0.5);
    sim_fabric_scale_nvlink(fabric, 1, 0.25);
    assert_hop(fabric, 0, 2, "25 12.5");
    assert_hop(fabric, 2, 0, "12.5 25");
    assert_hop(fabric, 1, 0, "60 240");
    SimFabricShape flat = shape;
    flat.nodes_a_leaf = 0;
    g_autoptr(SimFabric) one_switch = sim_fabric_new(&flat);
    assert_hop(one_switch, 2, 4, "25 25");
    assert_hop(one_switch, 0, 3, "25 25");
}

static char *ring(const SimFabric *fabric, const uint32_t *ranks, uint32_t n) {
    g_autoptr(GArray) links = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GString *line = g_string_new(NULL);
    sim_fabric_ring(fabric, ranks, n, links);
    for (guint i = 0; i < links->len; i++) {
        double carries = fabric->capacities[g_array_index(links, uint32_t, i)];
        g_string_append_printf(line, "%s%g", i ? " " : "", carries);
    }
    return g_string_free(line, FALSE);
}

/* Bridges join 0 and 1, and 2 and 3: one ring takes both ways of a bridge; one over all four takes
 * each GPU's PCIe, in and out. Of the second node rank 5's bridge is slow. */
static void test_bridges(void) {
    ModelCluster cluster = {.has_nvlinks = true};
    cluster.nvlinks[0][1] = cluster.nvlinks[1][0] = cluster.nvlinks[2][3] = cluster.nvlinks[3][2] =
        4;
    const SimFabricShape bridged = {
        .ranks = 8, .ranks_a_node = 4, .nvlink = 240, .nic = 25, .pairs = &cluster};
    const uint32_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};
    g_autoptr(SimFabric) fabric = sim_fabric_new(&bridged);
    sim_fabric_scale_nvlink(fabric, 5, 0.5);
    g_autofree char *pair = ring(fabric, ranks, 2), *slow = ring(fabric, ranks + 4, 2);
    g_autofree char *other = ring(fabric, ranks + 6, 2), *all = ring(fabric, ranks, 4);
    g_assert_cmpstr(pair, ==, "240 240");
    g_assert_cmpstr(slow, ==, "120 120");
    g_assert_cmpstr(other, ==, "240 240");
    g_assert_cmpstr(all, ==, "240 240 240 240 240 240 240 240");
}

/* Each way is a link of its own, and no two hops of a ring over a rail share one. */
static void test_links_are_apart(void) {
    g_autoptr(SimFabric) fabric = sim_fabric_new(&shape);
    g_autofree uint32_t *used = g_new0(uint32_t, fabric->n_links);
    for (uint32_t from = 0; from < shape.ranks; from++) {
        uint32_t path[SIM_FABRIC_LONGEST];
        uint32_t n = sim_fabric_hop(fabric, from, (from + 2) % shape.ranks, path);
        for (uint32_t i = 0; i < n; i++) {
            g_assert_cmpuint(path[i], <, fabric->n_links);
            used[path[i]]++;
        }
    }
    for (uint32_t link = 0; link < fabric->n_links; link++) {
        g_assert_cmpuint(used[link], <=, 1);
    }
}

static void test_jitter(void) {
    enum {
        DRAWS = 200000
    };
    static const SimJitter jitter = {1, {0.05, 0.05}}, other = {2, {0.05}};
    double sum = 0, squares = 0, neighbours = 0, before = 1;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double factor = sim_jitter_factor(&jitter, SIM_JITTER_KERNEL, i % 512, (int32_t)(i / 5120),
                                          i / 512 % 10);
        g_assert_cmpfloat(factor, >, 0);
        sum += factor - 1;
        squares += (factor - 1) * (factor - 1);
        neighbours += (factor - 1) * (before - 1);
        before = factor;
    }
    double variance = squares / DRAWS;
    g_assert_cmpfloat(fabs(sum / DRAWS), <, 4 * 0.05 / sqrt(DRAWS));
    g_assert_cmpfloat(fabs(sqrt(variance) - 0.05), <, 0.0005);
    g_assert_cmpfloat(fabs(neighbours / DRAWS / variance), <, 4 / sqrt(DRAWS));
    double factor = sim_jitter_factor(&jitter, SIM_JITTER_KERNEL, 2, 3, 4);
    g_assert_cmpfloat(sim_jitter_factor(&jitter, SIM_JITTER_HOST, 2, 3, 4), ==, 1);
    g_assert_cmpfloat(sim_jitter_factor(&jitter, SIM_JITTER_KERNEL, 2, 3, 4), ==, factor);
    g_assert_cmpfloat(sim_jitter_factor(&other, SIM_JITTER_KERNEL, 2, 3, 4), !=, factor);
    g_assert_cmpfloat(sim_jitter_factor(&jitter, SIM_JITTER_GPU, 2, 3, 4), !=, factor);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/fabric/hops", test_hops);
    g_test_add_func("/sim/fabric/links are apart", test_links_are_apart);
    g_test_add_func("/sim/fabric/bridges", test_bridges);
    g_test_add_func("/sim/jitter/mean, spread, no memory", test_jitter);
    return g_test_run();
}
