/* plan/build/build.c - units, roles and sections: plays the training loop once for each and freezes
 * it. */
#include "plan/build/build.h"

#include <string.h>

#include "plan/autograd/eager.h"
#include "plan/autograd/offload.h"
#include "plan/autograd/shared/async.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/ring.h"
#include "plan/autograd/stages/stages.h"
#include "plan/autograd/traced.h"
#include "plan/build/units.h"
#include "plan/check/check.h"
#include "plan/flavours/replay.h"

enum {
    MOST_FORESEEN = 64, /* passes; arrays for more of them grow */
    FOLDED_TO = 16      /* passes: a simulator has seen by then whether they repeat */
};

/* What of a plan is written. */
typedef enum {
    WRITE_ALL,
    WRITE_FOR_ONE, /* the programs of rank 0 and of the ranks that it shares the layers with */
    WRITE_FOLDED   /* the same, and without stages of a step some of its passes */
} Written;

bool *plan_units_joined(const PlanGraph *graph, const PlanStrategy *strategy) {
    uint32_t n = graph->parameters->len;
    bool *joined = g_new0(bool, n), any = false;
    PlanRun run = {.graph = graph, .strategy = strategy};
    plan_assign_units(&run);
    for (uint32_t p = 0; p < n; p++) {
        joined[p] = plan_unit_is_mixed(&run, run.unit_of_parameter[p]);
        any |= joined[p];
    }
    plan_clear_units(&run);
    return any ? joined : (g_free(joined), NULL);
}

static const PlanFlavour *flavour_of(const PlanStrategy *strategy) {
    switch ((PlanFlavourId)strategy->flavour) {
    case PLAN_FLAVOUR_PLAIN:
        return &plan_flavour_plain;
    case PLAN_FLAVOUR_DDP:
        return &plan_flavour_ddp;
    case PLAN_FLAVOUR_FSDP1:
        return &plan_flavour_fsdp1;
    case PLAN_FLAVOUR_FSDP2:
        return &plan_flavour_fsdp2;
    case PLAN_FLAVOUR_ZERO1:
        return &plan_flavour_zero1;
    case PLAN_FLAVOUR_AUTO:
    case PLAN_N_FLAVOURS:
        break;
    }
    g_assert_not_reached();
}

static uint32_t n_names(const char *const *names) {
    return g_strv_length((char **)(gpointer)names);
}

/* ---- one role ------------------------------------------------------------------------------- */

static void run_init(PlanRun *run, const PlanGraph *graph, const PlanStrategy *strategy,
                     PlanArena *arena, uint32_t rank) {
    *run = (PlanRun){.graph = graph, .strategy = strategy, .rank = rank};
    run->float8 = PLAN_NO_FLOAT8_INPUT;
    run->async[0] = run->async[1] = PLAN_NO_ASYNC;
    run->float8_gradient_scale = PLAN_NO_TENSOR;
    run->flavour = flavour_of(strategy);
    plan_builder_init(&run->builder, arena);
    run->builder.fills = strategy->deterministic == PLAN_DETERMINISTIC_YES;
    plan_assign_units(run);
    run->is_checkpointed = plan_choose_checkpoints(graph, strategy);
    for (uint32_t m = 0; m < graph->modules->len; m++) {
        run->n_checkpointed += run->is_checkpointed[m];
    }
    bool old = plan_strategy_is_of_2_0(strategy) && run->flavour->lanes_2_0;
    run->lanes = old ? run->flavour->lanes_2_0 : run->flavour->lanes;
    run->n_flavour_lanes = n_names(run->lanes);
    run->ring_lane =
        (uint8_t)(run->n_flavour_lanes + (strategy->pipeline > 1 ? n_names(plan_stage_lanes) : 0));
    run->async_lane = (uint8_t)(run->ring_lane + (strategy->context > 1));
    run->expert_lane = (uint8_t)(run->async_lane + (strategy->async_tensor == PLAN_YES));
    uint32_t n_values = graph->values->len, n_parameters = graph->parameters->len;
    run->tape.storage_of_value = g_new(uint32_t, n_values);
    run->tape.producer_of_value = g_new(PlanEdge, n_values);
    run->producer_of_parameter = g_new(PlanEdge, n_parameters);
    for (uint32_t i = 0; i < n_values; i++) {
        run->tape.storage_of_value[i] = PLAN_NONE;
        run->tape.producer_of_value[i] = (PlanEdge){PLAN_NONE, PLAN_NONE};
    }
    run->sent = PLAN_NO_TENSOR;
    run->loss_scale = run->growth = run->found_inf = PLAN_NO_TENSOR;
    run->checkpoint = PLAN_NONE;
    uint32_t n_nodes = graph->ops->len + run->n_units;
    plan_vector_reserve(&run->tape.nodes, n_nodes);
    plan_vector_reserve(&run->tape.slots, n_nodes);
    plan_vector_reserve(&run->tape.edges, 3 * n_nodes);
    plan_vector_reserve(&run->tape.saved, 2 * n_nodes);
    run->tape.node_of_op = g_new(uint32_t, graph->ops->len);
    for (uint32_t i = 0; i < graph->ops->len; i++) {
        run->tape.node_of_op[i] = PLAN_NONE;
    }
    run->gradients = g_new(PlanTensor, n_parameters);
    run->incoming = g_new(PlanTensor, n_parameters);
    run->tape.n_contributions = g_new0(uint32_t, n_parameters);
    run->states = g_new(uint32_t, PLAN_N_STATES * n_parameters);
    for (uint32_t p = 0; p < n_parameters; p++) {
        run->gradients[p] = run->incoming[p] = PLAN_NO_TENSOR;
        run->producer_of_parameter[p] = (PlanEdge){PLAN_NONE, p};
    }
    for (uint32_t i = 0; i < PLAN_N_STATES * n_parameters; i++) {
        run->states[i] = PLAN_NONE;
    }
}

