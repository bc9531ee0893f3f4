/* plan/build/build.c - a plan from its tables to the last role's program. */
#include "plan/build/build.h"

#include "plan/autograd/shared/ring.h"
#include "plan/autograd/unit.h"
#include "plan/build/fits.h"
#include "plan/build/roles.h"
#include "plan/build/run.h"
#include "plan/build/tables.h"
#include "plan/build/train.h"
#include "plan/build/units.h"
#include "plan/check/check.h"
#include "plan/mesh.h"
#include "plan/refuse.h"

enum {
    MOST_FORESEEN = 64 /* passes; arrays for more of them grow */
};

/* Passes: a simulator has mostly seen by the first of these whether they repeat. Where the host
 * gains on the device, they do once its queue is full, which is the later the less it gains. */
static const uint64_t folded_to[PLAN_N_FORMS] = {
    [PLAN_FORM_WHOLE] = UINT64_MAX,  [PLAN_FORM_FOR_ONE] = UINT64_MAX,
    [PLAN_FORM_FOLDED_LATEST] = 320, [PLAN_FORM_FOLDED_LATE] = 64,
    [PLAN_FORM_FOLDED] = 16,
};

bool *plan_units_joined(const PlanGraph *graph, const PlanStrategy *strategy) {
    uint32_t n = graph->parameters.len;
    bool *joined = g_new0(bool, n), any = false;
    PlanRun run = {.graph = graph, .strategy = strategy};
    plan_assign_units(&run);
    for (uint32_t p = 0; p < n; p++) {
        joined[p] = plan_unit_is_mixed(&run, run.unit_of_parameter[p]) &&
                    !plan_graph_parameter_at(graph, p)->ignored;
        any |= joined[p];
    }
    plan_clear_units(&run);
    return any ? joined : (g_free(joined), NULL);
}

bool *plan_units_modules(const PlanGraph *graph, const PlanStrategy *strategy) {
    bool *modules = g_new0(bool, graph->modules.len);
    PlanRun run = {.graph = graph, .strategy = strategy};
    plan_assign_units(&run);
    for (uint32_t m = 0; m < graph->modules.len; m++) {
        modules[m] = run.modules.unit_opened_by[m] != PLAN_NONE ||
                     run.modules.unit_closed_by[m] != PLAN_NONE;
    }
    plan_clear_units(&run);
    return modules;
}

/* The ranks that share the layers with rank 0 are the first of each stage. */
static bool is_written(const Plan *plan, const PlanRole *role, PlanForm form) {
    return form == PLAN_FORM_WHOLE || role->ranks[0] % plan_ranks_of_stage(plan) == 0;
}

/* A static layout has a place for each buffer of each pass; microbatches fill stages and drain
 * them, so that none stands for the others. */
static uint32_t count_folded(const PlanGraph *graph, const PlanStrategy *strategy, PlanForm form) {
    uint64_t to = folded_to[form];
    bool folds = strategy->pipeline == 1 && strategy->accumulate > to &&
                 strategy->allocator.choice != PLAN_ALLOCATOR_ARENA &&
                 !plan_graph_results_outlive_pass(graph);
    return folds ? (uint32_t)(strategy->accumulate - to) : 0;
}

/* A network is called as its file is, whose name may be what no line of a text can hold. */
static const char *title_of(PlanArena *arena, const char *network_name,
                            const PlanStrategy *strategy) {
    g_autofree char *strategy_title = plan_strategy_title(strategy);
    g_autofree char *name = g_utf8_make_valid(network_name, -1);
    g_autofree char *title = g_strdup_printf("%s, %s", name, strategy_title);
    return plan_arena_text(arena, g_strdelimit(title, "\r\n", ' '));
}

/* The first role of those whose passes are one program: ranks of one stage that have the same place
 * among those that share a sequence. */
typedef struct {
    const PlanRole *role;
    PlanPasses passes;
} First;

/* The other stages of a rank of which run plays the first; their parameters are in the tables. */
static PlanRun *runs_of_rank(PlanRun *run, const PlanGraph *graph, Plan *plan,
                             const PlanStageBegins *begins) {
    uint64_t n = run->strategy->pipeline_stages;
    PlanRun *runs = g_new0(PlanRun, n);
    runs[0] = *run;
    runs[0].owner.n_of_rank = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = runs->graph->pipeline.stage,
                 stage = first + i * (uint32_t)run->strategy->pipeline;
        if (i > 0) {
            plan_run_init(&runs[i], plan_graph_of_stage(graph, stage), run->strategy, plan->arena,
                          run->owner.rank);
            runs[i].owner.batch_of = runs;
        }
        runs[i].owner.first_unit = begins[stage].unit - begins[first].unit;
        runs[i].owner.first_module = begins[stage].module - begins[first].module;
        runs[i].owner.first_parameter = begins[stage].parameter;
        runs[i].owner.parameters = plan->parameters + runs[i].owner.first_parameter;
    }
    return runs;
}

