/* sim/predict on real plans of toy networks: laws, results, refusals. */
#include <glib.h>
#include <string.h>

#include "plan/text/text.h"
#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/from-plan.h"
#include "trace/summary.h"
#include "trace/text.h"

static const char *strategies[] = {
    "ranks=2 sharding=full",
    "ranks=4 sharding=full wrap=whole",
    "ranks=8 sharding=full backward_prefetch=none micro_batch=2",
    "ranks=2 sharding=none",
    "ranks=1 sharding=none",
};
static const char *networks[] = {"gpt-toy", "mlp-toy"};

typedef void (*Check)(const Plan *plan);

static void for_each_plan(Check check) {
    for (unsigned n = 0; n < G_N_ELEMENTS(networks); n++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(strategies); s++) {
            g_autoptr(Plan) plan = toy_network_plan(networks[n], strategies[s]);
            check(plan);
        }
    }
}

static GString *text_of_play(const Plan *plan) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 4, trace);
    g_assert_nonnull(prediction);
    g_autoptr(GError) error = NULL;
    GString *text = trace_text(trace, &error);
    g_assert_no_error(error);
    return text;
}

static void check_same_bytes(const Plan *plan) {
    g_autoptr(GString) one = text_of_play(plan);
    g_autoptr(GString) other = text_of_play(plan);
    g_assert_cmpmem(one->str, one->len, other->str, other->len);
}

static void test_same_bytes_of_trace(void) {
    for_each_plan(check_same_bytes);
}

/* What the simulator says of a play and what its rows add up to are one. */
static void check_rows_agree(const Plan *plan) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 5, trace);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    SimTime total[PLAN_N_OP_KINDS] = {0}, exposed[PLAN_N_OP_KINDS] = {0};
    for (int32_t step = 0; step < 5; step++) {
        const TraceStepSummary *row = trace_summary_step(summary, step);
        g_assert_cmpint(trace_step_time_ns(row), ==, prediction->step_ns[step]);
        for (unsigned kind = 0; step >= 2 && kind < PLAN_N_OP_KINDS; kind++) {
            total[kind] += row->kinds[kind].total_ns;
            exposed[kind] += row->kinds[kind].exposed_ns;
        }
    }
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (plan_op_is_collective(kind)) {
            g_assert_cmpint(prediction->collectives[kind].total_ns, ==, total[kind] / 3);
            g_assert_cmpint(prediction->collectives[kind].exposed_ns, ==, exposed[kind] / 3);
        }
    }
    const TracePeak *peak = &summary->peaks[TRACE_ALLOCATED];
    g_assert_cmpuint(peak->bytes, ==, prediction->peak.at.allocated_bytes);
    g_assert_cmpint(peak->host_ns, ==, prediction->peak.at.host_ns);
    g_assert_cmpint(peak->step, ==, prediction->peak.at.step);
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        g_assert_cmpuint(peak->categories[sub], ==, prediction->peak.by_sub[sub]);
    }
    g_assert_cmpuint(summary->peaks[TRACE_RESERVED].bytes, ==, prediction->peak_reserved_bytes);
}

static void test_rows_agree(void) {
    for_each_plan(check_rows_agree);
}