static void run_clear(PlanRun *run) {
    plan_stages_free(run->stages);
    run->flavour->clear(run);
    plan_builder_clear(&run->builder);
    plan_clear_units(run);
    g_free(run->is_checkpointed);
    g_free(run->tape.storage_of_value);
    g_free(run->tape.producer_of_value);
    g_free(run->producer_of_parameter);
    g_free(run->gradients);
    g_free(run->incoming);
    g_free(run->is_summed);
    g_free(run->tape.n_contributions);
    g_free(run->states);
    g_free(run->tape.node_of_op);
    plan_vector_clear(&run->storages);
    plan_vector_clear(&run->tape.nodes);
    plan_vector_clear(&run->tape.edges);
    plan_vector_clear(&run->tape.slots);
    plan_vector_clear(&run->tape.saved);
    plan_vector_clear(&run->tape.hooks);
    plan_vector_clear(&run->late);
    plan_vector_clear(&run->tape.checkpoints);
    plan_vector_clear(&run->tape.kept);
    plan_vector_clear(&run->tape.largest);
    plan_vector_clear(&run->aliases);
    plan_vector_clear(&run->frame_buffers);
    plan_vector_clear(&run->frames);
}

static void next_batch(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    uint32_t first = g_array_index(graph->inputs, uint32_t, 0);
    const PlanGraphValue *v = plan_graph_at(graph->values, PlanGraphValue, first);
    int64_t passes = (int64_t)run->strategy->accumulate;
    int64_t at_once = run->stages ? passes : 1; /* a schedule takes all of a step */
    plan_run_at(run, PLAN_PHASE_FORWARD, 0);
    plan_builder_begin_op(&run->builder, PLAN_OP_BATCH, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)graph->samples * at_once,
                                      (int64_t)(v->elements / graph->samples), (int64_t)v->bound,
                                      (int64_t)run->pass, passes / at_once},
                          NULL);
    for (unsigned i = 0; i < 2; i++) {
        bool is_there = i < graph->inputs->len && !graph->traced;
        uint32_t input = is_there || !i ? i : v->bound ? 0 : PLAN_NONE; /* a trace's own */
        plan_run_operand(run,
                         input == PLAN_NONE
                             ? PLAN_NO_TENSOR
                             : plan_run_value(run, g_array_index(graph->inputs, uint32_t, input)));
    }
    plan_builder_launch(&run->builder, 0);
    for (uint32_t i = 1; i < graph->inputs->len && graph->traced; i++) {
        plan_traced_fill_input(run, i);
    }
}

