/* sim/meeting by hand: who starts when, how fast beside whom, how far a rank may go ahead. */
#include <glib.h>
#include <string.h>

#include "sim/predict.h"
#include "sim/ranks/meeting.h"

/* 4 ranks on 2 nodes: shard groups {0, 1} and {2, 3} within a node, replicate groups {0, 2} and
 * {1, 3} over both. */
static const Plan plan = {.world = 4, .axes = {1, 2, 2, 1, 1}};
static const PlanOp shard = {.kind = PLAN_OP_ALL_GATHER, .axis = PLAN_AXIS_SHARD};
static const PlanOp replicate = {.kind = PLAN_OP_ALL_REDUCE, .axis = PLAN_AXIS_REPLICATE};
/* 100 ns of latency and 900 of transfer. */
static const SimOpCost cost = {.bytes = 64,
                               .use = {.network = {.latency_ns = 100, .transfer_ns = 900}}};

typedef struct {
    SimFabric *fabric;
    SimMeetings *meetings;
    GString *log;
} Fixture;

static void meets(gpointer self, uint32_t rank, uint32_t lane, SimTime at) {
    Fixture *fixture = self;
    g_string_append_printf(fixture->log, "%u!%" G_GINT64_FORMAT " ", rank, at);
}

static void ends(gpointer self, uint32_t rank, uint32_t lane, SimTime at) {
    Fixture *fixture = self;
    g_string_append_printf(fixture->log, "%u.%" G_GINT64_FORMAT " ", rank, at);
}

static const SimMeetingsHooks hooks = {meets, ends};
static const SimJitter none;

static SimMeetings *meetings_of(Fixture *fixture, const Plan *of) {
    const SimMeetingsSetup setup = {
        .plan = of, .fabric = fixture->fabric, .jitter = &none, .hooks = &hooks, .self = fixture};
    return sim_meetings_new(&setup);
}

static void make(Fixture *fixture, const Plan *of, const SimFabricShape *shape) {
    fixture->log = g_string_new(NULL);
    fixture->fabric = sim_fabric_new(shape);
    fixture->meetings = meetings_of(fixture, of);
}

static void set_up(Fixture *fixture, gconstpointer data) {
    const SimFabricShape shape = {.ranks = 4, .ranks_a_node = 2, .nvlink = 1, .nic = 1};
    make(fixture, &plan, &shape);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
    sim_meetings_free(fixture->meetings);
    sim_fabric_free(fixture->fabric);
    g_string_free(fixture->log, TRUE);
}

static void come(Fixture *fixture, uint32_t rank, const PlanOp *op, SimTime at) {
    SimArrival arrival = {.lane = 1, .op = op, .cost = &cost, .at = at};
    g_autoptr(GError) error = NULL;
    g_assert_true(sim_meetings_arrive(fixture->meetings, rank, &arrival, &error));
    g_assert_no_error(error);
}

static void assert_log(Fixture *fixture, const char *expected) {
    while (sim_meetings_next(fixture->meetings) != SIM_NEVER) {
        sim_meetings_step(fixture->meetings);
    }
    g_strchomp(fixture->log->str);
    g_assert_cmpstr(fixture->log->str, ==, expected);
}

static void test_last_starts_it(Fixture *fixture, gconstpointer data) {
    g_assert_cmpint(sim_meetings_bound(fixture->meetings, 0), ==, SIM_NEVER);
    come(fixture, 0, &shard, 500); /* who is played first need not come first */
    g_assert_cmpint(sim_meetings_bound(fixture->meetings, 0), ==, 500);
    come(fixture, 1, &shard, 200); /* nobody else's links: all is told at once */
    g_assert_cmpint(sim_meetings_bound(fixture->meetings, 0), ==, SIM_NEVER);
    g_assert_cmpint(sim_meetings_next(fixture->meetings), ==, SIM_NEVER);
    assert_log(fixture, "0!500 1!500 0.1500 1.1500");
    const SimMeetingsBook *book = sim_meetings_book(fixture->meetings, 0);
    g_assert_cmpint(book->held_ns, ==, 300);
    g_assert_cmpuint(book->n_last, ==, 1);
    g_assert_cmpint(book->waited_ns, ==, 0);
    g_assert_cmpint(sim_meetings_book(fixture->meetings, 1)->waited_ns, ==, 300);
}