static void check_laws(const Plan *plan) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 4, trace);
    SimTime makespan = 0, shares = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        g_assert_cmpint(row->host_issue_ns, <=, row->start_ns);
        g_assert_cmpint(row->start_ns, <=, row->end_ns);
        makespan = MAX(makespan, row->end_ns);
    }
    for (uint32_t lane = 0; lane < plan->n_lanes; lane++) {
        SimTime busy = 0, last_end = INT64_MIN;
        for (guint i = 0; i < trace->ops->len; i++) {
            const TraceOpRow *row = trace_op(trace, i);
            if (row->lane == lane && row->step >= 0) {
                g_assert_cmpint(row->start_ns, >=, last_end); /* in order, one at a time */
                last_end = row->end_ns;
                busy += row->end_ns - row->start_ns;
            }
        }
        g_assert_cmpint(busy, <=, makespan);
    }
    for (unsigned share = 0; share < SIM_N_CAUSES; share++) {
        shares += prediction->cause_ns[share];
    }
    SimTime steady = (prediction->step_ns[2] + prediction->step_ns[3]) / 2;
    g_assert_cmpint(ABS(shares - steady), <=, SIM_N_CAUSES); /* each is rounded down once */
    /* Memory returns to its floor. */
    uint64_t floors[4] = {0};
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->step >= 0) {
            floors[row->step] = row->allocated;
        }
        g_assert_cmpuint(row->allocated, <=, row->active);
        g_assert_cmpuint(row->active, <=, row->reserved);
    }
    g_assert_cmpuint(floors[2], ==, floors[3]);
    uint64_t sum = 0;
    for (uint32_t unit = 0; unit <= plan->n_units; unit++) {
        sum += prediction->peak.by_unit[unit];
    }
    g_assert_cmpuint(sum, ==, prediction->peak.at.allocated_bytes);
}

static void test_laws(void) {
    for_each_plan(check_laws);
}

/* Nothing that gets faster makes a step longer. */
static void check_faster_is_never_slower(const Plan *plan) {
    ModelCluster cluster = plays_busy_cluster();
    double *speeds[] = {&cluster.intra_node_bus_gb_per_s, &cluster.device_memory_gb_per_s,
                        &cluster.device_matmul_fp32_tflops};
    for (unsigned i = 0; i < G_N_ELEMENTS(speeds); i++) {
        double was = *speeds[i];
        SimTime before = SIM_NEVER;
        for (double factor = 1.0 / 64; factor <= 64; factor *= 2) {
            *speeds[i] = was * factor;
            cluster.intra_node_reduce_bus_gb_per_s = cluster.intra_node_bus_gb_per_s;
            g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 4, NULL);
            g_assert_cmpint(prediction->median_step_ns, <=, before);
            before = prediction->median_step_ns;
        }
        *speeds[i] = was;
    }
}

static void test_faster_is_never_slower(void) {
    for_each_plan(check_faster_is_never_slower);
}

/* The same where NCCL's choice is forced, on the networks of real machines, nothing shared and
 * memory laid out in advance: then nothing is decided that more bandwidth could make worse. */
static void test_more_bandwidth_is_never_slower(void) {
    static const char *const machines[] = {"a100-roce", "dgx-h100", "two-nodes-ethernet",
                                           "v100-dgx"};
    static const char *const protos[] = {"ll", "ll128", "simple"};
    for (unsigned i = 0; i < G_N_ELEMENTS(machines) * G_N_ELEMENTS(protos); i++) {
        g_autofree char *file = g_strconcat(machines[i / G_N_ELEMENTS(protos)], ".ini", NULL);
        g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
        g_assert_no_error(error);
        model_cluster_force_nccl(cluster, "ring", protos[i % G_N_ELEMENTS(protos)]);
        uint32_t ranks = cluster->topology_nodes > 1 ? 16 : 8;
        g_autofree char *strategy = g_strdup_printf("ranks=%u sharding=full micro_batch=8", ranks);
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
        const SimOptions options = {.steps = 3, .no_sharing = true, .arena = true};
        double *speeds[] = {&cluster->intra_node_nccl_channel_gb_per_s,
                            &cluster->inter_node_nic_gb_per_s, &cluster->device_memory_gb_per_s};
        for (unsigned j = 0; j < G_N_ELEMENTS(speeds); j++) {
            double was = *speeds[j];
            SimTime before = SIM_NEVER;
            for (double factor = 1.0 / 64; factor <= 64; factor *= 2) {
                *speeds[j] = was * factor;
                g_autoptr(SimPrediction) played = sim_predict(plan, cluster, &options, NULL, NULL);
                g_assert_cmpint(played->median_step_ns, <=, before);
                before = played->median_step_ns;
            }
            *speeds[j] = was;
        }
    }
}

/* What a rank sends: its share of each tensor, in each pass of the ring. */
static double bytes_sent(const SimPrediction *prediction, uint32_t ranks) {
    double sent = 0;
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        sent += sum->bytes * (double)plan_op_info(kind)->ring_steps * (ranks - 1) / ranks;
    }
    return sent;
}