static void begin_pass(PlanRun *run, uint64_t pass) {
    const PlanStrategy *s = run->strategy;
    run->pass = pass;
    run->reduces = run->pass + 1 == s->accumulate || s->accumulate_sync == PLAN_SYNC_EVERY;
    next_batch(run);
    plan_run_hook(run, run->flavour->begin_pass);
}

static void play_pass(PlanRun *run) {
    plan_run_forward(run);
    plan_run_backward(run);
    plan_run_after_backward(run);
}

/* Those that are folded would stand before the last. */
static void play_passes(PlanRun *run) {
    uint64_t n = run->strategy->accumulate - run->n_folded;
    play_pass(run);
    for (uint64_t pass = 1; pass < n; pass++) {
        begin_pass(run, pass + 1 < n ? pass : run->strategy->accumulate - 1);
        play_pass(run);
    }
}

/* torch.cuda.synchronize(): every lane that this step has given work. */
static void wait_for_device(PlanRun *run) {
    PlanBuilder *builder = &run->builder;
    for (uint8_t lane = 0; lane < PLAN_MAX_LANES; lane++) {
        if (builder->works >> lane & 1) {
            plan_builder_host_wait_lane(builder, lane);
        }
    }
}

/* All but the optimizer. */
static void play_step(PlanRun *run, uint32_t n_runs, const PlanRole *first, PlanPasses *passes) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    if (n_runs > 1) {
        run->pass = 0;
        next_batch(run);
        plan_stages_begin_several(run, n_runs);
        plan_stages_play_several(run, n_runs);
        return;
    }
    if (run->stages) {
        run->pass = 0;
        next_batch(run);
        plan_stages_begin(run);
    } else {
        begin_pass(run, 0);
    }
    if ((first || !is_first) && run->flavour->replays && run->flavour->replays(run)) {
        plan_replay(run, first, passes);
        return;
    }
    PlanMark begin = plan_replay_mark(run);
    if (run->stages) {
        plan_stages_play(run);
    } else {
        play_passes(run);
    }
    if (is_first) {
        *passes = (PlanPasses){begin, plan_replay_mark(run)};
    }
}

/* first: the role whose passes may be copied, NULL for that one itself. */
static void train_step(PlanRun *run, uint32_t n_runs, const PlanRole *first, PlanPasses *passes) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    play_step(run, n_runs, first, passes);
    plan_run_optimizer(run, n_runs, is_first);
    if (run->strategy->step_sync == PLAN_YES) {
        wait_for_device(run);
    }
}

static void construct(PlanRun *run) {
    run->flavour->construct(run);
    if (run->graph->n_stages > 1) {
        run->stages = plan_stages_new(run);
    }
}

/* run: the first of n_runs, one for each stage of the role's ranks. */
static void build_role(PlanRun *run, uint32_t n_runs, PlanRole *role, const PlanRole *first,
                       PlanPasses *passes) {
    plan_builder_begin_section(&run->builder, PLAN_SECTION_CONSTRUCT);
    construct(run);
    for (uint32_t i = 1; i < n_runs; i++) {
        plan_stages_hand_on(&run[i - 1], &run[i]);
        construct(&run[i]);
    }
    plan_stages_hand_on(&run[n_runs - 1], run);
    plan_builder_end_section(&run->builder);
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        bool (*is_steady)(const PlanRun *) = run->flavour->is_steady;
        if (s == PLAN_SECTION_STEADY && (!is_steady || is_steady(run))) {
            plan_builder_repeat_section(&run->builder);
            break;
        }
        plan_builder_begin_section(&run->builder, s);
        train_step(run, n_runs, first, passes);
        plan_builder_end_section(&run->builder);
    }
    for (uint32_t i = 0; i < n_runs; i++) {
        for (uint32_t p = 0; p < run[i].graph->parameters->len; p++) {
            role->n_parameter_elements += run->flavour->owned(&run[i], p).elements;
        }
    }
    role->n_folded = run->n_folded;
    plan_builder_hand_over(&run->builder, role);
}

/* ---- the tables all roles share ------------------------------------------------------------- */

/* Where each stage's modules, units and parameters begin in the tables. */
typedef struct {
    uint32_t module, unit, parameter;
} Begins;

