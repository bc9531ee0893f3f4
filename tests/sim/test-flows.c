/* sim/fair and sim/flows: laws of lone and equal flows, rates against a second way to find them,
 * ends worked out by hand. */
#include <glib.h>
#include <math.h>

#include "sim/links/fair.h"
#include "sim/links/flows.h"

/* ---- rates ---------------------------------------------------------------------------------- */

enum {
    LINKS = 12,
    USERS = 16,
    LONGEST = 4
};

typedef struct {
    uint32_t path[LONGEST], n, number;
    bool there;
} Rival;

/* Max-min by its definition and nothing else: all rates rise together, a hair at a time in exact
 * steps to the next link that is full; who crosses a full link stays where it is. */
static void by_definition(const double *capacities, const Rival *rivals, double *rates) {
    bool held[USERS];
    for (unsigned u = 0; u < USERS; u++) {
        rates[u] = 0;
        held[u] = !rivals[u].there;
    }
    for (;;) {
        double rise = INFINITY, used[LINKS] = {0}, open[LINKS] = {0};
        for (unsigned u = 0; u < USERS; u++) {
            for (unsigned i = 0; rivals[u].there && i < rivals[u].n; i++) {
                used[rivals[u].path[i]] += rates[u];
                open[rivals[u].path[i]] += !held[u];
            }
        }
        for (unsigned l = 0; l < LINKS; l++) {
            rise = open[l] > 0 ? MIN(rise, (capacities[l] - used[l]) / open[l]) : rise;
        }
        if (isinf(rise)) {
            return;
        }
        for (unsigned u = 0; u < USERS; u++) {
            rates[u] += held[u] ? 0 : rise;
        }
        for (unsigned u = 0; u < USERS; u++) {
            for (unsigned i = 0; i < rivals[u].n; i++) {
                unsigned l = rivals[u].path[i];
                held[u] |= open[l] > 0 && used[l] + rise * open[l] >= capacities[l] * (1 - 1e-12);
            }
        }
    }
}

static void change_one(SimFair *fair, Rival *rival, GRand *dice) {
    if (rival->there) {
        sim_fair_remove(fair, rival->number);
        rival->there = false;
        return;
    }
    rival->n = (uint32_t)g_rand_int_range(dice, 1, LONGEST + 1);
    for (unsigned i = 0; i < rival->n; i++) { /* a link may stand twice in a path */
        rival->path[i] = (uint32_t)g_rand_int_range(dice, 0, LINKS);
    }
    rival->number = sim_fair_add(fair, rival->path, rival->n);
    rival->there = true;
}

static void test_agrees_with_definition(void) {
    g_autoptr(GRand) dice = g_rand_new_with_seed(1);
    double worst = 0;
    for (unsigned fabric = 0; fabric < 200; fabric++) {
        double capacities[LINKS], rates[USERS];
        for (unsigned l = 0; l < LINKS; l++) {
            capacities[l] = g_rand_boolean(dice) ? 10 : g_rand_double_range(dice, 1, 100);
        }
        g_autoptr(SimFair) fair = sim_fair_new(capacities, LINKS);
        Rival rivals[USERS] = {0};
        for (unsigned round = 0; round < 60; round++) {
            for (int i = g_rand_int_range(dice, 1, 4); i > 0; i--) {
                change_one(fair, &rivals[g_rand_int_range(dice, 0, USERS)], dice);
            }
            const uint32_t *changed;
            sim_fair_solve(fair, &changed);
            by_definition(capacities, rivals, rates);
            for (unsigned u = 0; u < USERS; u++) {
                if (rivals[u].there) {
                    double rate = sim_fair_rate(fair, rivals[u].number);
                    worst = MAX(worst, fabs(rate - rates[u]) / rates[u]);
                }
            }
        }
    }
    g_test_message("largest relative difference %.2g", worst);
    g_assert_cmpfloat(worst, <, 1e-9);
}

/* Only whom a change reaches is told of: two pairs on links of their own. */
static void test_tells_only_whom_it_reaches(void) {
    const double capacities[] = {8, 6};
    g_autoptr(SimFair) fair = sim_fair_new(capacities, 2);
    const uint32_t left[] = {0}, right[] = {1};
    const uint32_t *changed;
    uint32_t a = sim_fair_add(fair, left, 1), b = sim_fair_add(fair, right, 1);
    g_assert_cmpuint(sim_fair_solve(fair, &changed), ==, 2);
    uint32_t c = sim_fair_add(fair, right, 1);
    g_assert_cmpuint(sim_fair_solve(fair, &changed), ==, 2);
    g_assert_true((changed[0] == b && changed[1] == c) || (changed[0] == c && changed[1] == b));
    g_assert_cmpfloat(sim_fair_rate(fair, a), ==, 8);
    g_assert_cmpfloat(sim_fair_rate(fair, b), ==, 3);
    sim_fair_remove(fair, b);
    g_assert_cmpuint(sim_fair_solve(fair, &changed), ==, 1);
    g_assert_cmpfloat(sim_fair_rate(fair, c), ==, 6);
    g_assert_cmpuint(sim_fair_solve(fair, &changed), ==, 0);
}

