/* What every-rank play refuses: ranks whose programs do not meet, and costs beyond all time; and
 * when each rank is played though nobody asked for it. */
#include <glib.h>
#include <string.h>

#include "sim/built.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/text.h"

/* Plans that no one rank can see to be broken: the last rank of three has a role of its own. */
static char *refusal_of(const char *strategy, void (*breaks)(PlanRole *role)) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 3, .every_rank = true};
    g_assert_cmpuint(plan->n_roles, ==, 2);
    breaks(&plan->roles[1]);
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, NULL, &error);
    g_assert_null(prediction);
    g_assert_error(error, SIM_ERROR, SIM_ERROR_PLAN);
    return g_strdup(error->message);
}

static PlanOp *last_gather(PlanRole *role) {
    for (uint32_t i = role->n_ops; i-- > 0;) {
        if (role->ops[i].kind == PLAN_OP_ALL_GATHER) {
            return &role->ops[i];
        }
    }
    g_assert_not_reached();
}

static void gathers_another(PlanRole *role) {
    role->dims[last_gather(role)->dims] *= 2;
}

static void never_comes(PlanRole *role) {
    last_gather(role)->axis = PLAN_AXIS_NONE;
}

static void test_broken_plans(void) {
    static const char *const ways[] = {"ranks=3", "ranks=3 allocator=expandable"};
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *other = refusal_of(ways[i], gathers_another);
        g_assert_nonnull(strstr(other, "where rank"));
        g_autofree char *alone = refusal_of(ways[i], never_comes);
        g_assert_nonnull(strstr(alone, "the plan is broken"));
    }
}

static void assert_refused(const Plan *plan, const ModelCluster *cluster, const char *words) {
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 3};
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, NULL, &error);
    g_assert_null(prediction);
    g_assert_error(error, SIM_ERROR, SIM_ERROR_CLUSTER);
    g_assert_nonnull(strstr(error->message, words));
    g_assert_nonnull(strstr(error->message, "--every-rank"));
}

/* A machine so slow that a play would never end, as a slip of unit makes one: of the cluster, or of
 * one kind of its nodes. */
static void test_refused_times(void) {
    g_autoptr(ModelCluster) mixed = plays_cluster_and("a100-roce", "\n[nodes slow]\nat = 0\n");
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=8 param_dtype=bf16");
    ModelCluster *clusters[] = {mixed, mixed->kinds[0]};
    for (unsigned i = 0; i < G_N_ELEMENTS(clusters); i++) {
        mixed->n_kinds = i; /* the cluster itself, then its kind */
        clusters[i]->device_memory_gb_per_s = clusters[i]->device_memory_efficiency = 1e-6;
        clusters[i]->device_attention_efficiency = 1e-6;
        for (unsigned every = i; every < 2; every++) {
            g_autoptr(GError) error = NULL;
            const SimOptions options = {.steps = 4, .every_rank = every};
            g_autoptr(SimPrediction) played = sim_predict(plan, mixed, &options, NULL, &error);
            g_assert_null(played);
            g_assert_error(error, SIM_ERROR, SIM_ERROR_CLUSTER);
            g_assert_nonnull(strstr(error->message, "mind the units"));
        }
        mixed->device_memory_gb_per_s = mixed->device_memory_efficiency = 1;
    }
    mixed->n_kinds = 1;
}

/* What the host pays counts, too: no sum of absurd costs overflows. */
static void test_refused_host_times(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=2");
    cluster->host_alloc_us = cluster->host_launch_us = 1e7;
    for (unsigned every = 0; every < 2; every++) {
        g_autoptr(GError) error = NULL;
        SimOptions options = {.steps = 4, .every_rank = every};
        g_autoptr(SimPrediction) few = sim_predict(plan, cluster, &options, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpfloat((double)few->median_step_ns, >, 1e12);
        options.steps = SIM_MOST_STEPS;
        g_autoptr(SimPrediction) many = sim_predict(plan, cluster, &options, NULL, &error);
        g_assert_null(many);
        g_assert_error(error, SIM_ERROR, SIM_ERROR_CLUSTER);
        g_assert_nonnull(strstr(error->message, "a step's host "));
    }
}

/* Troubles of ranks that there are not, as a trace's header may name; more ranks than can be. */
static void test_refused_ranks(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8");
    for (unsigned kind = SIM_TROUBLE_SLOW; kind <= SIM_TROUBLE_NIC; kind++) {
        const SimTrouble troubles[] = {
            {kind, 900, 900, 0.5}, {kind, 0, UINT32_MAX, 0.5}, {kind, 0, 7, 0.5}};
        for (unsigned i = 0; i < G_N_ELEMENTS(troubles); i++) {
            g_autoptr(GError) error = NULL;
            const SimOptions options = {
                .steps = 3, .every_rank = true, .troubles = &troubles[i], .n_troubles = 1};
            g_autoptr(SimPrediction) played = sim_predict(plan, cluster, &options, NULL, &error);
            g_assert_true((played != NULL) == (troubles[i].last_rank < plan->world));
            g_assert_true(played || strstr(error->message, "the plan has 8 ranks"));
        }
    }
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 3, .every_rank = true};
    cluster->topology_nodes = 1000000;
    plan->world = SIM_MOST_RANKS + 1;
    g_autoptr(SimPrediction) many = sim_predict(plan, cluster, &options, NULL, &error);
    g_assert_null(many);
    g_assert_nonnull(strstr(error->message, "too many to play each"));
}