static uint32_t first_rank_of_stage(const PlanStrategy *strategy, uint32_t stage) {
    return stage % (uint32_t)strategy->pipeline * (uint32_t)(strategy->ranks / strategy->pipeline);
}

static void name_modules(Plan *plan, const PlanGraph *graph, const Begins *begins) {
    for (uint32_t i = 0; i < graph->modules->len; i++) {
        const PlanGraphModule *m = plan_graph_at(graph->modules, PlanGraphModule, i);
        plan->modules[begins->module + i] =
            (PlanModule){.name = plan_arena_text(plan->arena, m->name),
                         .class_name = plan_arena_text(plan->arena, m->class_name),
                         .parent = m->parent == PLAN_NONE ? PLAN_NONE : m->parent + begins->module};
    }
}

static void name_units(Plan *plan, const PlanRun *run, const Begins *begins) {
    g_autofree uint64_t *shards = g_new0(uint64_t, run->n_units);
    if (run->flavour->shards_of_units) {
        run->flavour->shards_of_units(run, shards);
    }
    for (uint32_t u = 0; u < run->n_units; u++) {
        PlanUnit *unit = &plan->units[begins->unit + u];
        const char *name = plan->modules[begins->module + run->units[u].module].name;
        unit->name = *name ? name : "root";
        unit->elements = run->units[u].elements;
        unit->shard_elements = run->flavour->shards_of_units ? shards[u] : run->units[u].elements;
    }
}

static void name_parameters(Plan *plan, const PlanRun *run, const Begins *begins) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = 0; i < graph->parameters->len; i++) {
        const PlanGraphParameter *p = plan_graph_at(graph->parameters, PlanGraphParameter, i);
        PlanParameter *out = &plan->parameters[begins->parameter + i];
        *out =
            (PlanParameter){.name = plan_arena_text(plan->arena, p->name),
                            .unit = begins->unit + run->unit_of_parameter[i],
                            .dtype = p->wide ? PLAN_FP32 : plan_strategy_model_dtype(run->strategy),
                            .frozen = p->frozen,
                            .share = (uint8_t)p->share,
                            .n_dims = p->n_dims,
                            .elements = p->elements};
        memcpy(out->dims, p->dims, sizeof out->dims);
        if (p->share != PLAN_SHARE_ALL) {
            uint32_t ranks = plan->axes[plan_axis_of_share(p->share)];
            out->elements *= ranks;
            out->dims[p->share == PLAN_SHARE_COLUMNS ? p->n_dims - 1 : 0] *= ranks;
        }
    }
}

/* Those of one stage behind those of another. run: of the first stage. ret_begins: of each stage
 * and behind the last. */
static void name_everything(Plan *plan, const PlanRun *run, Begins *ret_begins) {
    const PlanGraph *graph = run->graph;
    const PlanStrategy *strategy = run->strategy;
    PlanRun *runs = g_new(PlanRun, graph->n_stages);
    runs[0] = *run;
    for (uint32_t s = 0; s < graph->n_stages; s++) {
        const PlanGraph *own = plan_graph_of_stage(graph, s);
        if (s > 0) {
            run_init(&runs[s], own, strategy, plan->arena, first_rank_of_stage(strategy, s));
        }
        ret_begins[s + 1] = (Begins){.module = ret_begins[s].module + own->modules->len,
                                     .unit = ret_begins[s].unit + runs[s].n_units,
                                     .parameter = ret_begins[s].parameter + own->parameters->len};
    }
    const Begins *end = &ret_begins[graph->n_stages];
    plan->n_modules = end->module;
    plan->modules = plan_arena_array(plan->arena, PlanModule, plan->n_modules);
    plan->n_units = end->unit;
    plan->units = plan_arena_array(plan->arena, PlanUnit, plan->n_units);
    plan->n_parameters = end->parameter;
    plan->parameters = plan_arena_array(plan->arena, PlanParameter, plan->n_parameters);
    for (uint32_t s = 0; s < graph->n_stages; s++) {
        name_modules(plan, runs[s].graph, &ret_begins[s]);
        name_units(plan, &runs[s], &ret_begins[s]);
        name_parameters(plan, &runs[s], &ret_begins[s]);
        if (s > 0) {
            run_clear(&runs[s]);
        }
    }
    g_free(runs);
}

