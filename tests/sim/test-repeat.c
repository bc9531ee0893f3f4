/* Steps and passes that are as those before them are not played, and nothing shows it: a prediction
 * with a trace, for which all are played, says the same in every figure. Nor are all passes
 * written, and that does not show either. */
#include <string.h>

#include "memory/options.h"
#include "sim/built.h"
#include "tests/sim/toy.h"

enum {
    STEPS = 7
};

static const struct {
    const char *network, *strategy;
    uint32_t n_played; /* of STEPS, the last perhaps in part */
} settings[] = {
    {"gpt-toy", "ranks=2 flavour=fsdp2", 2},
    {"gpt-toy", "ranks=3 flavour=fsdp2 accumulate=3 accumulate_sync=every clip=1", 2},
    {"gpt-toy", "ranks=2 flavour=fsdp2 host_reads=both clip=1 optimizer_kernel=loop", 2},
    {"gpt-toy", "ranks=2 flavour=fsdp1 checkpointing=full", 2},
    {"gpt-toy", "ranks=2 flavour=fsdp1 limit_all_gathers=0 param_dtype=bf16", 2},
    {"gpt-toy", "ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 accumulate=2", 2},
    {"gpt-toy", "ranks=2 sharding=none bucket_mb=0.05", 3},
    {"gpt-toy", "ranks=2 sharding=optimizer-only", 2},
    {"gpt-toy", "ranks=1 sharding=none", 2},
    {"gpt-toy", "ranks=2 allocator=expandable", 2},
    {"gpt-toy", "ranks=2 flavour=fsdp1 allocator=expandable", 2},
    {"gpt-toy", "ranks=2 allocator=arena", 2},
    {"gpt-toy", "ranks=2 offload=params", 2},
    {"gpt-toy", "ranks=2 offload=activations checkpointing=full", 2},
    {"llama-toy", "ranks=2 kernels=fused", 2},
    {"t5-toy", "ranks=2 offload=optimizer", 2},
    /* Lanes still run where a step ends. */
    {"gpt-toy", "ranks=2 step_sync=no", STEPS},
    {"gpt-toy", "ranks=2 flavour=fsdp1 step_sync=no", STEPS},
    /* The allocator's garbage ages. */
    {"gpt-toy",
     "ranks=2 allocator=conf=per_process_memory_fraction:0.9,garbage_collection_threshold:0.8",
     STEPS},
    /* Steps go on by turns. */
    {"gpt-toy",
     "ranks=2 flavour=fsdp1 sharding=none param_dtype=bf16 zero_grad=keep "
     "accumulate_sync=every",
     STEPS},
    {"gpt2", "ranks=8 param_dtype=bf16", 3},
    {"gpt2", "ranks=8 flavour=fsdp1 checkpointing=full micro_batch=4", 3},
};

static void same_collectives(const SimPrediction *a, const SimPrediction *b) {
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *x = &a->collectives[kind], *y = &b->collectives[kind];
        g_assert_cmpuint(x->count, ==, y->count);
        g_assert_cmpfloat(x->bytes, ==, y->bytes);
        g_assert_cmpint(x->total_ns, ==, y->total_ns);
        g_assert_cmpint(x->exposed_ns, ==, y->exposed_ns);
    }
}

static void same_times(const SimPrediction *a, const SimPrediction *b) {
    g_assert_cmpmem(a->step_ns, a->n_steps * sizeof *a->step_ns, b->step_ns,
                    b->n_steps * sizeof *b->step_ns);
    g_assert_cmpint(a->median_step_ns, ==, b->median_step_ns);
    g_assert_cmpint(a->compute_ns, ==, b->compute_ns);
    g_assert_cmpint(a->host_ns, ==, b->host_ns);
    g_assert_cmpint(a->host_blocked_ns, ==, b->host_blocked_ns);
    g_assert_cmpmem(a->lane_busy_ns, a->n_lanes * sizeof *a->lane_busy_ns, b->lane_busy_ns,
                    b->n_lanes * sizeof *b->lane_busy_ns);
    g_assert_cmpmem(a->cause_ns, sizeof a->cause_ns, b->cause_ns, sizeof b->cause_ns);
    g_assert_cmpstr(a->bound_by, ==, b->bound_by);
    g_assert_cmpfloat(a->mfu, ==, b->mfu);
    same_collectives(a, b);
}

