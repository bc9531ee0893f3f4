/* models/layers/walk.c - a walk, what of it is compiled, and the way from block to block. */
#include "models/layers/layers.h"

ModelWalk model_walk(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    if (graph->results_held == PLAN_RESULTS_DROPPED) {
        graph->results_held = network->logits_held;
    }
    return (ModelWalk){.graph = graph,
                       .batch = batch,
                       .seq = seq,
                       .rows = batch * seq,
                       .width = network->width,
                       .dropout = network->dropout,
                       .loss = network->loss,
                       .loss_at = network->loss_at,
                       .logits_held = graph->results_held,
                       .logits_shifted = network->logits_shifted,
                       .loss_in_place = network->loss_in_place,
                       .no_bias = network->no_bias,
                       .norms_from_one = network->norms_from_one,
                       .norms_bare = network->norms_bare,
                       .norms_centred = network->norms_centred,
                       .norms_widened = network->norms_widened};
}

ModelWalk model_walk_along(const ModelWalk *w, uint64_t seq) {
    ModelWalk along = *w;
    along.seq = seq;
    along.rows = w->batch * seq;
    return along;
}

void model_begin_block(const ModelWalk *w) {
    w->graph->now.fused |= plan_graph_is_compiled(w->graph) && !w->graph->now.in_parts;
}

void model_end_block(const ModelWalk *w) {
    w->graph->now.fused &= !plan_graph_is_compiled(w->graph);
}

void model_begin_part(const ModelWalk *w) {
    w->graph->now.fused |= w->graph->now.in_parts;
}

void model_end_part(const ModelWalk *w) {
    w->graph->now.fused &= !w->graph->now.in_parts;
}

void model_enter_block(const ModelWalk *w, uint32_t module, ModelStream stream,
                       const uint32_t *others, unsigned n_others) {
    uint32_t arguments[2 + MODEL_MOST_OTHERS] = {stream.a, stream.r};
    bool is_joined = stream.r != PLAN_NONE;
    unsigned n = is_joined ? 2 : 1;
    g_assert(n_others <= MODEL_MOST_OTHERS);
    for (unsigned i = 0; i < n_others; i++) {
        arguments[n + i] = others[i];
    }
    (is_joined ? plan_graph_enter_with : plan_graph_enter)(w->graph, module, arguments,
                                                           n + n_others);
}

ModelStream model_leave_block(const ModelWalk *w, uint32_t x, uint32_t term) {
    ModelStream stream = {x, term};
    if (w->graph->kernels.style != PLAN_KERNELS_FUSED || w->graph->kernels.blocks_apart) {
        stream = (ModelStream){model_run_residual(w, x, term), PLAN_NONE};
    }
    uint32_t results[] = {stream.a, stream.r};
    plan_graph_leave(w->graph, results, stream.r == PLAN_NONE ? 1 : 2);
    return stream;
}