static void test_bigger_group_never_sends_fewer_bytes(void) {
    static const char *const shardings[] = {
        "full", "grad-op", "none", "optimizer-only", "full flavour=fsdp1", "grad-op flavour=fsdp1"};
    ModelCluster cluster = plays_busy_cluster();
    cluster.topology_gpus_per_node = 64;
    for (unsigned i = 0; i < G_N_ELEMENTS(shardings); i++) {
        double before = 0;
        for (uint32_t ranks = 2; ranks <= 32; ranks *= 2) { /* the toy's sizes divide by each */
            g_autofree char *strategy =
                g_strdup_printf("ranks=%u sharding=%s", ranks, shardings[i]);
            g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
            g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 4, NULL);
            double sent = bytes_sent(prediction, ranks);
            g_assert_cmpfloat(sent, >=, before);
            before = sent;
        }
        g_assert_cmpfloat(before, >, 0);
    }
}

/* The null device's count of collectives and bytes is a step's. */
static void test_collectives_are_the_plans(void) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=4 sharding=full");
    g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, 4, NULL);
    const PlanRole *role = &plan->roles[0];
    uint32_t counts[PLAN_N_OP_KINDS] = {0};
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind == PLAN_LAUNCH) {
            counts[role->ops[instr->arg].kind]++;
        }
    }
    g_assert_cmpuint(counts[PLAN_OP_ALL_GATHER], >, 0);
    g_assert_cmpuint(prediction->collectives[PLAN_OP_ALL_GATHER].count, ==,
                     counts[PLAN_OP_ALL_GATHER]);
    g_assert_cmpuint(prediction->collectives[PLAN_OP_REDUCE_SCATTER].count, ==,
                     counts[PLAN_OP_REDUCE_SCATTER]);
}

/* Out of memory is a result with a culprit; the limit is exact: what it reserves just fits. */
static void test_out_of_memory(void) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=2 sharding=full micro_batch=64");
    g_autoptr(SimPrediction) roomy = plays_steps(plan, &cluster, 4, NULL);
    g_assert_true(roomy->fits);
    cluster.device_memory_bytes = roomy->peak_reserved_bytes;
    g_autoptr(SimPrediction) exact = plays_steps(plan, &cluster, 4, NULL);
    g_assert_true(exact->fits);
    g_assert_cmpuint(exact->alloc_retries, ==, 0);
    g_assert_cmpint(exact->median_step_ns, ==, roomy->median_step_ns);

    cluster.device_memory_bytes = roomy->peak.at.allocated_bytes / 2;
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) tight = plays_steps(plan, &cluster, 4, trace);
    g_assert_false(tight->fits);
    g_assert_nonnull(tight->oom.buffer);
    g_assert_cmpuint(tight->oom.bytes, >, 0);
    g_assert_cmpuint(tight->oom.at.reserved_bytes, <=, cluster.device_memory_bytes);
    uint64_t held = 0;
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        held += tight->oom.by_sub[sub];
    }
    g_assert_cmpuint(held, ==, tight->oom.at.allocated_bytes);
    /* The other verdict stands: peak and time as if there were memory enough. */
    g_assert_cmpuint(tight->peak.at.allocated_bytes, ==, roomy->peak.at.allocated_bytes);
    g_assert_cmpuint(tight->peak_reserved_bytes, ==, roomy->peak_reserved_bytes);
    g_assert_cmpint(tight->median_step_ns, ==, roomy->median_step_ns);
    /* The trace is of the play that failed, and it is sound. */
    g_autoptr(GError) error = NULL;
    g_assert_true(trace_check(trace, &error));
    g_assert_no_error(error);
}