/* Within a node and between nodes go over other links. */
static void test_other_links(Fixture *fixture, gconstpointer data) {
    come(fixture, 0, &shard, 0);
    come(fixture, 1, &shard, 0);
    come(fixture, 0, &replicate, 0);
    come(fixture, 2, &replicate, 0);
    assert_log(fixture, "0!0 1!0 0.1000 1.1000 0!0 2!0 0.1000 2.1000");
}

/* All four ranks in one node: the second shares rank 0's links from 500 on. The first has half left
 * then; both go at 1000 / 1900. It ends at 500 + 950 = 1450; the second has then done half, and
 * ends at 1450 + 500. Rank 1 is told as early as the first can end. */
static void test_links_are_shared(Fixture *fixture, gconstpointer data) {
    const SimFabricShape shape = {.ranks = 4, .ranks_a_node = 4, .nvlink = 1, .nic = 1};
    tear_down(fixture, NULL);
    make(fixture, &plan, &shape);
    come(fixture, 0, &shard, 0);
    come(fixture, 1, &shard, 0);
    come(fixture, 0, &replicate, 500);
    come(fixture, 2, &replicate, 500);
    g_assert_cmpint(sim_meetings_bound(fixture->meetings, 0), ==, 1000);
    assert_log(fixture, "0!0 1!0 0!500 2!500 0.1450 1.1450 0.1950 2.1950");
}

/* Rank 3's NIC carries half: only the ring over it is slower, in its transfer. */
static void test_degraded(Fixture *fixture, gconstpointer data) {
    const SimFabricShape shape = {.ranks = 4, .ranks_a_node = 2, .nvlink = 1, .nic = 1};
    tear_down(fixture, NULL);
    fixture->log = g_string_new(NULL);
    fixture->fabric = sim_fabric_new(&shape);
    sim_fabric_scale_nic(fixture->fabric, 3, 0.5);
    fixture->meetings = meetings_of(fixture, &plan);
    for (uint32_t rank = 0; rank < 4; rank++) {
        come(fixture, rank, &replicate, 0);
    }
    assert_log(fixture, "0!0 2!0 0.1000 2.1000 1!0 3!0 1.1900 3.1900");
}

/* 4 nodes of one GPU, two a leaf, 4 : 1: a leaf's link to the spine carries half of a NIC. The ring
 * over all crosses it once each way; rings of two that stay in a leaf do not. */
static void test_spine(Fixture *fixture, gconstpointer data) {
    const Plan all = {.world = 4, .axes = {1, 1, 4, 1, 1}},
               pairs = {.world = 4, .axes = {1, 2, 2, 1, 1}};
    const SimFabricShape shape = {
        .ranks = 4, .ranks_a_node = 1, .nodes_a_leaf = 2, .nvlink = 1, .nic = 1, .uplink = 0.5};
    tear_down(fixture, NULL);
    make(fixture, &all, &shape);
    for (uint32_t rank = 0; rank < 4; rank++) {
        come(fixture, rank, &shard, 0);
    }
    assert_log(fixture, "0!0 1!0 2!0 3!0 0.1900 1.1900 2.1900 3.1900");
    tear_down(fixture, NULL);
    make(fixture, &pairs, &shape);
    come(fixture, 0, &shard, 0);
    come(fixture, 1, &shard, 0);
    assert_log(fixture, "0!0 1!0 0.1000 1.1000");
    /* Two rings of one rank in each leaf share it: a quarter each, 100 + 900 * 4. */
    g_string_truncate(fixture->log, 0);
    for (uint32_t rank = 0; rank < 4; rank++) {
        come(fixture, rank, &replicate, 2000);
    }
    assert_log(fixture, "0!2000 2!2000 1!2000 3!2000 0.5700 2.5700 1.5700 3.5700");
}

/* Four of a node, each two with a link of their own: rings over other pairs have nothing in common,
 * where a switch would halve them (test_links_are_shared). Rank 3's links carry half: the ring of
 * ranks 1 and 3 is slower, 100 + 900 * 2, that of 0 and 2 is not. */
