/* Which links of rings are kept: rates must be as if all were. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "sim/links/fair.h"
#include "sim/ranks/binding-links.h"

enum {
    N_LINKS = 40,
    N_RINGS = 6,
    N_KINDS = 9 /* of links that go together */
};

typedef struct {
    SimCommunicator rings[N_RINGS];
    double capacities[N_LINKS];
    SimFabric fabric;
    SimCommunicators made;
} Fixture;

/* Links go together, link i with those of kind i % N_KINDS: a ring uses all of a kind, so often, or
 * none. Each link has a capacity of its own. */
static void draw(Fixture *fixture, GRand *rand) {
    for (uint32_t i = 0; i < N_LINKS; i++) {
        fixture->capacities[i] = g_rand_double_range(rand, 0.1, 1);
    }
    for (unsigned ring = 0; ring < N_RINGS; ring++) {
        GArray *links = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        uint32_t always = (uint32_t)g_rand_int_range(rand, 0, N_KINDS);
        for (uint32_t kind = 0; kind < N_KINDS; kind++) {
            int drawn = g_rand_int_range(rand, -2, 3), uses = MAX(kind == always, drawn);
            for (uint32_t link = kind; link < N_LINKS; link += N_KINDS) {
                for (int use = 0; use < uses; use++) {
                    g_array_append_val(links, link);
                }
            }
        }
        fixture->rings[ring].links = links;
    }
    fixture->fabric = (SimFabric){.capacities = fixture->capacities, .n_links = N_LINKS};
    fixture->made = (SimCommunicators){.all = fixture->rings, .n = N_RINGS};
}

static void clear(Fixture *fixture) {
    for (unsigned ring = 0; ring < N_RINGS; ring++) {
        g_array_unref(fixture->rings[ring].links);
    }
    g_free(fixture->made.capacities);
}

/* The rates of those rings that run, a bit each; 0 of the others. */
static void rates_of(const Fixture *fixture, const double *capacities, uint32_t n_links,
                     unsigned running, double *ret_rates) {
    g_autoptr(SimFair) fair = sim_fair_new(capacities, n_links);
    uint32_t users[N_RINGS];
    const uint32_t *changed;
    for (unsigned ring = 0; ring < N_RINGS; ring++) {
        const GArray *links = fixture->rings[ring].links;
        if (running >> ring & 1) {
            users[ring] = sim_fair_add(fair, (uint32_t *)(gpointer)links->data, links->len);
        }
    }
    sim_fair_solve(fair, &changed);
    for (unsigned ring = 0; ring < N_RINGS; ring++) {
        ret_rates[ring] = running >> ring & 1 ? sim_fair_rate(fair, users[ring]) : 0;
    }
}

static void test_rates_are_the_same(void) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (unsigned i = 0; i < 50; i++) {
        Fixture fixture;
        double before[1 << N_RINGS][N_RINGS], after[N_RINGS];
        draw(&fixture, rand);
        for (unsigned running = 0; running < 1 << N_RINGS; running++) {
            rates_of(&fixture, fixture.capacities, N_LINKS, running, before[running]);
        }
        sim_keep_binding_links(&fixture.made, &fixture.fabric);
        g_assert_cmpuint(fixture.made.n_links, <=, N_KINDS);
        for (unsigned running = 0; running < 1 << N_RINGS; running++) {
            rates_of(&fixture, fixture.made.capacities, fixture.made.n_links, running, after);
            for (unsigned ring = 0; ring < N_RINGS; ring++) {
                g_assert_cmpfloat_with_epsilon(after[ring], before[running][ring], 1e-12);
            }
        }
        clear(&fixture);
    }
}

/* Eight rings of 1024 nodes each, a rail each, and four stages: their links are few kinds, and a
 * play's cost no longer grows with the ranks that one stands for. */
static void test_large_rings_keep_few(void) {
    const Plan plan = {
        .world = 32768,
        .axes = {[PLAN_AXIS_SHARD] = 8192, [PLAN_AXIS_TENSOR] = 1, [PLAN_AXIS_PIPELINE] = 4}};
    const SimFabricShape shape = {.ranks = 32768, .ranks_a_node = 8, .nvlink = 1, .nic = 1};
    g_autoptr(SimFabric) fabric = sim_fabric_new(&shape);
    g_autofree bool *played = g_new0(bool, plan.world);
    SimCommunicators made;
    for (uint32_t stage = 0; stage < 4; stage++) {
        played[stage * 8192] = true;
    }
    sim_communicators_init(&made, &plan, fabric, played, false);
    g_assert_cmpuint(made.n_links, <, 40);
    for (uint32_t i = 0; i < made.n; i++) {
        g_assert_cmpuint(made.all[i].links->len, <=, 12);
    }
    sim_communicators_clear(&made);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/binding-links/rates are the same", test_rates_are_the_same);
    g_test_add_func("/sim/binding-links/large rings keep few", test_large_rings_keep_few);
    return g_test_run();
}