static void same_memory(const SimPrediction *a, const SimPrediction *b) {
    g_assert_true(a->fits == b->fits);
    g_assert_cmpint(a->peak.at.step, ==, b->peak.at.step);
    g_assert_cmpuint(a->peak.at.index, ==, b->peak.at.index);
    g_assert_cmpint(a->peak.at.host_ns, ==, b->peak.at.host_ns);
    g_assert_cmpuint(a->peak.at.allocated_bytes, ==, b->peak.at.allocated_bytes);
    g_assert_cmpmem(a->peak.by_sub, sizeof a->peak.by_sub, b->peak.by_sub, sizeof b->peak.by_sub);
    g_assert_cmpuint(a->peak_active_bytes, ==, b->peak_active_bytes);
    g_assert_cmpuint(a->peak_reserved_bytes, ==, b->peak_reserved_bytes);
    g_assert_cmpuint(a->alloc_retries, ==, b->alloc_retries);
    g_assert_cmpuint(a->segment_allocs, ==, b->segment_allocs);
    g_assert_cmpuint(a->segment_frees, ==, b->segment_frees);
}

static SimPrediction *predict(const Plan *plan, const ModelCluster *cluster, Trace *trace) {
    SimOptions options = {.steps = STEPS};
    g_autoptr(GError) error = NULL;
    SimPrediction *prediction = sim_predict(plan, cluster, &options, trace, &error);
    g_assert_no_error(error);
    return prediction;
}

/* Returns how many steps were played. */
static uint32_t nothing_shows(const Plan *plan, const ModelCluster *cluster) {
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) played = predict(plan, cluster, trace);
    g_autoptr(SimPrediction) spared = predict(plan, cluster, NULL);
    g_assert_true(played->n_played == STEPS || !played->fits); /* then played again, untraced */
    same_times(played, spared);
    same_memory(played, spared);
    return spared->n_played;
}

/* With a host as quick as the one that found how many passes and steps are played below. */
static ModelCluster *read_cluster(const char *name) {
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), name, NULL);
    g_autoptr(GError) error = NULL;
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    cluster->host_cpu_factor = 1;
    return cluster;
}

/* Steps that accumulate, and whether some of their passes need not be played. */
static const struct {
    const char *network, *strategy;
    bool is_spared;
} passes[] = {
    {"gpt-toy", "ranks=2 accumulate=24", true},
    {"gpt-toy", "ranks=3 accumulate=20 clip=1 checkpointing=full", true},
    {"gpt-toy", "ranks=2 accumulate=20 accumulate_sync=every", true},
    {"gpt-toy", "ranks=4 accumulate=20 sharding=hybrid replicate=2 accumulate_sync=every", true},
    {"gpt-toy", "ranks=4 accumulate=20 sharding=hybrid replicate=2 accumulate_sync=scatter", true},
    {"gpt-toy", "ranks=2 accumulate=20 reshard_after_backward=no", true},
    {"gpt-toy", "ranks=2 accumulate=20 sharding=grad-op param_dtype=bf16", true},
    {"gpt-toy", "ranks=2 accumulate=20 step_sync=no", true},
    {"gpt-toy", "ranks=2 accumulate=20 host_reads=loss", true},
    {"gpt-toy", "ranks=2 accumulate=20 offload=params", true},
    {"gpt-toy", "ranks=2 accumulate=20 offload=activations checkpointing=full", true},
    {"gpt-toy", "ranks=2 accumulate=20 allocator=expandable", true},
    {"gpt-toy", "ranks=2 accumulate=20 allocator=arena", true},
    {"gpt-toy", "ranks=2 accumulate=20 sharding=none", true},
    {"gpt-toy", "ranks=1 accumulate=20 sharding=none", true},
    {"gpt-toy", "ranks=2 accumulate=20 sharding=optimizer-only", true},
    {"gpt-toy", "ranks=2 accumulate=20 flavour=fsdp1", true},
    {"gpt-toy", "ranks=2 accumulate=20 flavour=fsdp1 accumulate_sync=every", true},
    {"gpt-toy", "ranks=2 accumulate=20 flavour=fsdp1 limit_all_gathers=0 param_dtype=bf16", true},
    {"gpt-toy", "ranks=2 accumulate=20 flavour=fsdp1 sharding=none zero_grad=keep", true},
    {"llama-toy", "ranks=2 accumulate=20 kernels=compiled param_dtype=bf16", true},
    {"t5-toy", "ranks=2 accumulate=20 kernels=fused", true},
    {"gpt-toy-dropout", "ranks=2 accumulate=20 autocast=bf16", true},
    {"gpt2", "ranks=8 param_dtype=bf16 accumulate=8", true},
    {"gpt2", "ranks=8 flavour=fsdp1 checkpointing=full micro_batch=4 accumulate=8", true},
    {"gpt-toy", "ranks=2 accumulate=3", false},
};