/* A kind that lacks a dtype, and what one rank cannot stand for. */
static void test_refusals(void) {
    g_autoptr(ModelCluster) mixed =
        plays_cluster_and("a100-roce", "\n[nodes old]\nat = 1\nlike = v100-dgx.ini\n");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART " param_dtype=bf16");
    g_autoptr(SimPrediction) lacks = plays_every_rank(plan, mixed, (SimOptions){0});
    g_assert_cmpstr(lacks->unsupported_dtype, ==, "bf16");
    assert_refused(plan, mixed, "nodes of several kinds");
    g_autoptr(Plan) small = toy_network_plan("gpt-toy", "ranks=8"); /* on the first node alone */
    const SimOptions options = {.steps = 3};
    g_autoptr(SimPrediction) fine = plays_predict(small, mixed, &options, NULL);
    g_assert_true(fine->fits);
    g_autoptr(ModelCluster) spine = plays_compute_bound("a100-roce");
    spine->inter_node_nodes_per_leaf = 1;
    spine->inter_node_oversubscription = 100;
    assert_refused(plan, spine, "an oversubscribed spine");
    g_autoptr(SimPrediction) crosses = plays_every_rank(plan, spine, (SimOptions){0});
    spine->inter_node_oversubscription = 1;
    g_autoptr(SimPrediction) full = plays_every_rank(plan, spine, (SimOptions){0});
    g_assert_cmpint(crosses->median_step_ns, >, full->median_step_ns);
}

static Plan *build(gpointer self, PlanForm form, GError **error) {
    (void)error;
    return toy_folded_plan("gpt-toy", self, form);
}

static SimPrediction *built(const char *strategy, const ModelCluster *cluster, Trace *trace) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = NULL;
    const SimOptions options = {.steps = 4};
    SimPrediction *prediction =
        sim_predict_built(build, (gpointer)strategy, &plan, cluster, &options, trace, &error);
    g_assert_no_error(error);
    return prediction;
}

/* Where one rank cannot stand for all, each is played with the cluster's jitter, in a whole plan;
 * and not elsewhere. */
static void test_played_each(void) {
    static const char apart[] = PLAYS_APART " accumulate=40";
    g_autoptr(ModelCluster) mixed =
        plays_cluster_and("a100-roce", "\n[nodes old]\nat = 1\nlike = v100-dgx.ini\n");
    mixed->jitter_gpu_percent = 3;
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", apart);
    g_autoptr(SimPrediction) each = plays_every_rank(
        plan, mixed, (SimOptions){.jitter = {.shares = {[SIM_JITTER_GPU] = 0.03}}});
    g_autoptr(SimPrediction) got = built(apart, mixed, NULL);
    plays_assert_equal(got, each);
    g_assert_cmpuint(got->n_ranks, ==, 16);
    g_autoptr(SimPrediction) alike = built("ranks=8 accumulate=40", mixed, NULL);
    g_assert_cmpuint(alike->n_ranks, ==, 0);
}

static SimPrediction *one_of_each(const Plan *plan, const ModelCluster *cluster) {
    const SimOptions options = {.steps = 4, .one_of_each = true};
    return plays_predict(plan, cluster, &options, NULL);
}

static void assert_same_times(const SimPrediction *one, const SimPrediction *each) {
    g_assert_cmpuint(one->n_ranks, ==, 0);
    g_assert_cmpint(one->median_step_ns, ==, each->median_step_ns);
    g_assert_cmpint(one->least_step_ns, ==, each->least_step_ns);
    g_assert_cmpuint(one->peak_reserved_bytes, ==, each->peak_reserved_bytes);
    g_assert_cmpuint(one->allocator_bytes, ==, each->allocator_bytes);
    g_assert_cmpfloat_with_epsilon(one->mfu, each->mfu, 1e-12);
}

/* Of ranks without jitter one on each kind of node tells what all of them do, whatever they wait
 * for: each other, a spine, or neither. */
