/* cli/published/train/play.c - a published run planned, played, and held to what was measured: see
 * case.h. */
#include "cli/published/train/case.h"

#include <math.h>
#include <string.h>

#include "cli/published/train/time.h"
#include "sim/built.h"
#include "sim/work.h"

/* ---- the plan ------------------------------------------------------------------------------- */

static Plan *build(gpointer self, PlanForm form, GError **error) {
    const CliTrainCase *c = self;
    return model_network_plan(c->network, &c->strategy, form, error);
}

/* Another case of the row may differ in its cluster alone. */
static bool has_same_plan(const CliTrainCase *a, const CliTrainCase *b) {
    g_autofree char *strategy = plan_strategy_text(&a->strategy);
    g_autofree char *other = plan_strategy_text(&b->strategy);
    return g_str_equal(strategy, other) && g_str_equal(a->network->name, b->network->name) &&
           g_str_equal(a->network->text, b->network->text);
}

void cli_train_case_plan(CliTrainCase *c, CliTrainCase *like) {
    g_autoptr(GError) cause = NULL;
    if (like && like->plan && has_same_plan(c, like)) {
        c->plan = g_steal_pointer(&like->plan);
    } else if (!(c->plan = build(c, PLAN_FORM_FOLDED, &cause))) {
        cli_train_skip(c, cause->message);
    }
}

static SimWork work_done(const CliTrainCase *c, SimWorkKind kind) {
    const PlanRole *role = &c->plan->roles[plan_role_of_rank(c->plan, 0)];
    return sim_work_of_step(role, c->cluster, kind);
}

static bool has_convention(const CliTrainCase *c, const char *word) {
    const char *convention = cli_rules_value(c->settings, "flops");
    return convention && g_str_equal(convention, word);
}

bool cli_train_tflops_are_all(const CliTrainCase *c) {
    return has_convention(c, "all");
}

/* All pairs of attention, hidden ones too, for each that is seen: of the FLOPs of a step. */
static double of_all_pairs(const CliTrainCase *c) {
    return work_done(c, SIM_WORK_ASKED_OF_ALL_PAIRS).flops / work_done(c, SIM_WORK_ASKED).flops;
}

/* A step's work, as the source counts it. */
static CliTrainWork work_of_step(const CliTrainCase *c, const SimPrediction *prediction) {
    bool of_all = has_convention(c, "palm");
    SimWorkKind done = of_all ? SIM_WORK_DONE_OF_ALL_PAIRS : SIM_WORK_DONE;
    return (CliTrainWork){.tokens = (double)c->plan->tokens_per_rank,
                          .model_flops = prediction->flops * (of_all ? of_all_pairs(c) : 1),
                          .all_flops = work_done(c, done).flops,
                          .peak_flops = model_cluster_peak_flops(c->cluster, PLAN_BF16),
                          .tflops_are_all = cli_train_tflops_are_all(c)};
}

/* As PyTorch counts, whose products hold workspaces too. */
static double predicted_bytes(const CliTrainCase *c, const SimPrediction *prediction) {
    const char *memory = cli_rules_value(c->settings, "memory");
    double besides = (double)prediction->workspace_bytes;
    double reserved = (double)prediction->peak_reserved_bytes + besides;
    if (memory && g_str_equal(memory, "allocated")) {
        return (double)prediction->peak.at.allocated_bytes + besides;
    }
    if (memory && g_str_equal(memory, "active")) {
        return (double)prediction->peak_active_bytes + besides;
    }
    return memory && g_str_equal(memory, "device")
               ? reserved + (double)c->cluster->device_outside_allocator_bytes
               : reserved;
}

static SimMemoryOf memory_of(const CliTrainCase *c) {
    const char *word = cli_rules_value(c->settings, "memory_of");
    return g_strcmp0(word, "first") == 0  ? SIM_MEMORY_OF_FIRST
           : g_strcmp0(word, "last") == 0 ? SIM_MEMORY_OF_LAST
                                          : SIM_MEMORY_OF_FULLEST;
}

static SimPrediction *predict(CliTrainCase *c, GError **error) {
    SimOptions options = {.steps = SIM_STEPS_IT_TAKES,
                          .allocator = &c->allocator,
                          .unplayed = c->unplayed,
                          .memory_of = memory_of(c)};
    return sim_predict_built(build, c, &c->plan, c->cluster, &options, NULL, error);
}

bool cli_train_case_play(CliTrainCase *c, CliTrainRow *row) {
    g_autoptr(GError) cause = NULL;
    g_autoptr(SimPrediction) prediction = predict(c, &cause);
    if (!prediction) {
        return cli_train_skip(c, cause->message);
    }
    if (prediction->unsupported_dtype) {
        return cli_train_skip(c, "the GPU cannot compute in this dtype");
    }
    row->fits = prediction->fits;
    row->retries = prediction->alloc_retries;
    row->bound_by = g_intern_string(prediction->bound_by);
    g_autofree char *gpu_kind = cli_run_gpu(c->cluster);
    row->gpu_kind = g_intern_string(gpu_kind);
    row->kind = cli_run_kind(c->plan, prediction);
    CliTrainWork work = work_of_step(c, prediction);
    row->measured_ms = cli_train_time_ms(c->csv, &c->row, &work);
    row->contradicted = cli_train_time_contradicted(c->csv, &c->row, &work);
    row->predicted_ms = (double)prediction->median_step_ns / 1e6;
    row->at_peak_ms = work_done(c, SIM_WORK_DONE).least_seconds * 1e3;
    double peak = cli_csv_known(c->csv, &c->row, "peak_mem_gib");
    row->measured_gib = peak > 0 ? peak : NAN;
    row->predicted_gib = predicted_bytes(c, prediction) / CLI_BYTES_PER_GIB;
    return !(isnan(row->measured_ms) && isnan(row->measured_gib)) ||
           cli_train_skip(c, "neither a time nor a peak of memory is given");
}