static void test_pairs(Fixture *fixture, gconstpointer data) {
    ModelCluster cluster = {.has_nvlinks = true};
    for (unsigned a = 0; a < 4; a++) {
        for (unsigned b = 0; b < 4; b++) {
            cluster.nvlinks[a][b] = a != b;
        }
    }
    const SimFabricShape shape = {
        .ranks = 4, .ranks_a_node = 4, .nvlink = 1, .nic = 1, .pairs = &cluster};
    tear_down(fixture, NULL);
    make(fixture, &plan, &shape);
    come(fixture, 0, &shard, 0);
    come(fixture, 1, &shard, 0);
    come(fixture, 0, &replicate, 500);
    come(fixture, 2, &replicate, 500);
    assert_log(fixture, "0!0 1!0 0.1000 1.1000 0!500 2!500 0.1500 2.1500");
    tear_down(fixture, NULL);
    fixture->log = g_string_new(NULL);
    fixture->fabric = sim_fabric_new(&shape);
    sim_fabric_scale_nvlink(fixture->fabric, 3, 0.5);
    fixture->meetings = meetings_of(fixture, &plan);
    for (uint32_t rank = 0; rank < 4; rank++) {
        come(fixture, rank, &replicate, 0);
    }
    assert_log(fixture, "0!0 2!0 0.1000 2.1000 1!0 3!0 1.1900 3.1900");
}

static void test_broken_plan(Fixture *fixture, gconstpointer data) {
    const PlanOp other = {.kind = PLAN_OP_REDUCE_SCATTER, .axis = PLAN_AXIS_SHARD};
    SimArrival arrival = {.lane = 1, .op = &other, .cost = &cost, .at = 10};
    g_autoptr(GError) error = NULL;
    come(fixture, 0, &shard, 0);
    g_autofree char *who = sim_meetings_who_waits(fixture->meetings);
    g_assert_cmpstr(who, ==, "rank 0 waits in step 0 at all_gather for rank 1, which never comes");
    g_assert_false(sim_meetings_arrive(fixture->meetings, 1, &arrival, &error));
    g_assert_error(error, SIM_ERROR, SIM_ERROR_PLAN);
    g_assert_nonnull(strstr(error->message, "rank 1 comes to reduce_scatter of 64 bytes where"));
}

/* Where nobody else can come, and where it already waits: nothing is read or written beyond. */
static void test_out_of_place(Fixture *fixture, gconstpointer data) {
    const PlanOp nowhere = {.kind = PLAN_OP_ALL_GATHER, .axis = PLAN_AXIS_TENSOR};
    SimArrival arrival = {.lane = 1, .op = &nowhere, .cost = &cost, .at = 10};
    g_autoptr(GError) error = NULL, again = NULL;
    g_assert_false(sim_meetings_arrive(fixture->meetings, 1, &arrival, &error));
    g_assert_error(error, SIM_ERROR, SIM_ERROR_PLAN);
    g_assert_nonnull(strstr(error->message, "rank 1 comes to all_gather in a place where no"));
    come(fixture, 0, &shard, 0);
    arrival.op = &shard;
    g_assert_false(sim_meetings_arrive(fixture->meetings, 0, &arrival, &again));
    g_assert_error(again, SIM_ERROR, SIM_ERROR_PLAN);
    g_assert_nonnull(strstr(again->message, "rank 0 comes to all_gather while it waits"));
}

#define ADD(path, function) g_test_add(path, Fixture, NULL, set_up, function, tear_down)

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    ADD("/sim/meeting/the last starts it", test_last_starts_it);
    ADD("/sim/meeting/other links", test_other_links);
    ADD("/sim/meeting/links are shared", test_links_are_shared);
    ADD("/sim/meeting/a degraded link", test_degraded);
    ADD("/sim/meeting/an oversubscribed spine", test_spine);
    ADD("/sim/meeting/links of pairs", test_pairs);
    ADD("/sim/meeting/a broken plan", test_broken_plan);
    ADD("/sim/meeting/out of place", test_out_of_place);
    return g_test_run();
}