static void test_one_of_each(void) {
    static const char *const strategies[] = {PLAYS_APART, PLAYS_APART " sharding=grad-op",
                                             PLAYS_APART " sharding=none flavour=ddp",
                                             "ranks=16 sharding=hybrid replicate=2 micro_batch=4"};
    g_autoptr(ModelCluster) mixed =
        plays_cluster_and("a100-roce", "\n[nodes old]\nat = 1\nlike = v100-dgx.ini\n");
    g_autoptr(ModelCluster) spine = plays_compute_bound("a100-roce");
    mixed->jitter_gpu_percent = spine->jitter_gpu_percent = 0;
    spine->inter_node_nodes_per_leaf = 1;
    spine->inter_node_oversubscription = 100;
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategies[i]);
        const ModelCluster *const clusters[] = {mixed, spine};
        SimTime steps[G_N_ELEMENTS(clusters)];
        for (unsigned k = 0; k < G_N_ELEMENTS(clusters); k++) {
            g_autoptr(SimPrediction) each = plays_every_rank(plan, clusters[k], (SimOptions){0});
            g_autoptr(SimPrediction) one = one_of_each(plan, clusters[k]);
            assert_same_times(one, each);
            steps[k] = one->median_step_ns;
        }
        g_assert_cmpint(steps[0], !=, steps[1]);
    }
}

/* All wait for the slowest GPU of a kind, so that one as slow as it tells what they do. */
static void test_slowest_of_each(void) {
    const SimJitter jitter = {.shares = {[SIM_JITTER_GPU] = 0.05}};
    g_autoptr(ModelCluster) spine = plays_compute_bound("a100-roce");
    spine->inter_node_nodes_per_leaf = 1;
    spine->inter_node_oversubscription = 4;
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART);
    const SimOptions options = {.steps = 4, .one_of_each = true, .jitter = jitter};
    g_autoptr(SimPrediction) one = plays_predict(plan, spine, &options, NULL);
    g_autoptr(SimPrediction) each = plays_every_rank(plan, spine, (SimOptions){.jitter = jitter});
    g_autoptr(SimPrediction) calm = plays_every_rank(plan, spine, (SimOptions){0});
    double step = (double)each->median_step_ns;
    g_assert_cmpfloat(step, >, 1.01 * (double)calm->median_step_ns);
    g_assert_cmpfloat_with_epsilon((double)one->median_step_ns / step, 1, 1e-3);
}

/* Where ranks are alike it asks for nothing: stages are played as without it. */
static void test_one_of_stages(void) {
    g_autoptr(ModelCluster) alike = plays_compute_bound("a100-roce");
    alike->jitter_gpu_percent = 5;
    g_autoptr(Plan) plan = toy_network_plan("llama-toy", "ranks=4 pipeline=2 accumulate=4");
    const SimOptions usual = {.steps = 4};
    const SimOptions one_of_each = {
        .steps = 4, .one_of_each = true, .jitter = {.shares = {[SIM_JITTER_GPU] = 0.05}}};
    g_autoptr(SimPrediction) expected = plays_predict(plan, alike, &usual, NULL);
    g_autoptr(SimPrediction) got = plays_predict(plan, alike, &one_of_each, NULL);
    plays_assert_equal(got, expected);
}

/* A trace has all of some, and the first of many. */
static void test_traced_each(void) {
    static const char *const strategies[] = {"ranks=64", "ranks=72"};
    g_autoptr(ModelCluster) mixed =
        plays_cluster_and("a100-roce", "\n[nodes old]\nat = 1\nlike = v100-dgx.ini\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Trace) trace = trace_new();
        g_autoptr(SimPrediction) got = built(strategies[i], mixed, trace);
        g_assert_cmpuint(got->n_ranks, ==, i == 0 ? 64 : 72);
        g_assert_cmpuint(trace->ranks->len, ==, i == 0 ? 64 : 1);
        g_assert_cmpstr(trace_get(trace, "every_rank"), ==, "yes");
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/every-refused/broken plans", test_broken_plans);
    g_test_add_func("/sim/every-refused/refused", test_refusals);
    g_test_add_func("/sim/every-refused/each is played", test_played_each);
    g_test_add_func("/sim/every-refused/one of each kind", test_one_of_each);
    g_test_add_func("/sim/every-refused/slowest of each kind", test_slowest_of_each);
    g_test_add_func("/sim/every-refused/one of stages", test_one_of_stages);
    g_test_add_func("/sim/every-refused/traces of each", test_traced_each);
    g_test_add_func("/sim/every-refused/ranks refused", test_refused_ranks);
    g_test_add_func("/sim/every-refused/times refused", test_refused_times);
    g_test_add_func("/sim/every-refused/times of hosts refused", test_refused_host_times);
    return g_test_run();
}
