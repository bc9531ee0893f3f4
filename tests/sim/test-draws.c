/* Laws that hold whatever is asked for, on settings drawn at random; the draws are always the same.
 */
#include <glib.h>
#include <string.h>

#include "sim/costs/network.h"
#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

enum {
    DRAWS = 400,
    MOST_RANKS = 16
};

static const char *const networks[] = {"gpt-toy", "llama-toy", "moe-toy", "t5-toy", "neox-toy"};
static const char *const clusters[] = {"a100-roce", "dgx-h100", "two-nodes-ethernet",
                                       "this-machine"};

/* Each stands in one draw of so many. */
static const struct {
    unsigned of;
    const char *words; /* one of them */
} settings[] = {
    {1, "flavour=fsdp1 flavour=fsdp2 flavour=fsdp2 flavour=ddp"},
    {3, "wrap=whole wrap=linear wrap=every=2"},
    {3, "micro_batch=2 micro_batch=5"},
    {3, "accumulate=2 accumulate=3"},
    {4, "accumulate_sync=every"},
    {3, "checkpointing=full checkpointing=every=2"},
    {3, "param_dtype=bf16"},
    {4, "reduce_dtype=fp32"},
    {4, "offload=activations offload=params"},
    {4, "backward_prefetch=none backward_prefetch=post"},
    {5, "limit_all_gathers=0"},
    {4, "clip=1"},
    {4, "step_sync=no"},
    {4, "host_reads=loss host_reads=both"},
    {5, "reshard_after_forward=no reshard_after_forward=yes"},
    {6, "tensor=2"},
    {6, "expert=2"},
    {6, "allocator=expandable_segments:True"},
};

typedef struct {
    const char *network, *cluster_name;
    ModelCluster *cluster;
    char *strategy;
    Plan *plan;
} Draw;

static uint32_t any(GRand *random, uint32_t n) {
    return (uint32_t)g_rand_int_range(random, 0, (gint32)n);
}

static void add_sharding(GString *strategy, GRand *random, uint32_t ranks) {
    static const char *const words[] = {"full", "full", "grad-op", "hybrid", "hybrid-grad-op"};
    if (strstr(strategy->str, "ddp")) {
        g_string_append(strategy, " sharding=none");
        return;
    }
    const char *word = words[any(random, G_N_ELEMENTS(words))];
    g_string_append_printf(strategy, " sharding=%s", word);
    for (uint32_t n = any(random, ranks) + 1; g_str_has_prefix(word, "hybrid"); n--) {
        if (ranks % n == 0) {
            g_string_append_printf(strategy, " replicate=%u", n);
            return;
        }
    }
}

static char *draw_strategy(GRand *random) {
    uint32_t ranks = any(random, MOST_RANKS) + 1;
    GString *strategy = g_string_new(NULL);
    g_string_printf(strategy, "ranks=%u", ranks);
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_auto(GStrv) words = g_strsplit(settings[i].words, " ", -1);
        uint32_t word = any(random, g_strv_length(words));
        if (any(random, settings[i].of) == 0) {
            g_string_append_printf(strategy, " %s", words[word]);
        }
    }
    add_sharding(strategy, random, ranks);
    return g_string_free(strategy, FALSE);
}

static void clear_draw(Draw *draw) {
    model_cluster_free(draw->cluster);
    plan_free(draw->plan);
    g_free(draw->strategy);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Draw, clear_draw)

/* Its plan is NULL where it is not known, or needs more ranks than the cluster has. */
static Draw draw_one(uint32_t number) {
    g_autoptr(GRand) random = g_rand_new_with_seed(number);
    Draw draw = {.network = networks[any(random, G_N_ELEMENTS(networks))],
                 .cluster_name = clusters[any(random, G_N_ELEMENTS(clusters))],
                 .strategy = draw_strategy(random)};
    draw.cluster = plays_cluster(draw.cluster_name);
    draw.plan = toy_plan_if_known(draw.network, draw.strategy);
    if (draw.plan) {
        g_test_message("%u: %s, %s, on %s", number, draw.network, draw.strategy, draw.cluster_name);
    }
    return draw;
}

