/* What the host waits for: the end of a step, and numbers that it reads from the device. */
#include <glib.h>
#include <string.h>

#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

/* A host that waits where a step ends issues nothing of the next one before all of it is through;
 * one that does not wait runs ahead, and, where nothing is decided by what time it is, its steps
 * are never longer. */
static void test_host_waits_where_a_step_ends(void) {
    static const char *const keys[] = {
        "ranks=2 sharding=full",
        "ranks=8 sharding=full flavour=fsdp1 micro_batch=4",
        "ranks=4 sharding=grad-op flavour=fsdp1 limit_all_gathers=0",
        "ranks=4 sharding=optimizer-only",
        "ranks=2 sharding=none accumulate=2",
        "ranks=1 sharding=none checkpointing=full",
    };
    ModelCluster cluster = plays_busy_cluster();
    cluster.device_memory_gb_per_s = 10; /* so that the device is what takes long */
    const SimOptions options = {.steps = 5, .no_sharing = true, .arena = true};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        SimTime median[2];
        for (unsigned waits = 0; waits < 2; waits++) {
            g_autofree char *strategy =
                g_strdup_printf("%s step_sync=%s", keys[i], waits ? "yes" : "no");
            g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
            g_autoptr(Trace) trace = trace_new();
            g_autoptr(SimPrediction) played = sim_predict(plan, &cluster, &options, trace, NULL);
            median[waits] = played->median_step_ns;
            SimTime ends[5] = {0}, issued[5];
            for (unsigned step = 0; step < options.steps; step++) {
                issued[step] = SIM_NEVER;
            }
            for (guint j = 0; j < trace->ops->len; j++) {
                const TraceOpRow *row = trace_op(trace, j);
                if (row->step >= 0) {
                    ends[row->step] = MAX(ends[row->step], row->end_ns);
                    issued[row->step] = MIN(issued[row->step], row->host_issue_ns);
                }
            }
            for (unsigned step = 1; step < options.steps; step++) {
                g_assert_true((issued[step] >= ends[step - 1]) == waits);
            }
        }
        g_test_message("%s: a step takes %.3f ms, %.3f where the host waits", keys[i],
                       (double)median[0] / 1e6, (double)median[1] / 1e6);
        g_assert_cmpint(median[1], >, median[0]);
    }
}

#define LOOP_US 3500

static SimTime step_of(const Plan *plan, const ModelCluster *cluster) {
    const SimOptions options = {.steps = 5, .no_sharing = true, .arena = true};
    g_autoptr(SimPrediction) played = sim_predict(plan, cluster, &options, NULL, NULL);
    return played->median_step_ns;
}

/* What a loop does between steps, by itself or by the token, is paid once a step, in full where the
 * host waits for the end of a step or is what takes long; a host that is further ahead than that
 * has it for nothing. */
static void test_loop_is_paid_once_a_step(void) {
    static const char *const keys[] = {
        "ranks=2 sharding=full",
        "ranks=4 sharding=grad-op flavour=fsdp1 accumulate=3",
        "ranks=1 sharding=none checkpointing=full",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        for (unsigned waits = 0; waits < 2; waits++) {
            g_autofree char *strategy =
                g_strdup_printf("%s step_sync=%s", keys[i], waits ? "yes" : "no");
            g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
            for (unsigned slow_device = 0; slow_device < 2; slow_device++) {
                ModelCluster cluster = plays_busy_cluster();
                cluster.device_memory_gb_per_s = slow_device ? 0.1 : 1000;
                SimTime before = step_of(plan, &cluster);
                SimTime loop_ns = waits || !slow_device ? LOOP_US * 1000 : 0;
                cluster.host_loop_us = LOOP_US;
                g_assert_cmpint(step_of(plan, &cluster) - before, ==, loop_ns);
                cluster.host_loop_us = LOOP_US / 2;
                cluster.host_token_us = LOOP_US / 2.0 / (double)plan->tokens_per_rank;
                g_assert_cmpint(step_of(plan, &cluster) - before, ==, loop_ns);
            }
        }
    }
}

static const char *const reading[] = {
    "ranks=2 sharding=full",
    "ranks=4 sharding=full accumulate=3 accumulate_sync=every",
    "ranks=8 sharding=full flavour=fsdp1 micro_batch=4",
    "ranks=4 sharding=grad-op flavour=fsdp1 limit_all_gathers=0 optimizer_kernel=loop",
    "ranks=4 sharding=optimizer-only step_sync=no",
    "ranks=2 sharding=none accumulate=2",
    "ranks=1 sharding=none checkpointing=full optimizer_kernel=fused",
};

static bool sends_to_host(const Trace *trace, const TraceOpRow *row) {
    const TraceInstruction *instruction = trace_instruction(trace, 0, row->instruction);
    return instruction->what == TRACE_OP &&
           g_str_equal(trace_kind(trace, instruction->kind)->name, "to_host");
}

