/* sim/links/fair: rates against a second way to find them, and against some worked out by hand. */
#include <glib.h>
#include <math.h>
#include <stdbool.h>

#include "sim/links/fair.h"

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

/* The textbook's: a over both links, b over the first, c and d over the second. The second holds a,
 * c and d to 3 each; b gets what a leaves of the first. */
static void test_bottlenecks(void) {
    const double capacities[] = {10, 9};
    const uint32_t both[] = {0, 1}, first[] = {0}, second[] = {1};
    g_autoptr(SimFair) fair = sim_fair_new(capacities, 2);
    uint32_t a = sim_fair_add(fair, both, 2), b = sim_fair_add(fair, first, 1);
    uint32_t c = sim_fair_add(fair, second, 1), d = sim_fair_add(fair, second, 1);
    const uint32_t *changed;
    g_assert_cmpuint(sim_fair_solve(fair, &changed), ==, 4);
    g_assert_cmpfloat(sim_fair_rate(fair, a), ==, 3);
    g_assert_cmpfloat(sim_fair_rate(fair, b), ==, 7);
    g_assert_cmpfloat(sim_fair_rate(fair, c), ==, 3);
    g_assert_cmpfloat(sim_fair_rate(fair, d), ==, 3);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/fair/agrees with max-min by definition", test_agrees_with_definition);
    g_test_add_func("/sim/fair/tells only whom it reaches", test_tells_only_whom_it_reaches);
    g_test_add_func("/sim/fair/bottlenecks", test_bottlenecks);
    return g_test_run();
}