/* All that a plan says before its tables and programs. */
static Plan *begin_plan(const PlanGraph *graph, const PlanStrategy *strategy,
                        const char *network_name, const char *network_text) {
    Plan *plan = plan_new();
    g_autofree char *strategy_text = plan_strategy_text(strategy);
    plan->network = plan_arena_text(plan->arena, network_text);
    plan->strategy = plan_arena_text(plan->arena, strategy_text);
    plan->title = title_of(plan->arena, network_name, strategy);
    plan->world = (uint32_t)strategy->ranks;
    plan->axes[PLAN_AXIS_NONE] = 1;
    plan->axes[PLAN_AXIS_SHARD] = (uint32_t)plan_strategy_shard_ranks(strategy);
    plan->axes[PLAN_AXIS_TENSOR] = (uint32_t)strategy->tensor;
    plan->axes[PLAN_AXIS_CONTEXT] = (uint32_t)strategy->context;
    plan->axes[PLAN_AXIS_PIPELINE] = (uint32_t)strategy->pipeline;
    plan->axes[PLAN_AXIS_REPLICATE] = plan->world / plan->axes[PLAN_AXIS_PIPELINE] /
                                      plan->axes[PLAN_AXIS_TENSOR] / plan->axes[PLAN_AXIS_SHARD];
    plan->axes[PLAN_AXIS_EXPERT] = (uint32_t)strategy->expert;
    plan->axes[PLAN_AXIS_ALIKE] = (uint32_t)plan_strategy_alike_ranks(strategy);
    plan->axes[PLAN_AXIS_PART] = (uint32_t)MAX(1, plan_strategy_part_ranks(strategy));
    plan->tokens_per_rank =
        graph->tokens * strategy->accumulate / strategy->tensor / strategy->pipeline;
    return plan;
}

/* run: of the first stage, whose parameters are in the tables; the role takes it. */
static void write_role(PlanRun *run, const PlanGraph *graph, Plan *plan,
                       const PlanStageBegins *begins, First *firsts, PlanRole *role) {
    uint32_t n_stages = (uint32_t)run->strategy->pipeline_stages;
    PlanRun *runs = runs_of_rank(run, graph, plan, begins);
    First *first =
        &firsts[run->graph->pipeline.stage * run->strategy->context + plan_ring_place(run)];
    plan_train(runs, n_stages, role, first->role, &first->passes);
    for (uint32_t i = 0; i < n_stages; i++) {
        plan_run_clear(&runs[i]);
    }
    g_free(runs);
    first->role = first->role ? first->role : role;
}

/* run: as it was when the tables were filled, of rank 0; the first role takes it. */
static void write_roles(PlanRun *run, const PlanGraph *graph, Plan *plan,
                        const PlanStageBegins *begins, PlanForm form) {
    const PlanStrategy *strategy = run->strategy;
    PlanCalls calls;
    plan_calls_init(&calls, plan->arena);
    run->calls = &calls;
    run->pass.n_folded = count_folded(graph, strategy, form);
    plan->for_one = run->pass.n_folded > 0;
    uint32_t passes_foreseen =
        (uint32_t)MIN(strategy->accumulate - run->pass.n_folded, MOST_FORESEEN);
    plan_builder_expect(&run->builder, &run->flavour->growth, graph->ops.len * passes_foreseen,
                        graph->dims.len * passes_foreseen, graph->parameters.len);
    g_autofree First *firsts = g_new0(First, strategy->context * strategy->pipeline);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        PlanRole *role = &plan->roles[i];
        if (!is_written(plan, role, form)) {
            plan->for_one = true;
            continue;
        }
        uint32_t rank = role->ranks[0], stage = rank / plan_ranks_of_stage(plan);
        if (i > 0) {
            plan_run_init(run, plan_graph_of_stage(graph, stage), strategy, plan->arena, rank);
            run->calls = &calls;
            plan_builder_expect_like(&run->builder, &plan->roles[0]);
        }
        write_role(run, graph, plan, begins, firsts, role);
    }
    plan->calls = plan_calls_take(&calls, &plan->n_calls);
    plan_calls_clear(&calls);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        uint32_t stage = plan->roles[i].ranks[0] / plan_ranks_of_stage(plan);
        plan_number_as_in_tables(&plan->roles[i], &begins[stage]);
    }
}

/* What an evaluation leaves is known where every later step is the third's program. */
static bool evaluates_as_known(const Plan *plan, const PlanStrategy *strategy, GError **error) {
    bool alternate = false;
    for (uint32_t i = 0; i < plan->n_roles && strategy->eval_batches; i++) {
        alternate |= plan_steps_alternate(&plan->roles[i]);
    }
    return !alternate || plan_refuse(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                                     "an evaluation is not planned where two kinds of steps take "
                                     "turns, as they do in this plan; set eval_batches=0");
}

Plan *plan_build(const PlanGraph *graph, const PlanStrategy *strategy, const char *network_name,
                 const char *network_text, PlanForm form, GError **error) {
    g_autoptr(Plan) plan = begin_plan(graph, strategy, network_name, network_text);
    PlanRun run;
    plan_run_init(&run, graph, strategy, plan->arena, 0);
    if (!plan_strategy_fits(&run, error)) {
        plan_run_clear(&run);
        return NULL;
    }
    plan_find_roles(plan, &run);
    g_autofree PlanStageBegins *begins = plan_fill_tables(plan, &run);
    write_roles(&run, graph, plan, begins, form);
    if (!evaluates_as_known(plan, strategy, error)) {
        return NULL;
    }
    bool is_asked = g_getenv("FORESHARD_CHECK") != NULL;
    bool is_sound = is_asked ? plan_check(plan, error) : plan_check_sizes(plan, error);
    return is_sound ? g_steal_pointer(&plan) : NULL;
}
