/* models/layers/shared.c - what tensor parallelism makes of layers. */
#include "models/layers/shared.h"

ModelWalk model_walk_between(const ModelWalk *w) {
    ModelWalk between = *w;
    between.rows /= w->graph->shared.whole_tokens ? 1 : w->graph->shared.tensor;
    return between;
}

PlanGraphTokens model_tokens_of(const ModelWalk *w, uint64_t batch) {
    return (PlanGraphTokens){batch, model_walk_between(w).rows / w->batch, w->width};
}

PlanGraphTokens model_tokens_between(const ModelWalk *w) {
    return model_tokens_of(w, w->batch);
}

void model_split(const ModelWalk *w, const ModelLayer *layer, PlanSplit split) {
    if (w->graph->shared.tensor == 1) {
        return;
    }
    plan_graph_split_parameter(w->graph, layer->weight, split);
    if (layer->bias != PLAN_NONE && split == PLAN_SPLIT_COLUMNS) {
        plan_graph_add_in_parts(w->graph, layer->bias);
    } else if (layer->bias != PLAN_NONE) {
        plan_graph_split_parameter(w->graph, layer->bias, split);
    }
}

void model_split_table(const ModelWalk *w, const ModelLayer *table) {
    if (w->graph->shared.whole_ends) {
        plan_graph_sees_all(w->graph, table->weight);
    } else if (w->graph->shared.tensor > 1) {
        plan_graph_split_parameter(w->graph, table->weight, PLAN_SPLIT_ROWS);
    }
}

uint32_t model_gather_tokens(const ModelWalk *w, uint32_t x) {
    PlanGraphTokens tokens = model_tokens_between(w);
    if (!plan_graph_cuts_tokens(w->graph)) {
        return x;
    }
    uint32_t gathered = plan_graph_shared_gather(w->graph, x, &tokens);
    plan_graph_hold_argument(w->graph, gathered);
    plan_graph_let_go_after(w->graph, x, gathered);
    return gathered;
}

uint32_t model_read_by_columns(const ModelWalk *w, uint32_t x) {
    PlanGraphTokens tokens = model_tokens_between(w);
    return w->graph->shared.whole_tokens ? plan_graph_shared_read(w->graph, x, &tokens) : x;
}

uint32_t model_gather_again(const ModelWalk *w, uint32_t own, uint32_t gathered) {
    if (w->graph->shared.whole_tokens) {
        return model_read_by_columns(w, gathered);
    }
    PlanGraphTokens tokens = model_tokens_between(w);
    return w->graph->shared.whole_ends ? plan_graph_shared_again(w->graph, own, gathered, &tokens)
                                       : gathered;
}

uint32_t model_join_ranks(const ModelWalk *w, uint32_t x, uint64_t batch) {
    PlanGraphTokens tokens = model_tokens_of(w, batch);
    return (w->graph->shared.whole_tokens ? plan_graph_shared_sum
                                          : plan_graph_shared_scatter)(w->graph, x, &tokens);
}

uint32_t model_run_by_rows(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t in) {
    uint32_t y = model_run_linear(w, layer, x, w->width, in);
    if (w->graph->shared.tensor == 1) {
        return y;
    }
    uint32_t own = model_join_ranks(w, y, w->batch);
    plan_graph_keep(w->graph, x);
    plan_graph_let_go_after(w->graph, x, y);
    return own;
}

uint32_t model_run_shared_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                               uint32_t targets) {
    PlanGraph *graph = w->graph;
    if (graph->shared.tensor == 1 || graph->shared.whole_head) {
        return model_run_head(w, head, stream, targets);
    }
    ModelWalk between = model_walk_between(w);
    ModelLayer product = *head->product;
    product.module = PLAN_NONE;
    plan_graph_hold(graph, stream.a);
    uint32_t sum, normed = model_run_last_norm(&between, head->norm, stream, head->eps, &sum);
    plan_graph_enter(graph, head->product->module, &normed, 1);
    uint32_t read = model_read_by_columns(w, model_gather_tokens(w, normed));
    uint32_t logits = model_run_linear(w, &product, read, head->vocab, w->width);
    plan_graph_leave(graph, &logits, 1);
    if (graph->shared.whole_ends) { /* by a hook of the head's, whose caller holds what it read */
        uint32_t own = logits;
        plan_graph_hook_computes(graph);
        logits = plan_graph_shared_whole(graph, own, w->rows, head->vocab);
        plan_graph_close(graph, head->product->module, logits);
        plan_graph_keep(graph, normed);
        plan_graph_let_go_after(graph, normed, own);
    }
    plan_graph_let_go_after(graph, stream.a, logits);
    return logits;
}