static void passes_repeat(void) {
    static const char *const names[] = {"a100-node.ini", "a100-roce.ini"};
    for (unsigned c = 0; c < G_N_ELEMENTS(names); c++) {
        g_autoptr(ModelCluster) cluster = read_cluster(names[c]);
        for (unsigned i = 0; i < G_N_ELEMENTS(passes); i++) {
            g_autoptr(Plan) plan = toy_network_plan(passes[i].network, passes[i].strategy);
            g_autoptr(SimPrediction) spared = predict(plan, cluster, NULL);
            g_test_message("%s, %s: %u passes passed over, %u steps played", passes[i].network,
                           passes[i].strategy, spared->n_passed_over, spared->n_played);
            nothing_shows(plan, cluster);
            g_assert_true(passes[i].is_spared == (spared->n_passed_over > 0));
        }
    }
}

/* Where memory ended, if it did. */
static void same_oom(const SimOom *a, const SimOom *b) {
    g_assert_cmpint(a->at.step, ==, b->at.step);
    g_assert_cmpint(a->at.section, ==, b->at.section);
    g_assert_cmpuint(a->at.index, ==, b->at.index);
    g_assert_cmpint(a->at.host_ns, ==, b->at.host_ns);
    g_assert_cmpuint(a->at.unit, ==, b->at.unit);
    g_assert_cmpstr(a->buffer, ==, b->buffer);
    g_assert_cmpuint(a->bytes, ==, b->bytes);
    g_assert_cmpmem(a->by_sub, sizeof a->by_sub, b->by_sub, sizeof b->by_sub);
}

/* Returns whether some passes of the folded plan were not written, and all the same nothing lacks.
 */
static bool nothing_lacks_of(Plan *folded, const char *network, const char *strategy,
                             const ModelCluster *cluster) {
    g_autoptr(Plan) whole = toy_network_plan(network, strategy);
    g_autoptr(SimPrediction) wanted = predict(whole, cluster, NULL);
    SimOptions options = {.steps = STEPS};
    g_autoptr(GError) refusal = NULL;
    g_autoptr(SimPrediction) got = sim_predict(folded, cluster, &options, NULL, &refusal);
    g_assert_true(folded->for_one || folded->roles[0].n_folded == 0);
    if (got == NULL) {
        g_assert_error(refusal, SIM_ERROR, SIM_ERROR_FOLDED);
        return false;
    }
    same_times(wanted, got);
    same_memory(wanted, got);
    same_oom(&wanted->oom, &got->oom);
    g_assert_cmpfloat(wanted->flops, ==, got->flops);
    g_assert_cmpuint(wanted->n_passed_over, ==, got->n_passed_over);
    g_assert_cmpuint(whole->tokens_per_rank, ==, folded->tokens_per_rank);
    return folded->roles[0].n_instrs[PLAN_SECTION_FIRST] <
           whole->roles[0].n_instrs[PLAN_SECTION_FIRST];
}

static bool nothing_lacks(const char *network, const char *strategy, const ModelCluster *cluster) {
    g_autoptr(Plan) folded = toy_folded_plan(network, strategy, PLAN_FORM_FOLDED);
    return nothing_lacks_of(folded, network, strategy, cluster);
}

/* Where the device is hardly slower than the host, it takes many passes until its queue is full,
 * and only then one repeats another: more than are written at first. */
static void passes_fold_late(void) {
    static const char strategy[] =
        "ranks=8 sharding=none autocast=bf16 micro_batch=4 accumulate=70";
    g_autoptr(ModelCluster) cluster = read_cluster("dgx-h100.ini");
    g_autoptr(Plan) late = toy_folded_plan("t5-small", strategy, PLAN_FORM_FOLDED_LATE);
    g_assert_false(nothing_lacks("t5-small", strategy, cluster));
    g_assert_true(nothing_lacks_of(late, "t5-small", strategy, cluster));
}

