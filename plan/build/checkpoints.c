#include "plan/build/checkpoints.h"

/* What lies in a block and has parameters: its attention, its hidden layer, its norms; of them
 * those of a name (NULL: all). */
static void choose_parts(const PlanGraph *graph, const GRegex *whole, bool *chosen) {
    for (uint32_t p = 0; p < graph->parameters.len; p++) {
        uint32_t module = plan_graph_parameter_at(graph, p)->module, around;
        while ((around = plan_graph_module_at(graph, module)->parent) != PLAN_NONE) {
            chosen[module] |= plan_graph_module_at(graph, around)->is_block &&
                              (!whole || plan_graph_is_named(graph, module, whole));
            module = around;
        }
    }
}

/* ratio=P as in IBM's fms-fsdp: block number i (from 1) when i * P passes the next half. */
bool *plan_choose_checkpoints(const PlanGraph *graph, const PlanStrategy *strategy) {
    const PlanVariant *by = &strategy->checkpointing;
    bool *chosen = g_new0(bool, graph->modules.len);
    uint64_t n = 0;
    double next = 0.5;
    for (uint32_t m = 0; m < graph->modules.len; m++) {
        if (!plan_graph_module_at(graph, m)->is_block) {
            continue;
        }
        n++;
        bool passes = (double)n * by->number >= next;
        switch ((PlanCheckpointing)by->choice) {
        case PLAN_CHECKPOINTING_NONE:
        case PLAN_CHECKPOINTING_PARTS:
        case PLAN_CHECKPOINTING_MODULE:
            break;
        case PLAN_CHECKPOINTING_FULL:
        case PLAN_CHECKPOINTING_SELECTIVE_OP:
            chosen[m] = true;
            break;
        case PLAN_CHECKPOINTING_EVERY:
            chosen[m] = n % (uint64_t)by->number == 0;
            break;
        case PLAN_CHECKPOINTING_RATIO:
            chosen[m] = passes;
            next += passes;
            break;
        }
    }
    if (plan_strategy_checkpoints_parts(strategy)) {
        bool is_all = by->choice == PLAN_CHECKPOINTING_PARTS;
        g_autoptr(GRegex) whole = is_all ? NULL : plan_strategy_whole_regex(by->text, NULL);
        choose_parts(graph, whole, chosen);
    }
    return chosen;
}
