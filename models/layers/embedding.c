/* models/layers/embedding.c - tables of tokens and of positions. */
#include "models/layers/shared.h"

ModelLayer model_embedding(const ModelWalk *w, uint32_t parent, const char *name, uint64_t rows,
                           uint64_t width) {
    int64_t dims[] = {(int64_t)rows, (int64_t)width};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, "Embedding", false),
                        .bias = PLAN_NONE};
    layer.weight = plan_graph_parameter(w->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL,
                                        MODEL_INIT_STD);
    return layer;
}

uint32_t model_run_embedding(const ModelWalk *w, const ModelLayer *layer, uint32_t index,
                             uint64_t n, uint64_t vocab) {
    plan_graph_enter(w->graph, layer->module, &index, 1);
    uint32_t y = model_embedding_op(w, layer, index, n, vocab);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t run_rows_of_table(const ModelWalk *w, const ModelLayer *table, uint32_t index,
                                  uint64_t batch, uint64_t rows) {
    uint64_t n = batch * w->seq;
    uint32_t mask;
    plan_graph_enter(w->graph, table->module, &index, 1);
    uint32_t found =
        plan_graph_shared_rows(w->graph, table->weight, index, n, w->width, rows, &mask);
    uint32_t results[] = {found, mask};
    plan_graph_leave(w->graph, results, 2);
    plan_graph_hook_computes(w->graph);
    plan_graph_zero_masked(w->graph, mask, found, n, w->width);
    uint32_t x = model_join_ranks(w, found, batch);
    plan_graph_close(w->graph, table->module, x);
    return x;
}

uint32_t model_run_table(const ModelWalk *w, const ModelLayer *table, uint32_t index,
                         uint64_t batch, uint64_t rows) {
    PlanGraph *graph = w->graph;
    if (graph->shared.tensor > 1 && !graph->shared.whole_ends) {
        return run_rows_of_table(w, table, index, batch, rows);
    }
    uint32_t x = model_run_embedding(w, table, index, batch * w->seq, rows);
    if (graph->shared.whole_ends && !graph->shared.whole_tokens) {
        PlanGraphTokens own = model_tokens_of(w, batch);
        plan_graph_hook_computes(graph);
        x = plan_graph_shared_taken(graph, x, &own);
        plan_graph_close(graph, table->module, x);
    }
    return x;
}

static uint32_t make_positions(const ModelWalk *w) {
    uint32_t positions = plan_graph_op(w->graph, PLAN_OP_ARANGE, NULL, PLAN_INT64, w->seq,
                                       (int64_t[]){(int64_t)w->seq}, NULL);
    plan_graph_hold(w->graph, positions);
    return positions;
}

uint32_t model_run_embeddings(const ModelWalk *w, const ModelEmbeddings *tables, uint32_t tokens,
                              uint32_t *ret_positions) {
    uint32_t positions = tables->tokens_first ? PLAN_NONE : make_positions(w);
    uint32_t token_part = model_run_table(w, tables->tokens, tokens, w->batch, tables->vocab);
    if (positions == PLAN_NONE) {
        positions = make_positions(w);
    }
    uint32_t position_part = model_run_table(w, tables->positions, positions, 1, tables->most);
    if (tables->tokens_first) {
        plan_graph_let_go_after(w->graph, token_part, position_part); /* it has a name */
    }
    *ret_positions = positions;
    ModelWalk between = model_walk_between(w);
    uint64_t of_positions = between.rows / w->batch * w->width;
    return model_run_add(&between, token_part, position_part, of_positions);
}