static SimPrediction *predict(const Draw *draw, bool every_rank) {
    const SimOptions options = {.steps = 5, .every_rank = every_rank};
    return plays_predict(draw->plan, draw->cluster, &options, NULL);
}

/* How many draws the law was held to. */
static void for_each_draw(bool (*law)(Draw *draw), unsigned least) {
    unsigned held = 0;
    for (uint32_t number = 0; number < DRAWS; number++) {
        g_auto(Draw) draw = draw_one(number);
        held += draw.plan && law(&draw);
    }
    g_test_message("held to %u draws", held);
    g_assert_cmpuint(held, >=, least);
}

/* ---- one stands for all --------------------------------------------------------------------- */

static bool lie_alike(const Draw *draw) {
    const Plan *plan = draw->plan;
    for (PlanAxis axis = 0; axis < PLAN_N_AXES; axis++) {
        SimNetworkPath first = sim_network_path_of(draw->cluster, plan, axis, 0);
        for (uint32_t rank = 1; rank < plan->world; rank++) {
            SimNetworkPath path = sim_network_path_of(draw->cluster, plan, axis, rank);
            if (path.nodes != first.nodes || path.ranks_a_node != first.ranks_a_node ||
                path.least_a_node != first.least_a_node) {
                return false;
            }
        }
    }
    return plan->n_roles == 1;
}

static bool one_is_as_all(Draw *draw) {
    if (!lie_alike(draw)) {
        return false;
    }
    g_autoptr(SimPrediction) one = predict(draw, false), all = predict(draw, true);
    plays_assert_equal(one, all);
    return true;
}

static void test_one_is_as_all(void) {
    for_each_draw(one_is_as_all, 50);
}

/* ---- books ---------------------------------------------------------------------------------- */

/* Shares are of the compute lane's whole time; each is rounded down once. */
static void assert_shares_sum(const SimPrediction *prediction) {
    SimTime shares = 0, steps = 0;
    for (uint32_t i = 0; i < prediction->n_steady; i++) {
        steps += prediction->step_ns[prediction->n_steps - 1 - i];
    }
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        g_assert_cmpint(prediction->shares_ns[share], >=, 0);
        shares += prediction->shares_ns[share];
    }
    SimTime mean = steps / prediction->n_steady;
    g_assert_cmpint(shares, <=, mean);
    g_assert_cmpint(shares + SIM_N_SHARES, >=, mean);
    g_assert_cmpint(prediction->compute_ns, <=, mean);
}

static bool books_add_up(Draw *draw) {
    g_autoptr(SimPrediction) prediction = predict(draw, false);
    uint64_t held = 0;
    assert_shares_sum(prediction);
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        g_assert_cmpint(sum->exposed_ns, >=, 0);
        g_assert_cmpint(sum->exposed_ns, <=, sum->total_ns);
    }
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        held += prediction->peak.by_sub[sub];
    }
    g_assert_cmpuint(held, ==, prediction->peak.at.allocated_bytes);
    g_assert_cmpuint(held, <=, prediction->peak_active_bytes);
    g_assert_cmpuint(prediction->peak_active_bytes, <=, prediction->peak_reserved_bytes);
    return true;
}