/* ---- flows in time -------------------------------------------------------------------------- */

static void assert_end(SimFlows *flows, uint64_t tag, SimTime at) {
    uint64_t ended;
    SimTime when;
    g_assert_cmpint(sim_flows_next(flows), ==, at);
    g_assert_true(sim_flows_pop(flows, &ended, &when));
    g_assert_cmpuint(ended, ==, tag);
    g_assert_cmpint(when, ==, at);
}

static void assert_none(SimFlows *flows) {
    uint64_t tag;
    SimTime at;
    g_assert_cmpint(sim_flows_next(flows), ==, SIM_NEVER);
    g_assert_false(sim_flows_pop(flows, &tag, &at));
}

static void test_lone_flow(void) {
    const double capacities[] = {20, 25, 4};
    g_autoptr(SimFlows) flows = sim_flows_new(capacities, 3);
    const uint32_t path[] = {0, 1};
    sim_flows_start(flows, path, 2, 1e6, 7, 100); /* 1 MB at 20 GB/s */
    assert_end(flows, 7, 100 + 50000);
    sim_flows_start(flows, path, 2, 0, 8, 60000); /* nothing takes no time */
    assert_end(flows, 8, 60000);
    assert_none(flows);
}

static void test_equal_flows_share(void) {
    const double capacities[] = {20};
    const uint32_t path[] = {0};
    for (uint64_t n = 1; n <= 5; n++) {
        g_autoptr(SimFlows) flows = sim_flows_new(capacities, 1);
        for (uint64_t tag = 0; tag < n; tag++) {
            sim_flows_start(flows, path, 1, 1e6, tag, 0);
        }
        for (uint64_t tag = 0; tag < n; tag++) {
            assert_end(flows, tag, (SimTime)n * 50000);
        }
    }
}

/* Two of 1000 bytes on a link of 10, the second from 40 on: at 40 the first has 600 left, both go
 * at 5; it ends at 160. The second then has 400 left and goes at 10: it ends at 200. */
static void test_ends_move(void) {
    const double capacities[] = {10};
    const uint32_t path[] = {0};
    g_autoptr(SimFlows) flows = sim_flows_new(capacities, 1);
    sim_flows_start(flows, path, 1, 1000, 1, 0);
    sim_flows_start(flows, path, 1, 1000, 2, 40);
    assert_end(flows, 1, 160);
    assert_end(flows, 2, 200);
    assert_none(flows);
}

/* The textbook's: a over both links, b over the first, c and d over the second. The second holds a,
 * c, d to 3 each; b gets what a leaves of the first: 7. */
static void test_bottlenecks(void) {
    const double capacities[] = {10, 9};
    const uint32_t both[] = {0, 1}, first[] = {0}, second[] = {1};
    g_autoptr(SimFlows) flows = sim_flows_new(capacities, 2);
    sim_flows_start(flows, both, 2, 3000, 'a', 0);
    sim_flows_start(flows, first, 1, 3500, 'b', 0);
    sim_flows_start(flows, second, 1, 3000, 'c', 0);
    sim_flows_start(flows, second, 1, 6000, 'd', 0);
    assert_end(flows, 'b', 500); /* a alone on the first link from now on, but held by the second */
    assert_end(flows, 'a', 1000);
    assert_end(flows, 'c', 1000);
    assert_end(flows, 'd', 1000 + 3000 / 9 + 0);
    assert_none(flows);
}

/* No link carries more than it can: over random flows, all of a link's bytes take at least their
 * time at its capacity; and all end. The same calls give the same ends. */
