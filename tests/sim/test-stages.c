/* Stages that share the layers: how long a step takes, who waits, whose memory is shown. */
#include <glib.h>
#include <math.h>

#include "sim/costs/network.h"
#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

/* A head so narrow that all stages have as much to do, but for some thousandths. */
#define NETWORK                                                                                    \
    "[network]\nfamily = llama\nlayers = 8\nwidth = 128\nheads = 4\nffn = 512\nvocab = 8\n"
static const char network[] = NETWORK "seq = 64\n", longer[] = NETWORK "seq = 128\n";

/* No link takes any time. */
static ModelCluster without_links(void) {
    ModelCluster cluster = toy_cluster;
    cluster.intra_node_bus_gb_per_s = cluster.intra_node_reduce_bus_gb_per_s = 1e12;
    cluster.device_memory_bytes = (uint64_t)1 << 40;
    return cluster;
}

static SimPrediction *predict_stages(unsigned stages, unsigned microbatches, const char *more) {
    ModelCluster cluster = without_links();
    g_autofree char *strategy =
        g_strdup_printf("ranks=%u pipeline=%u accumulate=%u pipeline_split=even %s", 2 * stages,
                        stages, microbatches, more);
    g_autoptr(Plan) plan = toy_written_plan(network, strategy);
    return plays_predict(plan, &cluster, &(SimOptions){.steps = 4}, NULL);
}

static void assert_about(double value, double expected, double share) {
    g_test_message("%g, expected %g", value, expected);
    g_assert_cmpfloat(fabs(value - expected), <=, share * expected);
}

/* (m + p - 1) (f + b), and what a step has once: of which p - 1 are bubbles, on every stage. */
static void check_bubbles(const char *schedule) {
    for (unsigned stages = 2; stages <= 4; stages *= 2) {
        g_autoptr(SimPrediction) four = predict_stages(stages, 4, schedule);
        g_autoptr(SimPrediction) eight = predict_stages(stages, 8, schedule);
        g_autoptr(SimPrediction) twenty = predict_stages(stages, 20, schedule);
        double turn = (double)(twenty->median_step_ns - eight->median_step_ns) / 12;
        assert_about((double)(eight->median_step_ns - four->median_step_ns), 4 * turn, 0.005);
        const SimPrediction *all[] = {four, eight, twenty};
        for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
            double bubbles = (double)all[i]->cause_ns[SIM_CAUSE_RANKS];
            assert_about(bubbles, (stages - 1) * turn, 0.03);
            double once = (double)(all[i]->compute_ns) - (i == 0 ? 4 : i == 1 ? 8 : 20) * turn;
            assert_about((double)all[i]->median_step_ns - once,
                         ((i == 0   ? 4
                           : i == 1 ? 8
                                    : 20) +
                          stages - 1) *
                             turn,
                         0.01);
        }
        g_assert_cmpstr(four->cause_names[SIM_CAUSE_RANKS], ==, "pipeline bubbles");
    }
}

static void test_1f1b(void) {
    check_bubbles("pipeline_schedule=1f1b");
}

static void test_gpipe(void) {
    check_bubbles("pipeline_schedule=gpipe");
}

/* (p - 1) (f + b) / v: turns are as many times shorter as a rank has stages. */
static void check_interleaved(unsigned places, unsigned stages) {
    g_autofree char *more =
        g_strdup_printf("pipeline_schedule=interleaved-1f1b pipeline_stages=%u", stages);
    g_autoptr(SimPrediction) eight = predict_stages(places, 8, more);
    g_autoptr(SimPrediction) sixteen = predict_stages(places, 16, more);
    g_autoptr(SimPrediction) plain = predict_stages(places, 8, "pipeline_schedule=1f1b");
    double turn = (double)(sixteen->compute_ns - eight->compute_ns) / 8;
    g_test_message("%u places, %u stages each", places, stages);
    assert_about((double)(sixteen->median_step_ns - eight->median_step_ns), 8 * turn, 0.01);
    double own = (places - 1) * turn / stages;
    assert_about((double)eight->cause_ns[SIM_CAUSE_RANKS], own, 0.03);
    assert_about((double)sixteen->cause_ns[SIM_CAUSE_RANKS], own, 0.03);
    g_assert_cmpint(eight->median_step_ns, <, plain->median_step_ns);
    /* What was sent is held to the end of the step. */
    g_assert_cmpuint(eight->peak.by_sub[PLAN_ACTIVATIONS_SAVED], >,
                     plain->peak.by_sub[PLAN_ACTIVATIONS_SAVED]);
}