/* An allocator that may take nothing fails at once; with memory enough the verdict is the same. */
static void test_share_of_memory(void) {
    static const char *const confs[] = {
        "per_process_memory_fraction:0", "per_process_memory_fraction:0,expandable_segments:True",
        "per_process_memory_fraction:0,throw_on_cudamalloc_oom:True"};
    const ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=2 sharding=full");
    g_autoptr(SimPrediction) roomy = plays_steps(plan, &cluster, 4, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(confs) * 2; i++) {
        g_autoptr(GError) error = NULL;
        MemoryOptions allocator;
        g_assert_true(memory_options_parse(confs[i / 2], &allocator, &error));
        const SimOptions options = {.steps = 4, .allocator = &allocator, .every_rank = i % 2 == 1};
        g_autoptr(SimPrediction) none = sim_predict(plan, &cluster, &options, NULL, &error);
        g_assert_no_error(error);
        g_assert_false(none->fits);
        g_assert_cmpuint(none->peak.at.allocated_bytes, ==, roomy->peak.at.allocated_bytes);
    }
}

/* A tensor beyond all addresses is an error of the plan. */
static void test_endless(void) {
    const ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan =
        toy_plan("alloc b4\nfree b4\n", "b4 8 fp32 temporary/op compute - - x\n");
    plan->roles[0].buffers[4].bytes = UINT64_C(1) << 60; /* no file says so much */
    MemoryOptions allocator;
    memory_options_init(&allocator);
    allocator.expandable_segments = true;
    for (unsigned i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        const SimOptions options = {.steps = 4, .allocator = &allocator, .every_rank = i % 2 == 1};
        g_assert_null(sim_predict(plan, &cluster, &options, NULL, &error));
        g_assert_error(error, SIM_ERROR, SIM_ERROR_PLAN);
        g_assert_nonnull(strstr(error->message, "bytes at once"));
    }
}

static void test_outside_allocator(void) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=2 sharding=full");
    g_autoptr(SimPrediction) roomy = plays_steps(plan, &cluster, 4, NULL);
    cluster.device_memory_bytes = roomy->peak_reserved_bytes + 1000;
    cluster.device_outside_allocator_bytes = 1000;
    g_autoptr(SimPrediction) exact = plays_steps(plan, &cluster, 4, NULL);
    g_assert_true(exact->fits);
    cluster.device_outside_allocator_bytes = 1001;
    g_autoptr(SimPrediction) tight = plays_steps(plan, &cluster, 4, NULL);
    g_assert_false(tight->fits);
}

static void test_too_many_ranks(void) {
    ModelCluster cluster = plays_busy_cluster();
    cluster.topology_gpus_per_node = 4;
    g_autoptr(Plan) plan = toy_network_plan("mlp-toy", "ranks=5 sharding=full");
    const SimOptions options = {.steps = 4};
    g_autoptr(GError) error = NULL;
    g_autoptr(SimPrediction) prediction = sim_predict(plan, &cluster, &options, NULL, &error);
    g_assert_null(prediction);
    g_assert_error(error, SIM_ERROR, SIM_ERROR_CLUSTER);
    g_assert_nonnull(strstr(error->message, "for 5 ranks"));
}

/* Fewer than three steps have no steady ones: all are taken. */
static void test_few_steps(void) {
    ModelCluster cluster = plays_busy_cluster();
    g_autoptr(Plan) plan = toy_network_plan("mlp-toy", "ranks=2 sharding=full");
    for (uint32_t steps = 1; steps <= 3; steps++) {
        g_autoptr(SimPrediction) prediction = plays_steps(plan, &cluster, steps, NULL);
        g_assert_cmpuint(prediction->n_steady, ==, steps < 3 ? steps : 1);
        g_assert_cmpint(prediction->median_step_ns, >, 0);
    }
}

/* The same program in an arena: what is asked for is the same, what is reserved is at least that
 * and never more than the caching allocator reserves; nothing is retried. */
static void check_arena(const Plan *plan) {
    const ModelCluster cluster = plays_busy_cluster();
    const SimOptions options = {.steps = 4, .arena = true};
    g_autoptr(SimPrediction) caching = plays_steps(plan, &cluster, 4, NULL);
    g_autoptr(SimPrediction) arena = sim_predict(plan, &cluster, &options, NULL, NULL);
    g_assert_nonnull(arena);
    g_assert_cmpuint(arena->peak.at.allocated_bytes, ==, caching->peak.at.allocated_bytes);
    g_assert_cmpuint(arena->peak_reserved_bytes, >=, arena->peak.at.allocated_bytes);
    g_assert_cmpuint(arena->peak_reserved_bytes, <=, caching->peak_reserved_bytes);
    g_assert_cmpuint(arena->alloc_retries, ==, 0);
}

