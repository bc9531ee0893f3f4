#include "plan/autograd/evaluation.h"

#include <string.h>

static void change_places(PlanRun *run) {
    PlanRunEvaluation *other = &run->evaluation;
    const PlanGraph *graph = run->graph;
    uint32_t *storage_of_value = run->tape.storage_of_value;
    run->graph = other->graph;
    run->tape.storage_of_value = other->storage_of_value;
    other->graph = graph;
    other->storage_of_value = storage_of_value;
}

/* What training has made once. Its graph is the other one. */
static void take_what_is_there(PlanRun *run) {
    const PlanGraph *own = run->graph, *training = run->evaluation.graph;
    const uint32_t *there = run->evaluation.storage_of_value;
    uint32_t *here = run->tape.storage_of_value;
    for (unsigned i = 0; i < own->n_ropes; i++) {
        here[own->ropes[i].cosines] = there[training->ropes[i].cosines];
        here[own->ropes[i].sines] = there[training->ropes[i].sines];
    }
    for (guint i = 0; i < own->buffers->len; i++) {
        uint32_t value = g_array_index(training->buffers, uint32_t, i);
        here[g_array_index(own->buffers, uint32_t, i)] = there[value];
    }
}

void plan_evaluation_begin(PlanRun *run) {
    const PlanGraph *own = run->evaluation.graph;
    g_assert(own->modules.len == run->graph->modules.len &&
             own->parameters.len == run->graph->parameters.len &&
             own->buffers->len == run->graph->buffers->len && own->n_ropes == run->graph->n_ropes);
    bool is_first = !run->evaluation.storage_of_value;
    if (is_first) {
        run->evaluation.storage_of_value = g_new(uint32_t, own->values.len);
        memset(run->evaluation.storage_of_value, 0xff, own->values.len * sizeof(uint32_t));
    }
    change_places(run);
    if (is_first) {
        take_what_is_there(run);
    }
}

void plan_evaluation_end(PlanRun *run) {
    change_places(run);
}