static void test_interleaved(void) {
    check_interleaved(2, 2);
    check_interleaved(4, 2);
    check_interleaved(2, 4);
}

/* 1F1B holds a microbatch for each stage behind, and the first stage most; GPipe holds them all. */
static void test_memory(void) {
    g_autoptr(SimPrediction) few = predict_stages(4, 8, "pipeline_schedule=1f1b");
    g_autoptr(SimPrediction) many = predict_stages(4, 24, "pipeline_schedule=1f1b");
    g_assert_cmpuint(few->memory_rank, ==, 0);
    uint64_t held = few->peak.by_sub[PLAN_ACTIVATIONS_SAVED];
    uint64_t received = 16 * 64 * 128 * sizeof(float); /* a gradient's tensor each, all stages' */
    g_assert_cmpuint(many->peak.by_sub[PLAN_ACTIVATIONS_SAVED], ==, held);
    g_assert_cmpuint(many->peak.by_sub[PLAN_TEMPORARY_OP], ==,
                     few->peak.by_sub[PLAN_TEMPORARY_OP] + received);
    g_autoptr(SimPrediction) all = predict_stages(4, 24, "pipeline_schedule=gpipe");
    g_assert_cmpuint(all->peak.by_sub[PLAN_ACTIVATIONS_SAVED], >, 5 * held);
}

/* ---- one of each stage, or all ranks --------------------------------------------------------- */

static void assert_equal(const SimPrediction *one, const SimPrediction *all) {
    plays_assert_equal(one, all);
    g_assert_cmpuint(one->memory_rank, ==, all->memory_rank);
    g_assert_cmpuint(one->time_rank, ==, all->time_rank);
    g_assert_cmpfloat(one->flops, ==, all->flops);
}

static const char *const strategies[] = {
    "ranks=4 pipeline=2 accumulate=4",
    "ranks=16 pipeline=2 accumulate=4 param_dtype=bf16",
    "ranks=16 pipeline=4 accumulate=6 checkpointing=full",
    "ranks=16 pipeline=8 accumulate=8 pipeline_split=even",
    "ranks=8 pipeline=4 accumulate=3 pipeline_schedule=gpipe step_sync=no",
    "ranks=16 pipeline=2 accumulate=4 pipeline_schedule=gpipe sharding=grad-op",
    "ranks=16 pipeline=4 accumulate=4 clip=1",
    "ranks=4 pipeline=4 accumulate=5 clip=1",
    "ranks=4 pipeline=4 accumulate=5 sharding=none",
    "ranks=16 pipeline=2 accumulate=4 sharding=none bucket_mb=1",
    "ranks=16 pipeline=2 accumulate=4 tensor=2 clip=1 param_dtype=bf16",
    "ranks=16 pipeline=2 accumulate=4 tensor=2 sharding=hybrid replicate=2 clip=1",
    "ranks=16 pipeline=4 accumulate=8 pipeline_split=even clip=1 "
    "pipeline_schedule=interleaved-1f1b pipeline_stages=2",
    "ranks=8 pipeline=2 accumulate=6 pipeline_split=even param_dtype=bf16 "
    "pipeline_schedule=interleaved-1f1b pipeline_stages=4",
};