static void test_arena(void) {
    for_each_plan(check_arena);
}

/* Whoever asks what else a plan might be makes it again from network and strategy. A plan that was
 * read is known again by its digest; of one that was just built it is not worked out. */
static void test_names_of_built_and_read(void) {
    g_autoptr(Plan) built = toy_network_plan("gpt-toy", "ranks=2");
    g_autoptr(GString) text = plan_text(built);
    g_autoptr(Plan) read = plan_read(text->str, text->len, "toy.plan", NULL);
    g_autoptr(Trace) of_built = trace_new(), of_read = trace_new(), described = trace_new();
    trace_name_plan(of_built, built);
    trace_name_plan(of_read, read);
    trace_describe_plan(described, built);
    g_assert_null(trace_get(of_built, "digest"));
    g_assert_cmpstr(trace_get(of_read, "digest"), ==, plan_digest(built));
    g_assert_cmpstr(trace_get(described, "digest"), ==, plan_digest(built));
    g_assert_cmpstr(trace_get(of_built, "strategy"), ==, trace_get(of_read, "strategy"));
    g_assert_cmpstr(trace_get(of_built, "network"), ==, trace_get(of_read, "network"));
}

/* Two axes over the same links are one thing that a step waits for. */
static void test_shares_of_one_name(void) {
    SimPrediction prediction = {0};
    unsigned first = SIM_CAUSE_NETWORK + PLAN_AXIS_SHARD,
             other = SIM_CAUSE_NETWORK + PLAN_AXIS_PART;
    prediction.cause_ns[SIM_CAUSE_ARITHMETIC] = 5;
    prediction.cause_names[SIM_CAUSE_ARITHMETIC] = "arithmetic";
    prediction.cause_ns[first] = 4;
    prediction.cause_names[first] = "a network";
    prediction.cause_ns[other] = 3;
    prediction.cause_names[other] = "a network";
    g_assert_cmpint(sim_prediction_cause_ns(&prediction, SIM_CAUSE_ARITHMETIC), ==, 5);
    g_assert_cmpint(sim_prediction_cause_ns(&prediction, MIN(first, other)), ==, 7);
    g_assert_cmpint(sim_prediction_cause_ns(&prediction, MAX(first, other)), ==, 0);
    g_assert_cmpint(sim_prediction_cause_ns(&prediction, SIM_CAUSE_HOST), ==, 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/predict/same_bytes_of_trace", test_same_bytes_of_trace);
    g_test_add_func("/sim/predict/rows_agree", test_rows_agree);
    g_test_add_func("/sim/predict/laws", test_laws);
    g_test_add_func("/sim/predict/faster_is_never_slower", test_faster_is_never_slower);
    g_test_add_func("/sim/predict/more_bandwidth_is_never_slower",
                    test_more_bandwidth_is_never_slower);
    g_test_add_func("/sim/predict/bigger_group_never_sends_fewer_bytes",
                    test_bigger_group_never_sends_fewer_bytes);
    g_test_add_func("/sim/predict/collectives_are_the_plans", test_collectives_are_the_plans);
    g_test_add_func("/sim/predict/out_of_memory", test_out_of_memory);
    g_test_add_func("/sim/predict/share_of_memory", test_share_of_memory);
    g_test_add_func("/sim/predict/endless", test_endless);
    g_test_add_func("/sim/predict/outside_allocator", test_outside_allocator);
    g_test_add_func("/sim/predict/too_many_ranks", test_too_many_ranks);
    g_test_add_func("/sim/predict/arena", test_arena);
    g_test_add_func("/sim/predict/few_steps", test_few_steps);
    g_test_add_func("/sim/predict/names", test_names_of_built_and_read);
    g_test_add_func("/sim/predict/shares_of_one_name", test_shares_of_one_name);
    return g_test_run();
}