/* A role is written with its stage's own numbers. */
static void number_as_in_tables(PlanRole *role, const Begins *begins) {
    for (PlanSection s = 0; s < PLAN_N_SECTIONS && begins->module > 0; s++) {
        for (uint32_t i = 0; i < role->n_instrs[s] && !plan_section_repeats(role, s); i++) {
            PlanInstr *instr = &role->sections[s][i];
            instr->unit += instr->unit == PLAN_NONE ? 0 : begins->unit;
            instr->module += instr->module == PLAN_NONE ? 0 : begins->module;
        }
    }
    for (uint32_t b = 0; b < role->n_buffers && begins->module > 0; b++) {
        uint32_t *unit = &role->buffers[b].unit;
        *unit += *unit == PLAN_NONE ? 0 : begins->unit;
    }
}

static void add_lanes(Plan *plan, const char *const *names) {
    for (; *names; names++) {
        plan->lanes[plan->n_lanes++] = *names;
    }
}

/* Of those behind the flavour's, offload's are with no others. */
static void name_lanes(Plan *plan, const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    plan->lanes = plan_arena_array(plan->arena, const char *, PLAN_MAX_LANES);
    add_lanes(plan, run->lanes);
    if (s->offload == PLAN_OFFLOAD_ACTIVATIONS || s->offload == PLAN_OFFLOAD_OPTIMIZER) {
        add_lanes(plan, plan_offload_lanes);
    }
    if (s->pipeline > 1) {
        add_lanes(plan, plan_stage_lanes);
    }
    if (s->context > 1) {
        add_lanes(plan, plan_ring_lanes);
    }
    if (s->async_tensor == PLAN_YES) {
        add_lanes(plan, plan_async_lanes);
    }
    if (s->expert > 1) {
        add_lanes(plan, plan_exchange_lanes);
    }
}

/* Where the ranks of a role are gathered; it is a new one if no rank before has that shape. */
static GArray *ranks_of_role(GHashTable *roles, GPtrArray *all, uint32_t stage, const char *shape) {
    g_autofree char *name = g_strdup_printf("%u: %s", stage, shape ? shape : "");
    GArray *ranks = g_hash_table_lookup(roles, name);
    if (!ranks) {
        ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_ptr_array_add(all, ranks);
        g_hash_table_insert(roles, g_steal_pointer(&name), ranks);
    }
    return ranks;
}

/* Ranks of one stage and shape play one role; where rows are not even, they are not in every
 * stage's parameters, so a stage may have roles that do the same. */
static void find_roles(Plan *plan, const PlanRun *run) {
    g_autoptr(GHashTable) roles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) members = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_auto(GStrv) shapes = g_new0(char *, plan->world + 1);
    if (run->flavour->shapes_of_ranks) {
        run->flavour->shapes_of_ranks(run, shapes);
    }
    GArray *ranks = NULL;
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        uint32_t per_stage = plan_ranks_of_stage(plan);
        bool as_before = rank % per_stage > 0 && g_strcmp0(shapes[rank], shapes[rank - 1]) == 0;
        if (!as_before) {
            ranks = ranks_of_role(roles, members, rank / per_stage, shapes[rank]);
        }
        g_array_append_val(ranks, rank);
    }
    plan->n_roles = members->len;
    plan->roles = plan_arena_array(plan->arena, PlanRole, plan->n_roles);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const GArray *own = members->pdata[i];
        plan->roles[i] = (PlanRole){
            .ranks = plan_arena_copy(plan->arena, own->data, own->len * sizeof(uint32_t)),
            .n_ranks = own->len};
    }
}

/* The ranks that share the layers with rank 0 are the first of each stage. */
static bool is_written(const Plan *plan, const PlanRole *role, Written written) {
    return written == WRITE_ALL || role->ranks[0] % plan_ranks_of_stage(plan) == 0;
}

/* A static layout has a place for each buffer of each pass; microbatches fill stages and drain
 * them, so that none stands for the others. */