/* The less the host gains, the more passes it takes: here 267. */
static void passes_fold_latest(void) {
    static const char strategy[] = "ranks=16 sharding=grad-op param_dtype=bf16 micro_batch=8 "
                                   "accumulate_sync=last accumulate=330";
    g_autoptr(ModelCluster) cluster = read_cluster("dgx-h100.ini");
    g_autoptr(Plan) late = toy_folded_plan("t5-small", strategy, PLAN_FORM_FOLDED_LATE);
    g_autoptr(Plan) latest = toy_folded_plan("t5-small", strategy, PLAN_FORM_FOLDED_LATEST);
    g_assert_false(nothing_lacks_of(late, "t5-small", strategy, cluster));
    g_assert_true(nothing_lacks_of(latest, "t5-small", strategy, cluster));
}

/* An odd number of passes is left out, and an even one: where pairs repeat one may be left. */
static void passes_fold(void) {
    static const unsigned numbers[] = {16, 17, 26};
    g_autoptr(ModelCluster) cluster = read_cluster("a100-node.ini");
    for (unsigned i = 0; i < G_N_ELEMENTS(passes); i++) {
        bool is_arena = strstr(passes[i].strategy, "arena") != NULL;
        for (unsigned n = 0; n < G_N_ELEMENTS(numbers); n++) {
            g_autofree char *strategy =
                g_strdup_printf("%s accumulate=%u", passes[i].strategy, numbers[n]);
            bool folds = nothing_lacks(passes[i].network, strategy, cluster);
            g_assert_true(folds == (numbers[n] > 16 && !is_arena));
        }
    }
}

/* Where memory ends, in the first step or the second, a plan is played again without a limit; where
 * it is given back in each pass, passes do not repeat, and the plan has to be written whole. */
static void folded_and_pressed(void) {
    static const char strategy[] = "ranks=8 flavour=fsdp1 limit_all_gathers=0 param_dtype=bf16 "
                                   "accumulate=24";
    g_autoptr(ModelCluster) cluster = read_cluster("a100-node.ini");
    g_autoptr(Plan) plan = toy_network_plan("gpt2", strategy);
    g_autoptr(SimPrediction) free = predict(plan, cluster, NULL);
    uint64_t outside = cluster->device_memory_bytes - free->allocator_bytes;
    unsigned n_folded = 0;
    for (unsigned percent = 60; percent <= 100; percent += 10) {
        cluster->device_memory_bytes = outside + free->peak_reserved_bytes / 100 * percent;
        bool folds = nothing_lacks("gpt2", strategy, cluster);
        g_test_message("%u %%: %s", percent, folds ? "folded" : "to be written whole");
        n_folded += folds;
    }
    g_assert_cmpuint(n_folded, >=, 2);
}

/* What does not repeat itself, or is not asked whether it does, has to be written. */
static void refused_where_all_are_played(void) {
    g_autoptr(ModelCluster) cluster = read_cluster("this-machine.ini");
    g_autoptr(Plan) plan = toy_folded_plan("gpt-toy", "ranks=2 accumulate=40", PLAN_FORM_FOLDED);
    SimOptions options = {.steps = STEPS};
    g_autoptr(GError) error = NULL;
    cluster->device_lane_wake_us = 50;
    g_assert_null(sim_predict(plan, cluster, &options, NULL, &error));
    g_assert_error(error, SIM_ERROR, SIM_ERROR_FOLDED);
}

typedef struct {
    const char *network, *strategy;
    GString *forms; /* that were asked for */
} Built;

static Plan *build(gpointer self, PlanForm form, GError **error) {
    (void)error;
    const Built *built = self;
    g_string_append_printf(built->forms, "%d ", (int)form);
    return toy_folded_plan(built->network, built->strategy, form);
}

