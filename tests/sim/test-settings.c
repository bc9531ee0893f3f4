/* What a prediction was asked for comes out of the trace's header as it went in. */
#include <glib.h>
#include <string.h>

#include "sim/settings.h"
#include "tests/sim/toy.h"

static void test_back_and_forth(void) {
    const SimTrouble troubles[] = {{SIM_TROUBLE_SLOW, 3, 3, 1.2},
                                   {SIM_TROUBLE_NVLINK, 0, 7, 1.0 / 3},
                                   {SIM_TROUBLE_NIC, 8, 15, 1e-6}};
    SimOptions asked = {.steps = 20,
                        .no_sharing = true,
                        .every_rank = true,
                        .jitter = {UINT64_MAX, {0.07, 0.015, 0.3, 0.001}},
                        .troubles = troubles,
                        .n_troubles = G_N_ELEMENTS(troubles)};
    ModelCluster cluster = toy_cluster;
    cluster.nccl_algo = (char *)"tree";
    cluster.nccl_proto = (char *)"ll128";
    g_autoptr(Trace) trace = trace_new();
    sim_settings_write(trace, &cluster, &asked);
    g_autoptr(GError) error = NULL;
    g_autoptr(SimSettings) read = sim_settings_read(trace, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(read->nccl_algo, ==, "tree");
    g_assert_cmpstr(read->nccl_proto, ==, "ll128");
    g_assert_cmpuint(read->options.steps, ==, 20);
    g_assert_true(read->options.no_sharing && read->options.every_rank);
    g_assert_cmpuint(read->options.jitter.seed, ==, UINT64_MAX);
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        g_assert_cmpfloat_with_epsilon(read->options.jitter.shares[kind], asked.jitter.shares[kind],
                                       1e-15);
    }
    g_assert_cmpuint(read->options.n_troubles, ==, G_N_ELEMENTS(troubles));
    for (unsigned i = 0; i < G_N_ELEMENTS(troubles); i++) {
        const SimTrouble *trouble = &read->options.troubles[i];
        g_assert_cmpint(trouble->kind, ==, troubles[i].kind);
        g_assert_cmpuint(trouble->first_rank, ==, troubles[i].first_rank);
        g_assert_cmpuint(trouble->last_rank, ==, troubles[i].last_rank);
        g_assert_cmpfloat_with_epsilon(trouble->factor / troubles[i].factor, 1, 1e-14);
    }
}

/* A measured trace, or one of an older version. */
static void test_none(void) {
    g_autoptr(Trace) trace = trace_new();
    trace_set_uint(trace, "steps", 3);
    trace_set_uint(trace, "seed", 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(SimSettings) read = sim_settings_read(trace, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(read->options.steps, ==, SIM_DEFAULT_STEPS);
    g_assert_false(read->options.no_sharing || read->options.every_rank);
    g_assert_null(read->nccl_algo);
    g_assert_cmpuint(read->options.n_troubles, ==, 0);
}

static void test_refused(void) {
    static const char *const wrong[][2] = {
        {"sharing", "perhaps"},
        {"nccl_algo", "star"},
        {"nccl_proto", "ll256"},
        {"every_rank", "1"},
        {"jitter_percent", "-1"},
        {"spread_percent", "x"},
        {"link_jitter_percent", "-0.1"},
        {"seed", "-1"},
        {"steps", "many"},
        {"steps", "0"},
        {"steps", "10001"},
        {"jitter_percent", "1001"},
        {"troubles", "nic:1-1:1e-9"},
        {"troubles", "slow:1-1:1e-5"},
        {"troubles", "slow:1-1:1e9"},
        {"troubles", "slow"},
        {"troubles", "slow:1:2"},
        {"troubles", "slow:3-1:2"},
        {"troubles", "slow:1-1:0"},
        {"troubles", "heat:1-1:2"},
        {"troubles", "nic:1-1:2:3"},
        {"troubles", "nic:1-9999999999:2"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(Trace) trace = trace_new();
        trace_set(trace, "every_rank", "yes");
        trace_set(trace, wrong[i][0], wrong[i][1]);
        g_autoptr(GError) error = NULL;
        g_test_message("%s %s", wrong[i][0], wrong[i][1]);
        g_assert_null(sim_settings_read(trace, &error));
        g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
        g_assert_nonnull(strstr(error->message, wrong[i][0]));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/settings/back and forth", test_back_and_forth);
    g_test_add_func("/sim/settings/none", test_none);
    g_test_add_func("/sim/settings/refused", test_refused);
    return g_test_run();
}
