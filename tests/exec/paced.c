/* Paced runs: the numbers of a run, at the network speed of a cluster.
 *
 * No collective is quicker than predicted, the losses are those of an unpaced run to the bit,
 * compute goes on while a collective lasts, and whoever waits sleeps. Arguments: foreshard, and the
 * folder of clusters.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/exec/runs.h"
#include "trace/summary.h"

static const char *clusters;

static bool is_collective(const Trace *trace, const TraceOpRow *row) {
    uint32_t role = trace_role_of_rank(trace, row->rank);
    uint32_t kind = trace_instruction(trace, role, row->instruction)->kind;
    return trace_kind(trace, kind)->kind_class == TRACE_KIND_COLLECTIVE;
}

/* Rows of rank 0 come in one order on both sides. */
static void none_is_quicker(const Trace *predicted, const Trace *measured) {
    unsigned n = 0;
    for (guint i = 0, j = 0; i < predicted->ops->len; i++, j++) {
        const TraceOpRow *p = trace_op(predicted, i);
        while (trace_op(measured, j)->rank != p->rank) {
            j++;
        }
        const TraceOpRow *m = trace_op(measured, j);
        g_assert_cmpuint(p->instruction, ==, m->instruction);
        if (is_collective(measured, m)) {
            g_assert_cmpint(m->end_ns - m->start_ns, >=, p->end_ns - p->start_ns);
            n++;
        }
    }
    g_test_message("%u collectives took as long as predicted, or longer", n);
    g_assert_cmpuint(n, >, 20);
}

static void compute_goes_on(const Trace *measured) {
    g_autoptr(TraceSummary) summary = trace_summary_new(measured, 0);
    const TraceStepSummary *step = trace_summary_step(summary, 3);
    g_test_message("%.1f ms of %.1f ms of communication are beside compute",
                   (double)(step->communication_ns - step->exposed_ns) / 1e6,
                   (double)step->communication_ns / 1e6);
    g_assert_cmpint(step->communication_ns, >=, 8 * 3000000);
    g_assert_cmpint(step->communication_ns - step->exposed_ns, >, step->communication_ns / 50);
}

static void a_cluster_on_a_laptop(void) {
    enum {
        STEPS = 4,
        LATENCY_US = 3000 /* about as long as a block computes */
    };
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *cluster = test_run_slow_cluster(clusters, folder, LATENCY_US);
    g_autofree char *p = g_strconcat(folder, "/p", NULL), *m = g_strconcat(folder, "/m", NULL);
    const char *words = "gpt-toy -n 2 --micro-batch 32";
    double paced[STEPS], unpaced[STEPS];
    g_autofree char *with_pace = g_strdup_printf("%s --pace %s --trace %s", words, cluster, m);
    test_run_losses(words, unpaced, STEPS);
    test_run_losses(with_pace, paced, STEPS);
    g_assert_cmpmem(paced, sizeof paced, unpaced, sizeof unpaced);
    test_run_ok("predict %s --cluster %s --trace %s", words, cluster, p);
    g_autoptr(Trace) predicted = test_run_take_trace(p);
    g_autoptr(Trace) measured = test_run_take_trace(m);
    g_assert_cmpstr(trace_get(measured, "paced"), ==, "yes");
    g_assert_cmpstr(trace_get(measured, "pace"), ==, "slow");
    none_is_quicker(predicted, measured);
    compute_goes_on(measured);
    g_unlink(cluster);
    g_rmdir(folder);
}

/* Of all processes that this one has started and that have ended. */
static double core_seconds(void) {
    struct rusage usage;
    g_assert_cmpint(getrusage(RUSAGE_CHILDREN, &usage), ==, 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double core_seconds_of(const char *words) {
    double before = core_seconds();
    test_run_ok("run %s --steps 4", words);
    return core_seconds() - before;
}

/* Each rank waits 8 collectives a step of 50 ms each: 3.2 core seconds of two, did they spin. */
static void whoever_waits_sleeps(void) {
    enum {
        LATENCY_US = 50000
    };
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *cluster = test_run_slow_cluster(clusters, folder, LATENCY_US);
    g_autofree char *paced = g_strdup_printf("gpt-toy -n 2 --pace %s", cluster);
    double without = core_seconds_of("gpt-toy -n 2"), with = core_seconds_of(paced);
    g_test_message("%.2f core seconds, paced %.2f", without, with);
    g_assert_cmpfloat(with - without, <, 0.8);
    g_unlink(cluster);
    g_rmdir(folder);
}

static void too_small_a_cluster(void) {
    TestRun run = test_run_finish(test_run_start("run gpt-toy -n 17 --pace this-machine"));
    g_assert_cmpint(run.status, ==, 2);
    g_assert_nonnull(strstr(run.err, "has place for 16 ranks"));
    test_run_clear(&run);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    test_run_program = argv[1];
    clusters = argv[2];
    g_test_add_func("/exec/paced/a cluster on a laptop", a_cluster_on_a_laptop);
    g_test_add_func("/exec/paced/whoever waits sleeps", whoever_waits_sleeps);
    g_test_add_func("/exec/paced/too small a cluster is refused", too_small_a_cluster);
    return g_test_run();
}
