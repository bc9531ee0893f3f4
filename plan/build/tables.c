#include "plan/build/tables.h"

#include <string.h>

#include "plan/autograd/offload-slots.h"
#include "plan/autograd/run.h"
#include "plan/autograd/shared/async.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/ring.h"
#include "plan/autograd/stages/stages.h"
#include "plan/build/run.h"
#include "plan/mesh.h"

static uint32_t first_rank_of_stage(const PlanStrategy *strategy, uint32_t stage) {
    return stage % (uint32_t)strategy->pipeline * (uint32_t)(strategy->ranks / strategy->pipeline);
}

static void name_modules(Plan *plan, const PlanGraph *graph, const PlanStageBegins *begins) {
    for (uint32_t i = 0; i < graph->modules.len; i++) {
        const PlanGraphModule *m = plan_graph_module_at(graph, i);
        plan->modules[begins->module + i] =
            (PlanModule){.name = plan_arena_text(plan->arena, m->name),
                         .class_name = plan_arena_text(plan->arena, m->class_name),
                         .parent = m->parent == PLAN_NONE ? PLAN_NONE : m->parent + begins->module};
    }
}

static void name_units(Plan *plan, const PlanRun *run, const PlanStageBegins *begins) {
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

static void name_parameters(Plan *plan, const PlanRun *run, const PlanStageBegins *begins) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = 0; i < graph->parameters.len; i++) {
        const PlanGraphParameter *p = plan_graph_parameter_at(graph, i);
        PlanParameter *out = &plan->parameters[begins->parameter + i];
        *out = (PlanParameter){.name = plan_arena_text(plan->arena, p->name),
                               .unit = begins->unit + run->unit_of_parameter[i],
                               .dtype =
                                   plan_graph_dtype_of(p, plan_strategy_model_dtype(run->strategy)),
                               .frozen = p->frozen,
                               .split = (uint8_t)p->split,
                               .n_dims = p->n_dims,
                               .elements = p->elements};
        memcpy(out->dims, p->dims, sizeof out->dims);
        if (p->numbers) { /* what it stands for, whatever it lies in */
            out->elements = p->numbers;
            out->dtype = p->copied_in;
            out->four_bits = true;
            memcpy(out->dims, p->matrix, sizeof p->matrix);
        }
        if (p->split != PLAN_SPLIT_NONE) {
            uint32_t ranks = plan->axes[plan_axis_of_split(p->split)];
            out->elements *= ranks;
            out->dims[p->split == PLAN_SPLIT_COLUMNS ? p->n_dims - 1 : 0] *= ranks;
        }
    }
}

/* Those of one stage behind those of another. */
static void name_everything(Plan *plan, const PlanRun *run, PlanStageBegins *ret_begins) {
    const PlanGraph *graph = run->graph;
    const PlanStrategy *strategy = run->strategy;
    PlanRun *runs = g_new(PlanRun, graph->pipeline.n_stages);
    runs[0] = *run;
    for (uint32_t s = 0; s < graph->pipeline.n_stages; s++) {
        const PlanGraph *own = plan_graph_of_stage(graph, s);
        if (s > 0) {
            plan_run_init(&runs[s], own, strategy, plan->arena, first_rank_of_stage(strategy, s));
        }
        ret_begins[s + 1] =
            (PlanStageBegins){.module = ret_begins[s].module + own->modules.len,
                              .unit = ret_begins[s].unit + runs[s].n_units,
                              .parameter = ret_begins[s].parameter + own->parameters.len};
    }
    const PlanStageBegins *end = &ret_begins[graph->pipeline.n_stages];
    plan->n_modules = end->module;
    plan->modules = plan_arena_array(plan->arena, PlanModule, plan->n_modules);
    plan->n_units = end->unit;
    plan->units = plan_arena_array(plan->arena, PlanUnit, plan->n_units);
    plan->n_parameters = end->parameter;
    plan->parameters = plan_arena_array(plan->arena, PlanParameter, plan->n_parameters);
    for (uint32_t s = 0; s < graph->pipeline.n_stages; s++) {
        name_modules(plan, runs[s].graph, &ret_begins[s]);
        name_units(plan, &runs[s], &ret_begins[s]);
        name_parameters(plan, &runs[s], &ret_begins[s]);
        if (s > 0) {
            plan_run_clear(&runs[s]);
        }
    }
    g_free(runs);
}

static void add_lanes(Plan *plan, const char *const *names) {
    for (; *names; names++) {
        plan->lanes[plan->n_lanes++] = *names;
    }
}

/* The flavour's lanes, then those of what else the strategy has. Offload's come with no others. */
static void name_lanes(Plan *plan, const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    plan->lanes = plan_arena_array(plan->arena, const char *, PLAN_MAX_LANES);
    add_lanes(plan, run->lanes.names);
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

PlanStageBegins *plan_fill_tables(Plan *plan, const PlanRun *run) {
    PlanStageBegins *begins = g_new0(PlanStageBegins, run->graph->pipeline.n_stages + 1);
    name_everything(plan, run, begins);
    name_lanes(plan, run);
    return begins;
}

void plan_number_as_in_tables(PlanRole *role, const PlanStageBegins *begins) {
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
