#include "plan/build/run.h"

#include "plan/autograd/stages/stages.h"
#include "plan/autograd/unit.h"
#include "plan/build/checkpoints.h"
#include "plan/build/units.h"

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

void plan_run_init(PlanRun *run, const PlanGraph *graph, const PlanStrategy *strategy,
                   PlanArena *arena, uint32_t rank) {
    *run = (PlanRun){.graph = graph, .strategy = strategy, .owner = {.rank = rank}};
    run->float8.input = PLAN_NO_FLOAT8_INPUT;
    run->async[0] = run->async[1] = PLAN_NO_ASYNC;
    run->float8.gradient_scale = PLAN_NO_TENSOR;
    run->float8.found[0] = run->float8.found[1] = PLAN_NONE;
    run->flavour = flavour_of(strategy);
    plan_builder_init(&run->builder, arena);
    run->builder.fills = strategy->deterministic == PLAN_DETERMINISTIC_YES;
    plan_assign_units(run);
    run->modules.is_checkpointed = plan_choose_checkpoints(graph, strategy);
    for (uint32_t m = 0; m < graph->modules.len; m++) {
        run->modules.n_checkpointed += run->modules.is_checkpointed[m];
    }
    run->modules.checkpoints_reenter = strategy->flavour == PLAN_FLAVOUR_FSDP1 &&
                                       !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0) &&
                                       plan_units_split_blocks(run);
    bool old = !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0) && run->flavour->lanes_2_0;
    run->lanes.names = old ? run->flavour->lanes_2_0 : run->flavour->lanes;
    run->lanes.n_of_flavour = n_names(run->lanes.names);
    run->lanes.ring = (uint8_t)(run->lanes.n_of_flavour +
                                (strategy->pipeline > 1 ? n_names(plan_stage_lanes) : 0));
    run->lanes.async = (uint8_t)(run->lanes.ring + (strategy->context > 1));
    run->lanes.expert = (uint8_t)(run->lanes.async + (strategy->async_tensor == PLAN_YES));
    uint32_t n_values = graph->values.len, n_parameters = graph->parameters.len;
    run->tape.storage_of_value = g_new(uint32_t, n_values);
    run->tape.producer_of_value = g_new(PlanEdge, n_values);
    run->evaluation.graph = graph->evaluation;
    run->producer_of_parameter = g_new(PlanEdge, n_parameters);
    for (uint32_t i = 0; i < n_values; i++) {
        run->tape.storage_of_value[i] = PLAN_NONE;
        run->tape.producer_of_value[i] = (PlanEdge){PLAN_NONE, PLAN_NONE};
    }
    run->sent.tensor = PLAN_NO_TENSOR;
    run->scaler.loss_scale = run->scaler.growth = run->scaler.found_inf = PLAN_NO_TENSOR;
    run->checkpoint = run->reentered = PLAN_NONE;
    uint32_t n_nodes = graph->ops.len + run->n_units;
    plan_vector_reserve(&run->storages, n_values + 2 * n_parameters);
    plan_vector_reserve(&run->tape.nodes, n_nodes);
    plan_vector_reserve(&run->tape.slots, 2 * n_nodes);
    plan_vector_reserve(&run->tape.edges, 3 * n_nodes);
    plan_vector_reserve(&run->tape.saved, 2 * n_nodes);
    run->tape.node_of_op = g_new(uint32_t, graph->ops.len);
    for (uint32_t i = 0; i < graph->ops.len; i++) {
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

void plan_run_clear(PlanRun *run) {
    plan_stages_free(run->owner.stages);
    run->flavour->clear(run);
    plan_builder_clear(&run->builder);
    plan_clear_units(run);
    plan_tape_free(&run->tape);
    g_free(run->modules.is_checkpointed);
    g_free(run->evaluation.storage_of_value);
    g_free(run->producer_of_parameter);
    g_free(run->ignored);
    g_free(run->gradients);
    g_free(run->incoming);
    g_free(run->is_summed);
    g_free(run->states);
    g_free(run->four_bit.of_parameter);
    plan_vector_clear(&run->storages);
    plan_vector_clear(&run->float8.delays);
    plan_vector_clear(&run->program.late);
    plan_vector_clear(&run->program.held);
    plan_vector_clear(&run->loop.held);
    plan_vector_clear(&run->loop.buffers[0]);
    plan_vector_clear(&run->loop.buffers[1]);
    plan_vector_clear(&run->aliases);
    plan_vector_clear(&run->frames.buffers);
    plan_vector_clear(&run->frames.begins);
}
