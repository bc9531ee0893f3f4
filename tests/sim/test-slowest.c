/* By how much the slowest of many ranks is slower than the mean (sim/jitter.h). */
#include <glib.h>
#include <math.h>

#include "sim/jitter.h"
#include "sim/predict.h"
#include "tests/sim/toy.h"

static void test_slowest_of_many(void) {
    g_assert_cmpfloat(sim_jitter_slowest(0, 512), ==, 1);
    g_assert_cmpfloat(sim_jitter_slowest(0.5, 1), ==, 1);
    /* Expected largest of n normal draws (Harter 1961, table of order statistics; of two and three
     * 1 / sqrt(pi) and 3 / (2 sqrt(pi))). Factors of a small share are as good as normal. */
    static const struct {
        uint32_t n;
        double largest;
    } known[] = {{2, 0.56419},  {3, 0.84628},   {8, 1.42360},  {32, 2.06967},
                 {64, 2.34373}, {128, 2.59461}, {400, 2.96818}};
    static const double share = 1e-6;
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        double got = (sim_jitter_slowest(share, known[i].n) - 1) / share;
        g_test_message("%u: %.5f, known %.5f", known[i].n, got, known[i].largest);
        g_assert_cmpfloat(fabs(got - known[i].largest), <, 2e-5);
    }
}

static double slowest_drawn(const SimJitter *jitter, uint32_t n) {
    double slowest = 0;
    for (uint32_t who = 0; who < n; who++) {
        slowest = MAX(slowest, sim_jitter_factor(jitter, SIM_JITTER_GPU, who, 0, 0));
    }
    return slowest;
}

/* What every-rank play draws, and what a rank that stands for all is slowed by. */
static void test_slowest_of_many_is_the_mean_of_draws(void) {
    static const double shares[] = {0.015, 0.5};
    static const uint32_t numbers[] = {2, 8, 128};
    enum {
        DRAWS = 4000
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(shares) * G_N_ELEMENTS(numbers); i++) {
        double share = shares[i % 2], sum = 0, squares = 0;
        uint32_t n = numbers[i / 2];
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            SimJitter jitter = {.seed = seed, .shares[SIM_JITTER_GPU] = share};
            double slowest = slowest_drawn(&jitter, n);
            sum += slowest;
            squares += slowest * slowest;
        }
        double mean = sum / DRAWS, error = sqrt((squares / DRAWS - mean * mean) / DRAWS);
        double expected = sim_jitter_slowest(share, n);
        g_test_message("%u of %g: %.6f drawn, %.6f expected", n, share, mean, expected);
        g_assert_cmpfloat(fabs(mean - expected), <, 4 * error);
    }
}

static void test_representative_rank_is_the_slowest(void) {
    ModelCluster cluster = toy_cluster;
    cluster.jitter_gpu_percent = 10;
    g_autoptr(Plan) plan = toy_plan(TOY_FILL TOY_GATHER, "");
    const SimOptions options = {.steps = 3};
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = sim_predict(plan, &cluster, &options, trace, &error);
    g_assert_no_error(error);
    g_assert_nonnull(prediction);
    SimTime fill = sim_time_from_ns(400 * sim_jitter_slowest(0.1, 8));
    g_autofree char *expected =
        g_strdup_printf("fill:0-%" G_GINT64_FORMAT " all_gather:0-700", fill);
    g_autofree char *timeline = toy_timeline(trace, 0);
    g_assert_cmpstr(timeline, ==, expected);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/slowest/expected", test_slowest_of_many);
    g_test_add_func("/sim/slowest/drawn", test_slowest_of_many_is_the_mean_of_draws);
    g_test_add_func("/sim/slowest/representative", test_representative_rank_is_the_slowest);
    return g_test_run();
}
