/* models/layers/embedding.c - tables of tokens and of positions. */
#include "models/layers/layers.h"

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

static uint32_t make_positions(const ModelWalk *w) {
    uint32_t positions = plan_graph_op(w->graph, PLAN_OP_ARANGE, NULL, PLAN_INT64, w->seq,
                                       (int64_t[]){(int64_t)w->seq}, NULL);
    plan_graph_hold(w->graph, positions);
    return positions;
}

uint32_t model_run_embeddings(const ModelWalk *w, const ModelEmbeddings *tables, uint32_t tokens,
                              uint32_t *ret_positions) {
    uint32_t positions = tables->tokens_first ? PLAN_NONE : make_positions(w);
    uint32_t token_part = model_run_embedding(w, tables->tokens, tokens, w->rows, tables->vocab);
    if (positions == PLAN_NONE) {
        positions = make_positions(w);
    }
    uint32_t position_part =
        model_run_embedding(w, tables->positions, positions, w->seq, tables->most);
    if (tables->tokens_first) {
        plan_graph_let_go_after(w->graph, token_part, position_part); /* it has a name */
    }
    *ret_positions = positions;
    return model_run_add(w, token_part, position_part, w->seq * w->width);
}
