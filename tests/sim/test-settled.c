/* Steps are played until they are like those to come: twenty where the allocator retries, fewer
 * where they are long. */
#include "sim/settled.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/trace.h"

/* Its retries are all in the first half of its steps, or no more often there than later. */
static void check_retries(const SimPrediction *prediction) {
    double all = (double)prediction->alloc_retries, later = prediction->retries_per_step;
    uint32_t n_later = prediction->n_steps - prediction->n_steps / 2;
    g_assert_cmpfloat(later * n_later, <=, all);
    g_assert_true(all == 0 || later > 0 ||
                  prediction->step_ns[prediction->n_steps - 1] <= prediction->median_step_ns);
}

/* Of many sizes of memory near the edge: four steps without retries, twenty with, with and without
 * a trace; and as many as are asked for. */
static void near_the_edge(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=32 param_dtype=bf16 micro_batch=3");
    const SimOptions four = {.steps = SIM_DEFAULT_STEPS}, twenty = {.steps = SIM_STEPS_SETTLED},
                     as_needed = {.steps = SIM_STEPS_IT_TAKES};
    g_autoptr(SimPrediction) free = plays_predict(plan, cluster, &four, NULL);
    uint64_t outside = cluster->device_memory_bytes - free->allocator_bytes;
    unsigned n_retrying = 0, n_ending = 0, n_other = 0;
    for (unsigned permille = 900; permille <= 1000; permille += 2) {
        cluster->device_memory_bytes = outside + free->peak_reserved_bytes / 1000 * permille;
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_new();
        g_autoptr(SimPrediction) few = plays_predict(plan, cluster, &four, NULL);
        bool retries = few->fits && few->alloc_retries > 0;
        g_autoptr(SimPrediction) many = plays_predict(plan, cluster, &twenty, NULL);
        g_autoptr(SimPrediction) taken =
            sim_predict_settled(plan, cluster, &as_needed, trace, &error);
        g_autoptr(SimPrediction) asked = sim_predict_settled(plan, cluster, &four, NULL, &error);
        g_assert_no_error(error);
        g_test_message("%u: %s, %u retries, %.3f to %.3f ms", permille, few->fits ? "fits" : "no",
                       (unsigned)few->alloc_retries, (double)few->least_step_ns / 1e6,
                       (double)few->most_step_ns / 1e6);
        g_assert_cmpstr(trace_get(trace, "steps"), ==, retries ? "20" : "4");
        g_assert_cmpint(taken->median_step_ns, ==,
                        retries ? many->median_step_ns : few->median_step_ns);
        g_assert_cmpuint(asked->n_steps, ==, SIM_DEFAULT_STEPS);
        check_retries(taken);
        n_retrying += retries && taken->retries_per_step > 0;
        n_ending += retries && taken->retries_per_step == 0;
        n_other += many->median_step_ns != few->median_step_ns && retries;
    }
    g_test_message("%u retry for good, %u in the first steps; the step of %u differs", n_retrying,
                   n_ending, n_other);
    g_assert_cmpuint(n_retrying, >, 0);
    g_assert_cmpuint(n_ending, >, 0);
    g_assert_cmpuint(n_other, >, 0);
}

/* The most memory, in thousandths of what would do, with which the plan fits and retries for good,
 * played in twenty steps. */
static SimPrediction *retrying(const Plan *plan, ModelCluster *cluster) {
    const SimOptions twenty = {.steps = SIM_STEPS_SETTLED};
    g_autoptr(SimPrediction) free = plays_predict(plan, cluster, &twenty, NULL);
    uint64_t outside = cluster->device_memory_bytes - free->allocator_bytes;
    for (unsigned permille = 1000; permille > 700; permille -= 5) {
        cluster->device_memory_bytes = outside + free->peak_reserved_bytes / 1000 * permille;
        g_autoptr(SimPrediction) many = plays_predict(plan, cluster, &twenty, NULL);
        if (many->fits && many->retries_per_step > 0) {
            return g_steal_pointer(&many);
        }
    }
    g_assert_not_reached();
}

/* Steps of many passes retry in each of them: fewer say what twenty do. */
static void many_passes(void) {
    static const struct {
        const char *strategy;
        unsigned steps;
    } cases[] = {{"ranks=32 param_dtype=bf16 micro_batch=3 accumulate=32", 10},
                 {"ranks=32 param_dtype=bf16 micro_batch=3 accumulate=160", 4}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
        g_autoptr(Plan) plan = toy_network_plan("gpt2", cases[i].strategy);
        const SimOptions as_needed = {.steps = SIM_STEPS_IT_TAKES};
        g_autoptr(SimPrediction) many = retrying(plan, cluster);
        g_autoptr(SimPrediction) taken = sim_predict_settled(plan, cluster, &as_needed, NULL, NULL);
        double step_ns = (double)many->median_step_ns;
        g_test_message("%s: %.2f and %.2f retries a step, %.3f and %.3f ms", cases[i].strategy,
                       many->retries_per_step, taken->retries_per_step, step_ns / 1e6,
                       (double)taken->median_step_ns / 1e6);
        g_assert_cmpuint(taken->n_steps, ==, cases[i].steps);
        g_assert_cmpfloat_with_epsilon((double)taken->median_step_ns, step_ns, 0.01 * step_ns);
        g_assert_cmpfloat_with_epsilon(taken->retries_per_step, many->retries_per_step,
                                       0.1 * many->retries_per_step);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/settled/near the edge", near_the_edge);
    g_test_add_func("/sim/settled/many passes", many_passes);
    return g_test_run();
}
