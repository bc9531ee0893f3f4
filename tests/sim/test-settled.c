/* Steps are played until they are like those to come. */
#include "sim/settled.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/trace.h"

static bool is_unlike(const SimPrediction *prediction) {
    return prediction->fits && prediction->alloc_retries > 0 &&
           (double)prediction->most_step_ns > 1.5 * (double)prediction->least_step_ns;
}

/* Of many sizes of memory near the edge: four steps where they are alike, twenty where not, with
 * and without a trace; and as many as are asked for. */
static void near_the_edge(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=32 param_dtype=bf16 micro_batch=3");
    const SimOptions four = {.steps = SIM_DEFAULT_STEPS}, twenty = {.steps = SIM_STEPS_SETTLED},
                     as_needed = {.steps = SIM_STEPS_IT_TAKES};
    g_autoptr(SimPrediction) free = plays_predict(plan, cluster, &four, NULL);
    uint64_t outside = cluster->device_memory_bytes - free->allocator_bytes;
    unsigned n_unlike = 0, n_alike = 0;
    for (unsigned permille = 900; permille <= 1000; permille += 2) {
        cluster->device_memory_bytes = outside + free->peak_reserved_bytes / 1000 * permille;
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_new();
        g_autoptr(SimPrediction) few = plays_predict(plan, cluster, &four, NULL);
        bool unlike = is_unlike(few);
        g_autoptr(SimPrediction) many = plays_predict(plan, cluster, &twenty, NULL);
        g_autoptr(SimPrediction) taken =
            sim_predict_settled(plan, cluster, &as_needed, trace, &error);
        g_autoptr(SimPrediction) asked = sim_predict_settled(plan, cluster, &four, NULL, &error);
        g_assert_no_error(error);
        g_test_message("%u: %s, %u retries, %.3f to %.3f ms", permille, few->fits ? "fits" : "no",
                       (unsigned)few->alloc_retries, (double)few->least_step_ns / 1e6,
                       (double)few->most_step_ns / 1e6);
        g_assert_cmpstr(trace_get(trace, "steps"), ==, unlike ? "20" : "4");
        g_assert_cmpint(taken->median_step_ns, ==,
                        unlike ? many->median_step_ns : few->median_step_ns);
        g_assert_cmpuint(asked->n_steps, ==, SIM_DEFAULT_STEPS);
        n_unlike += unlike;
        n_alike += !unlike && few->alloc_retries > 0;
    }
    g_test_message("%u unlike, %u alike", n_unlike, n_alike);
    g_assert_cmpuint(n_unlike, >, 0);
    g_assert_cmpuint(n_alike, >, 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/settled/near the edge", near_the_edge);
    return g_test_run();
}
