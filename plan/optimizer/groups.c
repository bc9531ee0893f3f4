#include "plan/optimizer/groups.h"

#include "plan/optimizer/shared.h"

static bool is_muons(const PlanRun *run) {
    return run->strategy->optimizer == PLAN_OPTIMIZER_MUON;
}

/* Lists of kernels take DTensors or others, so those that FSDP2 leaves alone are a group. */
static bool has_tensors_beside_shards(const PlanRun *run) {
    return run->ignored && run->strategy->flavour == PLAN_FLAVOUR_FSDP2;
}

unsigned plan_n_groups(const PlanRun *run) {
    return is_muons(run) || has_tensors_beside_shards(run) ||
                   (plan_settles(run) && run->graph->shared.whole_tokens)
               ? 2
               : 1;
}

unsigned plan_group_of(const PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    bool is_shared = p->split != PLAN_SPLIT_NONE || p->is_added_in_parts;
    return has_tensors_beside_shards(run) ? !p->ignored
           : is_muons(run)                ? !plan_muon_takes(run, parameter)
                                          : plan_n_groups(run) > 1 && is_shared;
}

bool plan_muon_takes(const PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    const PlanGraphModule *module = plan_graph_module_at(run->graph, p->module);
    return run->strategy->optimizer == PLAN_OPTIMIZER_MUON && p->n_dims == 2 &&
           plan_graph_is_in_block(run->graph, p->module) &&
           !g_str_equal(module->class_name, "Embedding");
}
