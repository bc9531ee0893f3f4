/* tests/models/parameters.h - how many numbers a network's parameters are. */
#pragma once

#include "models/network.h"

static inline uint64_t parameters_of(const ModelNetwork *network) {
    g_autoptr(GError) error = NULL;
    g_autoptr(PlanGraph) graph =
        model_network_emit(network, &(ModelPass){.batch = 1, .seq = 8}, &error);
    g_assert_no_error(error);
    uint64_t total = 0;
    for (uint32_t i = 0; i < graph->parameters.len; i++) {
        total += plan_graph_parameter_at(graph, i)->elements;
    }
    return total;
}