static void test_books_add_up(void) {
    for_each_draw(books_add_up, 100);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void give(Draw *draw, uint64_t allocator_bytes) {
    draw->cluster->device_memory_bytes =
        allocator_bytes + draw->cluster->device_outside_allocator_bytes;
}

/* What was reserved is enough, and changes nothing. With a page less it is never passed: the plan
 * gives memory back and tries again, or does not fit. */
static bool memory_is_kept_to(Draw *draw) {
    const uint64_t page = 2 << 20;
    g_autoptr(SimPrediction) ample = predict(draw, false);
    g_assert_true(ample->fits);
    give(draw, ample->peak_reserved_bytes);
    g_autoptr(SimPrediction) enough = predict(draw, false);
    g_assert_true(enough->fits);
    plays_assert_equal(ample, enough);
    if (ample->peak_reserved_bytes <= page) {
        return false;
    }
    give(draw, ample->peak_reserved_bytes - page);
    g_autoptr(SimPrediction) less = predict(draw, false);
    uint64_t reserved = less->fits ? less->peak_reserved_bytes : less->oom.at.reserved_bytes;
    g_assert_cmpuint(reserved, <=, ample->peak_reserved_bytes - page);
    g_assert_true(!less->fits || less->alloc_retries > 0);
    g_assert_cmpuint(less->peak.at.allocated_bytes, >=, ample->peak.at.allocated_bytes);
    return true;
}

static void test_memory_is_kept_to(void) {
    for_each_draw(memory_is_kept_to, 50);
}

/* A larger batch asks for more, of memory and of time. */
static bool batches_grow(Draw *draw) {
    g_autofree char *larger = g_strconcat(draw->strategy, " micro_batch=7", NULL);
    g_autoptr(Plan) plan = toy_plan_if_known(draw->network, larger);
    g_autoptr(SimPrediction) small = predict(draw, false);
    if (!plan) {
        return false;
    }
    const SimOptions options = {.steps = 5};
    g_autoptr(SimPrediction) large = plays_predict(plan, draw->cluster, &options, NULL);
    g_assert_cmpuint(large->peak.at.allocated_bytes, >=, small->peak.at.allocated_bytes);
    g_assert_cmpint(large->compute_ns, >=, small->compute_ns);
    g_assert_cmpfloat(large->flops, >, small->flops);
    return true;
}

static void test_batches_grow(void) {
    for_each_draw(batches_grow, 100);
}

/* ---- speed ---------------------------------------------------------------------------------- */

static SimTime last_end_of(const Draw *draw) {
    const SimOptions options = {.steps = 4, .no_sharing = true, .arena = true};
    g_autoptr(SimPrediction) played = plays_predict(draw->plan, draw->cluster, &options, NULL);
    SimTime end = 0;
    for (uint32_t step = 0; step < played->n_steps; step++) {
        end += played->step_ns[step];
    }
    return end;
}

/* Whatever is faster, the last step does not end later: by an algorithm that is forced, where
 * nothing is shared, no block comes back sooner or later and no lane falls asleep. */
static bool more_is_never_slower(Draw *draw) {
    ModelCluster *cluster = draw->cluster;
    double *const rates[] = {&cluster->inter_node_nic_gb_per_s,
                             &cluster->intra_node_nccl_channel_gb_per_s,
                             &cluster->intra_node_bus_gb_per_s, &cluster->device_memory_gb_per_s,
                             &cluster->device_host_link_gb_per_s};
    model_cluster_force_nccl(cluster, "ring", "simple");
    cluster->device_lane_wake_us = 0;
    SimTime before = last_end_of(draw);
    for (unsigned i = 0; i < G_N_ELEMENTS(rates); i++) {
        *rates[i] *= 1.5;
        SimTime now = last_end_of(draw);
        g_assert_cmpint(now, <=, before);
        before = now;
    }
    return true;
}

static void test_more_is_never_slower(void) {
    for_each_draw(more_is_never_slower, 100);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/draws/one is as all", test_one_is_as_all);
    g_test_add_func("/sim/draws/books add up", test_books_add_up);
    g_test_add_func("/sim/draws/memory is kept to", test_memory_is_kept_to);
    g_test_add_func("/sim/draws/batches grow", test_batches_grow);
    g_test_add_func("/sim/draws/more is never slower", test_more_is_never_slower);
    return g_test_run();
}