static uint32_t count_folded(const PlanStrategy *strategy, Written written) {
    bool folds = written == WRITE_FOLDED && strategy->pipeline == 1 &&
                 strategy->accumulate > FOLDED_TO &&
                 strategy->allocator.choice != PLAN_ALLOCATOR_ARENA;
    return folds ? (uint32_t)(strategy->accumulate - FOLDED_TO) : 0;
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
                             const Begins *begins) {
    uint64_t n = run->strategy->pipeline_stages;
    PlanRun *runs = g_new0(PlanRun, n);
    runs[0] = *run;
    runs[0].n_of_rank = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = runs->graph->stage, stage = first + i * (uint32_t)run->strategy->pipeline;
        if (i > 0) {
            run_init(&runs[i], plan_graph_of_stage(graph, stage), run->strategy, plan->arena,
                     run->rank);
            runs[i].batch_of = runs;
        }
        runs[i].first_unit = begins[stage].unit - begins[first].unit;
        runs[i].first_module = begins[stage].module - begins[first].module;
        runs[i].first_parameter = begins[stage].parameter;
        runs[i].parameters = plan->parameters + runs[i].first_parameter;
    }
    return runs;
}

static Plan *build(const PlanGraph *graph, const PlanStrategy *strategy, const char *network_name,
                   const char *network_text, Written written, GError **error) {
    g_autoptr(Plan) plan = plan_new();
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
    PlanRun run;
    run_init(&run, graph, strategy, plan->arena, 0);
    if (!plan_check_units(&run, error)) {
        run_clear(&run);
        return NULL;
    }
    PlanCalls calls;
    plan_calls_init(&calls, plan->arena);
    run.calls = &calls;
    find_roles(plan, &run);
    g_autofree Begins *begins = g_new0(Begins, graph->n_stages + 1);
    name_everything(plan, &run, begins);
    name_lanes(plan, &run);
    g_autofree First *firsts = g_new0(First, strategy->context * strategy->pipeline);
    run.n_folded = count_folded(strategy, written);
    uint32_t passes_foreseen = (uint32_t)MIN(strategy->accumulate - run.n_folded, MOST_FORESEEN);
    plan_builder_expect(&run.builder, graph->ops->len * passes_foreseen + graph->parameters->len);
    plan->for_one = run.n_folded > 0;
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        if (!is_written(plan, &plan->roles[i], written)) {
            plan->for_one = true;
            continue;
        }
        if (i > 0) {
            uint32_t rank = plan->roles[i].ranks[0], stage = rank / plan_ranks_of_stage(plan);
            run_init(&run, plan_graph_of_stage(graph, stage), strategy, plan->arena, rank);
            run.calls = &calls;
            plan_builder_expect_like(&run.builder, &plan->roles[0]);
        }
        PlanRun *runs = runs_of_rank(&run, graph, plan, begins);
        First *first = &firsts[run.graph->stage * strategy->context + plan_ring_place(&run)];
        build_role(runs, (uint32_t)strategy->pipeline_stages, &plan->roles[i], first->role,
                   &first->passes);
        for (uint32_t r = 0; r < strategy->pipeline_stages; r++) {
            run_clear(&runs[r]);
        }
        g_free(runs);
        first->role = first->role ? first->role : &plan->roles[i];
    }
    plan->calls = plan_calls_take(&calls, &plan->n_calls);
    plan_calls_clear(&calls);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        uint32_t stage = plan->roles[i].ranks[0] / plan_ranks_of_stage(plan);
        number_as_in_tables(&plan->roles[i], &begins[stage]);
    }
    bool is_asked = g_getenv("FORESHARD_CHECK") != NULL;
    bool is_sound = is_asked ? plan_check(plan, error) : plan_check_sizes(plan, error);
    return is_sound ? g_steal_pointer(&plan) : NULL;
}

Plan *plan_build(const PlanGraph *graph, const PlanStrategy *strategy, const char *network_name,
                 const char *network_text, GError **error) {
    return build(graph, strategy, network_name, network_text, WRITE_ALL, error);
}

Plan *plan_build_for_one(const PlanGraph *graph, const PlanStrategy *strategy,
                         const char *network_name, const char *network_text, GError **error) {
    return build(graph, strategy, network_name, network_text, WRITE_FOR_ONE, error);
}

Plan *plan_build_folded(const PlanGraph *graph, const PlanStrategy *strategy,
                        const char *network_name, const char *network_text, GError **error) {
    return build(graph, strategy, network_name, network_text, WRITE_FOLDED, error);
}
