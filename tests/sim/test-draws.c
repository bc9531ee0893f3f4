/* Laws that hold whatever is asked for, on settings drawn at random: what a play answers. Those of
 * two plays whose settings differ are test-laws.c's.
 */
#include "tests/sim/draws.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

/* ---- one stands for all --------------------------------------------------------------------- */

static bool one_is_as_all(Draw *draw) {
    if (!draw_is_alike(draw)) {
        return false;
    }
    g_autoptr(SimPrediction) one = draw_predict(draw, false), all = draw_predict(draw, true);
    plays_assert_equal(one, all);
    return true;
}

static void test_one_is_as_all(void) {
    draw_each(one_is_as_all, 50);
}

/* ---- books ---------------------------------------------------------------------------------- */

/* Shares are of the compute lane's whole time; each is rounded down once. */
static void assert_shares_sum(const SimPrediction *prediction) {
    SimTime shares = 0, steps = 0;
    for (uint32_t i = 0; i < prediction->n_steady; i++) {
        steps += prediction->step_ns[prediction->n_steps - 1 - i];
    }
    for (unsigned share = 0; share < SIM_N_CAUSES; share++) {
        g_assert_cmpint(prediction->cause_ns[share], >=, 0);
        shares += prediction->cause_ns[share];
    }
    SimTime mean = steps / prediction->n_steady;
    g_assert_cmpint(shares, <=, mean);
    g_assert_cmpint(shares + SIM_N_CAUSES, >=, mean);
    g_assert_cmpint(prediction->compute_ns, <=, mean);
}

static bool books_add_up(Draw *draw) {
    g_autoptr(SimPrediction) prediction = draw_predict(draw, false);
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
    draw_each(books_add_up, 100);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void give(Draw *draw, uint64_t allocator_bytes) {
    draw->cluster->device_memory_bytes =
        allocator_bytes + model_cluster_outside_bytes(draw->cluster);
}

/* What was reserved is enough, and changes nothing. With a page less it is never passed: the plan
 * gives memory back and tries again, or does not fit. */
static bool memory_is_kept_to(Draw *draw) {
    const uint64_t page = 2 << 20;
    g_autoptr(SimPrediction) ample = draw_predict(draw, false);
    g_assert_true(ample->fits);
    give(draw, ample->peak_reserved_bytes);
    g_autoptr(SimPrediction) enough = draw_predict(draw, false);
    g_assert_true(enough->fits);
    plays_assert_equal(ample, enough);
    if (ample->peak_reserved_bytes <= page) {
        return false;
    }
    give(draw, ample->peak_reserved_bytes - page);
    g_autoptr(SimPrediction) less = draw_predict(draw, false);
    uint64_t reserved = less->fits ? less->peak_reserved_bytes : less->oom.at.reserved_bytes;
    g_assert_cmpuint(reserved, <=, ample->peak_reserved_bytes - page);
    g_assert_true(!less->fits || less->alloc_retries > 0);
    g_assert_cmpuint(less->peak.at.allocated_bytes, >=, ample->peak.at.allocated_bytes);
    return true;
}

static void test_memory_is_kept_to(void) {
    draw_each(memory_is_kept_to, 50);
}

/* A larger batch asks for more, of memory and of time. */
static bool batches_grow(Draw *draw) {
    g_autofree char *larger = g_strconcat(draw->strategy, " micro_batch=7", NULL);
    g_autoptr(Plan) plan = toy_plan_if_known(draw->network, larger);
    g_autoptr(SimPrediction) small = draw_predict(draw, false);
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
    draw_each(batches_grow, 100);
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
    draw_each(more_is_never_slower, 100);
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