static uint64_t play_random(uint32_t seed, SimTime *ret_last, double *ret_least) {
    const double capacities[] = {5, 7, 9, 11, 13, 25};
    g_autoptr(SimFlows) flows = sim_flows_new(capacities, G_N_ELEMENTS(capacities));
    g_autoptr(GRand) dice = g_rand_new_with_seed(seed);
    double carried[G_N_ELEMENTS(capacities)] = {0};
    uint64_t signature = 0, tag;
    SimTime at = 0;
    for (unsigned i = 0; i < 500; i++) {
        uint32_t from = (uint32_t)g_rand_int_range(dice, 0, 5);
        const uint32_t path[] = {from, 5};
        double bytes = g_rand_double_range(dice, 0, 1e5);
        SimTime start = at + g_rand_int_range(dice, 0, 4000);
        while (sim_flows_next(flows) < start) {
            sim_flows_pop(flows, &tag, &at);
            signature = signature * 1099511628211u + tag + (uint64_t)at;
        }
        at = start;
        sim_flows_start(flows, path, from == 4 ? 1 : 2, bytes, i, at);
        carried[from] += bytes;
        carried[5] += from == 4 ? 0 : bytes;
    }
    while (sim_flows_pop(flows, &tag, &at)) {
        signature = signature * 1099511628211u + tag + (uint64_t)at;
    }
    *ret_last = at;
    *ret_least = 0;
    for (unsigned l = 0; l < G_N_ELEMENTS(capacities); l++) {
        *ret_least = MAX(*ret_least, carried[l] / capacities[l]);
    }
    return signature;
}

static void test_random_is_possible_and_repeats(void) {
    for (uint32_t seed = 0; seed < 20; seed++) {
        SimTime last, again;
        double least;
        uint64_t signature = play_random(seed, &last, &least);
        g_assert_cmpfloat((double)last + 500, >=, least); /* each end is rounded once */
        g_assert_cmpuint(play_random(seed, &again, &least), ==, signature);
        g_assert_cmpint(last, ==, again);
    }
}

/* A flow in two equal halves, among others that begin at random. Fairness is by flow, so two halves
 * get more than the whole did: it never ends later. What it wins the others lose, so on one link
 * the last end stays where it was, and alone it gains nothing. */
static SimTime end_of_split(uint32_t seed, unsigned n_others, uint32_t n_links, bool is_split,
                            SimTime *ret_last) {
    const double capacities[] = {5, 7, 9, 11};
    g_autoptr(SimFlows) flows = sim_flows_new(capacities, n_links);
    g_autoptr(GRand) dice = g_rand_new_with_seed(seed);
    SimTime end = 0;
    uint64_t tag;
    double whole = g_rand_double_range(dice, 1e4, 1e6);
    uint32_t from = (uint32_t)g_rand_int_range(dice, 0, (gint32)n_links);
    for (unsigned part = 0; part <= is_split; part++) {
        sim_flows_start(flows, &from, 1, is_split ? whole / 2 : whole, 0, 0);
    }
    for (unsigned i = 1; i <= n_others; i++) {
        uint32_t first = (uint32_t)g_rand_int_range(dice, 0, (gint32)n_links);
        const uint32_t path[] = {first, (first + 1) % n_links};
        sim_flows_start(flows, path, n_links > 1 ? 2 : 1, g_rand_double_range(dice, 1e3, 1e6), i,
                        0);
    }
    while (sim_flows_pop(flows, &tag, ret_last)) {
        end = tag ? end : *ret_last;
    }
    return end;
}

static void test_split(void) {
    for (uint32_t seed = 0; seed < 300; seed++) {
        unsigned n_others = seed % 10;
        for (uint32_t n_links = 1; n_links <= 4; n_links++) {
            SimTime last, last_split;
            SimTime whole = end_of_split(seed, n_others, n_links, false, &last);
            SimTime split = end_of_split(seed, n_others, n_links, true, &last_split);
            g_assert_cmpint(split, <=, whole + 1);
            g_assert_true(n_others > 0 || ABS(split - whole) <= 1);
            g_assert_true(n_links > 1 || ABS(last_split - last) <= (SimTime)n_others + 2);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/fair/agrees with max-min by definition", test_agrees_with_definition);
    g_test_add_func("/sim/fair/tells only whom it reaches", test_tells_only_whom_it_reaches);
    g_test_add_func("/sim/flows/alone: bytes over bandwidth", test_lone_flow);
    g_test_add_func("/sim/flows/n equal ones take n times as long", test_equal_flows_share);
    g_test_add_func("/sim/flows/ends move", test_ends_move);
    g_test_add_func("/sim/flows/bottlenecks", test_bottlenecks);
    g_test_add_func("/sim/flows/no link carries more than it can; same calls, same ends",
                    test_random_is_possible_and_repeats);
    g_test_add_func("/sim/flows/two halves", test_split);
    return g_test_run();
}