static void test_law(void) {
    static const char *const clusters[] = {"a100-roce", "two-nodes-ethernet", "a100-perlmutter"};
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies) * G_N_ELEMENTS(clusters); i++) {
        const char *strategy = strategies[i / G_N_ELEMENTS(clusters)];
        g_autoptr(ModelCluster) cluster = plays_cluster(clusters[i % G_N_ELEMENTS(clusters)]);
        g_test_message("%s on %s", strategy, cluster->name);
        g_autoptr(Plan) plan = toy_written_plan(network, strategy);
        SimOptions options = {.steps = 4};
        g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, NULL);
        options.every_rank = true;
        g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, NULL);
        g_assert_cmpuint(one->n_ranks, ==, 0);
        assert_equal(one, all);
    }
}

/* A plan of one pipeline's programs, as it is built for a prediction. */
static void test_for_one(void) {
    static const char *const more[] = {
        "ranks=16 pipeline=2 context=2 accumulate=4 param_dtype=bf16",
        "ranks=16 pipeline=4 context=2 accumulate=8 param_dtype=bf16 pipeline_split=even "
        "pipeline_schedule=interleaved-1f1b pipeline_stages=2",
    };
    unsigned fewer = 0;
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies) + G_N_ELEMENTS(more); i++) {
        const char *strategy =
            i < G_N_ELEMENTS(strategies) ? strategies[i] : more[i - G_N_ELEMENTS(strategies)];
        g_test_message("%s", strategy);
        g_autoptr(Plan) whole = toy_written_plan(longer, strategy);
        g_autoptr(Plan) for_one = toy_written_plan_for_one(longer, strategy);
        uint32_t n_written = 0;
        g_assert_cmpuint(for_one->n_roles, ==, whole->n_roles);
        for (uint32_t r = 0; r < whole->n_roles; r++) {
            n_written += for_one->roles[r].n_instrs[PLAN_SECTION_FIRST] > 0;
        }
        g_assert_cmpuint(n_written, ==, whole->axes[PLAN_AXIS_PIPELINE]);
        fewer += n_written < whole->n_roles;
        SimOptions options = {.steps = 4};
        g_autoptr(SimPrediction) of_whole = plays_predict(whole, cluster, &options, NULL);
        g_autoptr(SimPrediction) of_one = plays_predict(for_one, cluster, &options, NULL);
        assert_equal(of_one, of_whole);
    }
    g_assert_cmpuint(fewer, >=, G_N_ELEMENTS(more));
}

/* Stages that lie in one node send over its links, others over the network. */
static void test_links(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    g_autoptr(Plan) near = toy_written_plan(network, "ranks=8 pipeline=4 accumulate=8");
    g_autoptr(Plan) far = toy_written_plan(network, "ranks=32 pipeline=4 accumulate=8");
    SimNetworkPath inside = sim_network_path_to(cluster, near, 2, true);
    SimNetworkPath beyond = sim_network_path_to(cluster, far, 8, true);
    SimNetworkPath none = sim_network_path_to(cluster, far, 24, true);
    g_assert_cmpuint(inside.nodes, ==, 1);
    g_assert_cmpuint(beyond.nodes, ==, 2);
    g_assert_cmpuint(none.ranks, ==, 1);
    SimNetworkCost fast = sim_network_cost(cluster, &inside, PLAN_OP_SEND, 1 << 24);
    SimNetworkCost slow = sim_network_cost(cluster, &beyond, PLAN_OP_SEND, 1 << 24);
    g_assert_cmpfloat(slow.transfer_ns, >, 2 * fast.transfer_ns);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/stages/1f1b: its bubbles", test_1f1b);
    g_test_add_func("/sim/stages/gpipe: its bubbles", test_gpipe);
    g_test_add_func("/sim/stages/interleaved: its bubbles", test_interleaved);
    g_test_add_func("/sim/stages/what is held", test_memory);
    g_test_add_func("/sim/stages/one of each: as all ranks", test_law);
    g_test_add_func("/sim/stages/one pipeline's programs alone", test_for_one);
    g_test_add_func("/sim/stages/near and far", test_links);
    return g_test_run();
}
