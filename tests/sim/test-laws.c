/* Laws of two plays whose settings differ in one thing, and of a play and its trace, on settings
 * drawn at random (draws.h).
 */
#include <math.h>
#include <string.h>

#include "tests/sim/draws.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/summary.h"

enum {
    STEPS = 4
};

static SimPrediction *play(const Draw *draw, bool every_rank, uint32_t steps) {
    const SimOptions options = {.steps = steps, .every_rank = every_rank};
    return plays_predict(draw->plan, draw->cluster, &options, NULL);
}

/* ---- what changes nothing ------------------------------------------------------------------- */

/* Nodes that the plan does not use. */
static bool idle_nodes_change_nothing(Draw *draw) {
    for (unsigned every = 0; every < 2; every++) {
        g_autoptr(SimPrediction) before = play(draw, every, STEPS);
        draw->cluster->topology_nodes += 3;
        g_autoptr(SimPrediction) after = play(draw, every, STEPS);
        plays_assert_equal(before, after);
    }
    return true;
}

static void test_idle_nodes(void) {
    draw_each(idle_nodes_change_nothing, 100);
}

/* What comes later: the first steps of a longer play are those of a shorter one. */
static bool later_steps_change_nothing(Draw *draw) {
    for (unsigned every = 0; every < 2; every++) {
        g_autoptr(SimPrediction) brief = play(draw, every, STEPS);
        g_autoptr(SimPrediction) lengthy = play(draw, every, 2 * STEPS + 1);
        for (uint32_t step = 0; step < STEPS; step++) {
            g_assert_cmpint(lengthy->step_ns[step], ==, brief->step_ns[step]);
        }
        g_assert_cmpuint(lengthy->peak.at.allocated_bytes, >=, brief->peak.at.allocated_bytes);
    }
    return true;
}

static void test_later_steps(void) {
    draw_each(later_steps_change_nothing, 100);
}

/* Which of equal ranks is the slow one. */
static bool any_straggler_is_as_slow(Draw *draw) {
    if (!draw_is_alike(draw) || draw->plan->world < 2) {
        return false;
    }
    SimTime of_first = 0;
    uint32_t last = draw->plan->world - 1, some[] = {0, last / 2, last};
    for (unsigned i = 0; i < G_N_ELEMENTS(some); i++) {
        uint32_t rank = some[i];
        const SimTrouble slow = {SIM_TROUBLE_SLOW, rank, rank, 1.25};
        const SimOptions options = {
            .steps = STEPS, .every_rank = true, .troubles = &slow, .n_troubles = 1};
        g_autoptr(SimPrediction) played = plays_predict(draw->plan, draw->cluster, &options, NULL);
        of_first = i ? of_first : played->median_step_ns;
        g_assert_cmpint(played->median_step_ns, ==, of_first);
    }
    return true;
}

static void test_stragglers(void) {
    draw_each(any_straggler_is_as_slow, 50);
}

/* ---- what grows as its cause does ------------------------------------------------------------ */

/* All of a cluster's rates and times, as if its seconds were so many times as long. */
static void stretch(ModelCluster *cluster, double by) {
#define COUNT(...)
#define REAL(section, key, ...)                                                                    \
    {                                                                                              \
        bool is_time = g_str_has_suffix(#key, "_us") || g_str_has_suffix(#key, "_ns");             \
        bool is_rate = g_str_has_suffix(#key, "_per_s") || g_str_has_suffix(#key, "_tflops");      \
        cluster->section##_##key *= is_time ? by : is_rate ? 1 / by : 1;                           \
    }
#include "models/cluster-keys.def"
#undef REAL
#undef COUNT
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        cluster->kernel_gb_per_s[kind] /= by;
    }
}

/* No second is hidden anywhere but in the cluster's file and in NCCL's constants, which are left
 * out here: on a machine whose seconds are twice as long a step takes twice as many of ours. Each
 * instruction's time is rounded once. */
static bool time_has_a_unit(Draw *draw) {
    const PlanRole *role = &draw->plan->roles[0];
    draw->cluster->device_compute_capability = 0;
    g_autoptr(SimPrediction) quick = play(draw, false, STEPS);
    stretch(draw->cluster, 2);
    g_autoptr(SimPrediction) slow = play(draw, false, STEPS);
    uint64_t most = 0;
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        most = MAX(most, role->n_instrs[s]);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        SimTime off = ABS(slow->step_ns[step] - 2 * quick->step_ns[step]);
        g_assert_cmpint(off, <=, (SimTime)(2 * most));
    }
    g_assert_cmpuint(slow->peak_reserved_bytes, ==, quick->peak_reserved_bytes);
    return true;
}

static void test_time_has_a_unit(void) {
    draw_each(time_has_a_unit, 100);
}

/* Four more passes take as long as four more, to the nanosecond, once passes repeat. */
static bool passes_add_alike(Draw *draw) {
    enum {
        FEWEST = 10,
        MORE = 4
    };
    SimTime step_ns[3];
    if (strstr(draw->strategy, "accumulate=")) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(step_ns); i++) {
        g_autofree char *words =
            g_strdup_printf("%s accumulate=%u", draw->strategy, FEWEST + i * MORE);
        g_autoptr(Plan) plan = toy_plan_if_known(draw->network, words);
        if (!plan) {
            return false;
        }
        const SimOptions options = {.steps = STEPS};
        g_autoptr(SimPrediction) played = plays_predict(plan, draw->cluster, &options, NULL);
        step_ns[i] = played->step_ns[STEPS - 1];
    }
    g_assert_cmpint(step_ns[2] - step_ns[1], ==, step_ns[1] - step_ns[0]);
    return true;
}

