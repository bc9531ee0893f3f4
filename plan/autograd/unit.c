#include "plan/autograd/unit.h"

typedef struct {
    const uint32_t *around; /* by unit, the one that it is in */
    uint32_t n, *order, n_ordered;
} InnerFirst;

static void put_behind_those_inside(InnerFirst *put, uint32_t unit) {
    for (uint32_t inner = unit + 1; inner < put->n; inner++) {
        if (put->around[inner] == unit) {
            put_behind_those_inside(put, inner);
        }
    }
    put->order[put->n_ordered++] = unit;
}

uint32_t *plan_units_inner_first(const PlanRun *run) {
    g_autofree uint32_t *around = g_new0(uint32_t, run->n_units);
    for (uint32_t u = 1; u < run->n_units; u++) {
        around[u] =
            run->modules.unit_of[plan_graph_module_at(run->graph, run->units[u].module)->parent];
    }
    InnerFirst put = {around, run->n_units, g_new(uint32_t, run->n_units), 0};
    put_behind_those_inside(&put, 0);
    return put.order;
}

uint32_t plan_unit_n_trained(const PlanRun *run, uint32_t unit) {
    const GArray *parameters = run->units[unit].parameters;
    uint32_t n = 0;
    for (uint32_t i = 0; i < parameters->len; i++) {
        n += !plan_run_is_frozen(run, g_array_index(parameters, uint32_t, i));
    }
    return n;
}

bool plan_unit_is_frozen(const PlanRun *run, uint32_t unit) {
    return plan_unit_has_parameters(run, unit) && plan_unit_n_trained(run, unit) == 0;
}

bool plan_unit_is_mixed(const PlanRun *run, uint32_t unit) {
    uint32_t n = plan_unit_n_trained(run, unit);
    return n > 0 && n < run->units[unit].parameters->len;
}

uint32_t plan_checkpointed_around(const PlanRun *run, uint32_t module) {
    while (module != PLAN_NONE && !run->modules.is_checkpointed[module]) {
        module = plan_graph_module_at(run->graph, module)->parent;
    }
    return module;
}

bool plan_checkpoint_is_around(const PlanRun *run, uint32_t module, uint32_t unit) {
    uint32_t opens = run->units[unit].module;
    return module != PLAN_NONE && opens != module && plan_checkpointed_around(run, opens) == module;
}

uint32_t plan_unit_checkpointed_around(const PlanRun *run, uint32_t unit) {
    uint32_t up = plan_graph_module_at(run->graph, run->units[unit].module)->parent;
    return run->units[unit].of_experts ? PLAN_NONE : plan_checkpointed_around(run, up);
}

bool plan_units_split_blocks(const PlanRun *run) {
    uint32_t u = 1;
    while (u < run->n_units && plan_unit_checkpointed_around(run, u) == PLAN_NONE) {
        u++;
    }
    return u < run->n_units;
}