/* Until what is read has come, the host issues nothing; the rows lie in the order of issue. */
static SimTime time_of_reads(const Trace *trace, int32_t step, unsigned *ret_n) {
    SimTime reads_ns = 0, comes_ns = G_MININT64;
    *ret_n = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        g_assert_cmpint(row->host_issue_ns, >=, comes_ns);
        if (row->step >= 0 && sends_to_host(trace, row)) {
            comes_ns = row->end_ns;
            reads_ns += row->step == step ? row->end_ns - row->start_ns : 0;
            *ret_n += row->step == step;
        }
    }
    return reads_ns;
}

static SimTime play_reading(const char *strategy, const char *reads, const ModelCluster *machine,
                            unsigned *ret_n, SimTime *ret_reads_ns) {
    enum {
        STEPS = 5
    };
    const SimOptions options = {.steps = STEPS, .no_sharing = true, .arena = true};
    ModelCluster cluster = *machine;
    cluster.device_host_link_gb_per_s = 1;
    g_autofree char *words = g_strconcat(strategy, " clip=1", reads, NULL);
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", words);
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) played = sim_predict(plan, &cluster, &options, trace, NULL);
    *ret_reads_ns = time_of_reads(trace, STEPS - 1, ret_n);
    return played->median_step_ns;
}

/* A read makes a step longer, whether host or device is what takes long, and a second one never
 * makes it shorter. */
static void test_reads_are_never_faster(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(reading); i++) {
        for (unsigned slow_device = 0; slow_device < 2; slow_device++) {
            ModelCluster cluster = plays_busy_cluster();
            cluster.device_memory_gb_per_s = slow_device ? 10 : 1000;
            unsigned n, passes = strstr(reading[i], "accumulate=3")   ? 3
                                 : strstr(reading[i], "accumulate=2") ? 2
                                                                      : 1;
            SimTime reads_ns, none = play_reading(reading[i], "", &cluster, &n, &reads_ns);
            g_assert_cmpuint(n, ==, 0);
            SimTime loss = play_reading(reading[i], " host_reads=loss", &cluster, &n, &reads_ns);
            g_assert_cmpuint(n, ==, passes);
            SimTime norm = play_reading(reading[i], " host_reads=norm", &cluster, &n, &reads_ns);
            g_assert_cmpuint(n, ==, 1);
            SimTime both = play_reading(reading[i], " host_reads=both", &cluster, &n, &reads_ns);
            g_assert_cmpuint(n, ==, passes + 1);
            g_test_message("%s: a step takes %.3f ms, %.3f with its loss read, %.3f with the norm, "
                           "%.3f with both",
                           reading[i], (double)none / 1e6, (double)loss / 1e6, (double)norm / 1e6,
                           (double)both / 1e6);
            g_assert_cmpint(loss, >, none);
            g_assert_cmpint(norm, >, none);
            g_assert_cmpint(both, >=, loss);
            g_assert_cmpint(both, >=, norm);
        }
    }
}

/* With a host that costs nothing a read costs its copy and no more, unless something would have run
 * beside the end of backward: the gathers of the next pass, which are then issued later. */
static void test_reads_of_a_free_host(void) {
    ModelCluster cluster = toy_cluster;
    cluster.device_launch_overhead_ns = 1000;
    for (unsigned i = 0; i < G_N_ELEMENTS(reading); i++) {
        unsigned n;
        SimTime reads_ns, none = play_reading(reading[i], "", &cluster, &n, &reads_ns);
        SimTime norm = play_reading(reading[i], " host_reads=norm", &cluster, &n, &reads_ns);
        g_assert_cmpint(reads_ns, >, 0);
        g_assert_cmpint(norm, ==, none + reads_ns);
        SimTime both = play_reading(reading[i], " host_reads=both", &cluster, &n, &reads_ns);
        if (strstr(reading[i], "accumulate")) {
            g_assert_cmpint(both, >=, none + reads_ns);
        } else {
            g_assert_cmpint(both, ==, none + reads_ns);
        }
    }
}

/* Adam's loop that counts on the device waits once for each parameter. */
static void test_counts_are_read(void) {
    static const char loop[] = "ranks=2 sharding=none optimizer_kernel=loop";
    ModelCluster cluster = plays_busy_cluster();
    unsigned n;
    SimTime reads_ns, host = play_reading(loop, "", &cluster, &n, &reads_ns);
    SimTime device = play_reading(loop, " optimizer_count=device", &cluster, &n, &reads_ns);
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", loop);
    g_assert_cmpuint(n, ==, plan->n_parameters);
    g_assert_cmpint(device, >=, host + reads_ns);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/host-waits/host_waits_where_a_step_ends",
                    test_host_waits_where_a_step_ends);
    g_test_add_func("/sim/host-waits/loop_is_paid_once_a_step", test_loop_is_paid_once_a_step);
    g_test_add_func("/sim/host-waits/reads_are_never_faster", test_reads_are_never_faster);
    g_test_add_func("/sim/host-waits/reads_of_a_free_host", test_reads_of_a_free_host);
    g_test_add_func("/sim/host-waits/counts_are_read", test_counts_are_read);
    return g_test_run();
}