static void test_passes_add_alike(void) {
    draw_each(passes_add_alike, 50);
}

/* What fits into some memory fits into more, and is not slower there: between what is allocated at
 * most and what is reserved where there is enough. */
static bool more_memory_is_never_worse(Draw *draw) {
    enum {
        SIZES = 8
    };
    g_autoptr(SimPrediction) ample = play(draw, false, STEPS);
    uint64_t least = ample->peak.at.allocated_bytes, most = ample->peak_reserved_bytes;
    SimTime before_ns = SIM_NEVER; /* of less memory; SIM_NEVER: it did not fit */
    for (unsigned i = 0; i <= SIZES; i++) {
        draw->cluster->device_memory_bytes =
            model_cluster_outside_bytes(draw->cluster) + least + (most - least) * i / SIZES;
        g_autoptr(SimPrediction) played = play(draw, false, STEPS);
        g_assert_true(played->fits || before_ns == SIM_NEVER);
        g_assert_true(!played->fits || played->median_step_ns <= before_ns);
        before_ns = played->fits ? played->median_step_ns : SIM_NEVER;
    }
    return true;
}

static void test_more_memory(void) {
    draw_each(more_memory_is_never_worse, 100);
}

/* ---- a play and its trace -------------------------------------------------------------------- */

/* Of all steady steps. */
typedef struct {
    unsigned n;
    int64_t lane_ns[PLAN_MAX_LANES];
    int64_t total_ns[PLAN_N_OP_KINDS], exposed_ns[PLAN_N_OP_KINDS];
} Sums;

static PlanOpKind kind_named(const char *name) {
    PlanOpKind kind = 0;
    while (!g_str_equal(plan_op_info(kind)->name, name)) {
        kind++;
    }
    return kind;
}

static Sums sums_of(const Trace *trace, const TraceSummary *summary) {
    Sums sums = {0};
    for (unsigned i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (!trace_summary_is_steady(summary, i)) {
            continue;
        }
        sums.n++;
        for (unsigned lane = 0; lane < trace->lanes->len; lane++) {
            sums.lane_ns[lane] += step->lane_ns[lane];
        }
        for (unsigned k = 0; k < trace->kinds->len; k++) {
            PlanOpKind kind = kind_named(trace_kind(trace, k)->name);
            sums.total_ns[kind] += step->kinds[k].total_ns;
            sums.exposed_ns[kind] += step->kinds[k].exposed_ns;
        }
    }
    return sums;
}

static void assert_rows_are_possible(const Trace *trace) {
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        g_assert_cmpuint(row->allocated, <=, row->active);
        g_assert_cmpuint(row->active, <=, row->reserved);
    }
}

/* A step ends with its last rank's. */
static int64_t end_of_step(const Trace *trace, int32_t step) {
    int64_t end_ns = 0;
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
        end_ns = MAX(end_ns, trace_summary_step(summary, step)->end_ns);
    }
    return end_ns;
}

static bool a_trace_adds_up(Draw *draw) {
    const SimOptions options = {.steps = STEPS};
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) played = plays_predict(draw->plan, draw->cluster, &options, trace);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, played->time_rank);
    g_autoptr(TraceSummary) fullest = trace_summary_new(trace, played->memory_rank);
    Sums sums = sums_of(trace, summary);
    g_assert_cmpuint(sums.n, ==, played->n_steady);
    int64_t before_ns = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        int64_t end_ns = end_of_step(trace, (int32_t)step);
        g_assert_cmpint(end_ns - before_ns, ==, played->step_ns[step]);
        before_ns = end_ns;
    }
    for (unsigned lane = 0; lane < trace->lanes->len; lane++) {
        g_assert_cmpint(sums.lane_ns[lane] / sums.n, ==, played->lane_busy_ns[lane]);
    }
    for (PlanOpKind kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (plan_op_is_collective(kind)) {
            const SimCollectiveSum *sum = &played->collectives[kind];
            g_assert_cmpint(sums.total_ns[kind] / sums.n, ==, sum->total_ns);
            g_assert_cmpint(sums.exposed_ns[kind] / sums.n, ==, sum->exposed_ns);
        }
    }
    g_assert_cmpuint(fullest->peaks[TRACE_ALLOCATED].bytes, ==, played->peak.at.allocated_bytes);
    g_assert_cmpuint(fullest->peaks[TRACE_ACTIVE].bytes, ==, played->peak_active_bytes);
    g_assert_cmpuint(fullest->peaks[TRACE_RESERVED].bytes, ==, played->peak_reserved_bytes);
    assert_rows_are_possible(trace);
    return true;
}

static void test_traces(void) {
    draw_each(a_trace_adds_up, 100);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/laws/idle nodes change nothing", test_idle_nodes);
    g_test_add_func("/sim/laws/later steps change nothing", test_later_steps);
    g_test_add_func("/sim/laws/any straggler is as slow", test_stragglers);
    g_test_add_func("/sim/laws/time has a unit", test_time_has_a_unit);
    g_test_add_func("/sim/laws/passes add alike", test_passes_add_alike);
    g_test_add_func("/sim/laws/more memory is never worse", test_more_memory);
    g_test_add_func("/sim/laws/a trace adds up", test_traces);
    return g_test_run();
}