/* In as few passes as repeat: some, more, all; and whole for a trace, or each rank. */
static void built_as_it_takes(void) {
    static const struct {
        const char *network, *strategy;
        double wake_us;
        bool traces, every_rank;
        PlanForm last;
    } cases[] = {
        {"gpt2", "ranks=8 accumulate=26", 0, false, false, PLAN_FORM_FOLDED},
        {"t5-small", "ranks=8 sharding=none autocast=bf16 micro_batch=4 accumulate=70", 0, false,
         false, PLAN_FORM_FOLDED_LATE},
        {"gpt-toy", "ranks=2 accumulate=400", 50, false, false, PLAN_FORM_FOR_ONE},
        {"gpt-toy", "ranks=2 accumulate=40", 0, true, false, PLAN_FORM_WHOLE},
        {"gpt-toy", "ranks=2 accumulate=40", 0, false, true, PLAN_FORM_WHOLE},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) forms = g_string_new(NULL), expected = g_string_new(NULL);
        g_autoptr(ModelCluster) cluster = read_cluster("dgx-h100.ini");
        g_autoptr(Trace) trace = cases[i].traces ? trace_new() : NULL;
        g_autoptr(Plan) plan = NULL;
        Built built = {cases[i].network, cases[i].strategy, forms};
        SimOptions options = {.steps = SIM_STEPS_IT_TAKES, .every_rank = cases[i].every_rank};
        cluster->device_lane_wake_us = cases[i].wake_us;
        g_autoptr(SimPrediction) prediction =
            sim_predict_built(build, &built, &plan, cluster, &options, trace, &error);
        g_assert_no_error(error);
        g_assert_nonnull(prediction);
        bool is_whole = cases[i].last == PLAN_FORM_WHOLE;
        int form = is_whole ? PLAN_FORM_WHOLE : PLAN_FORM_FOLDED;
        for (; form >= (int)cases[i].last; form--) {
            g_string_append_printf(expected, "%d ", form);
        }
        g_assert_cmpstr(forms->str, ==, expected->str);
        g_assert_true((plan->roles[0].n_folded > 0) == (cases[i].last > PLAN_FORM_FOR_ONE));
    }
}

static void settings_repeat(void) {
    static const char *const names[] = {"a100-node.ini", "a100-roce.ini"};
    for (unsigned c = 0; c < G_N_ELEMENTS(names); c++) {
        g_autoptr(ModelCluster) cluster = read_cluster(names[c]);
        for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
            g_autoptr(Plan) plan = toy_network_plan(settings[i].network, settings[i].strategy);
            uint32_t n_played = nothing_shows(plan, cluster);
            g_test_message("%s, %s: %u of %u steps played", settings[i].network,
                           settings[i].strategy, n_played, STEPS);
            g_assert_cmpuint(n_played, ==, settings[i].n_played);
        }
    }
}

/* With too little memory, with so little that each step gives memory back and asks for it again,
 * and with enough. */
static void pressed_for_memory(void) {
    g_autoptr(ModelCluster) cluster = read_cluster("a100-node.ini");
    g_autoptr(Plan) plan =
        toy_network_plan("gpt2", "ranks=8 flavour=fsdp1 limit_all_gathers=0 param_dtype=bf16");
    g_autoptr(SimPrediction) free = predict(plan, cluster, NULL);
    uint64_t outside = cluster->device_memory_bytes - free->allocator_bytes;
    unsigned n_retrying = 0;
    for (unsigned percent = 86; percent <= 100; percent += 2) {
        cluster->device_memory_bytes = outside + free->peak_reserved_bytes / 100 * percent;
        nothing_shows(plan, cluster);
        g_autoptr(SimPrediction) pressed = predict(plan, cluster, NULL);
        n_retrying += pressed->fits && pressed->alloc_retries > 0;
        g_test_message("%u %%: %s, %u retries, %u steps played", percent,
                       pressed->fits ? "fits" : "does not fit", (unsigned)pressed->alloc_retries,
                       pressed->n_played);
    }
    g_assert_cmpuint(n_retrying, >, 0);
}

/* A CPU rank's lane that has rested wakes up late: that it did is no part of the state. */
static void lanes_that_wake(void) {
    g_autoptr(ModelCluster) cluster = read_cluster("this-machine.ini");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=2");
    cluster->device_lane_wake_us = 50;
    g_assert_cmpuint(nothing_shows(plan, cluster), ==, STEPS);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/repeat/settings", settings_repeat);
    g_test_add_func("/sim/repeat/passes", passes_repeat);
    g_test_add_func("/sim/repeat/pressed for memory", pressed_for_memory);
    g_test_add_func("/sim/repeat/lanes that wake", lanes_that_wake);
    g_test_add_func("/sim/repeat/passes fold", passes_fold);
    g_test_add_func("/sim/repeat/passes fold late", passes_fold_late);
    g_test_add_func("/sim/repeat/passes fold latest", passes_fold_latest);
    g_test_add_func("/sim/repeat/folded and pressed", folded_and_pressed);
    g_test_add_func("/sim/repeat/built as it takes", built_as_it_takes);
    g_test_add_func("/sim/repeat/refused where all are played", refused_where_all_are_played);
    return g_test_run();
}
