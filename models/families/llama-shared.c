/* models/families/llama-shared.c - what tensor parallelism makes of a Llama's layers. */
#include "models/families/llama.h"

void model_llama_split(const ModelLlama *llama, const ModelLayer *layer, PlanSplit split) {
    if (llama->walk.graph->shared.tensor > 1) {
        plan_graph_split_parameter(llama->walk.graph, layer->weight, split);
    }
}

PlanGraphTokens model_llama_tokens_between(const ModelLlama *llama) {
    const ModelWalk *w = &llama->between;
    return (PlanGraphTokens){w->batch, w->rows / w->batch, w->width};
}

uint32_t model_llama_gather_tokens(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    if (!plan_graph_cuts_tokens(graph)) {
        return x;
    }
    uint32_t gathered = plan_graph_shared_gather(graph, x, &tokens);
    plan_graph_hold_argument(graph, gathered);
    plan_graph_let_go_after(graph, x, gathered);
    return gathered;
}

uint32_t model_llama_read_by_columns(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return graph->shared.whole_tokens ? plan_graph_shared_read(graph, x, &tokens) : x;
}

uint32_t model_llama_gather_again(const ModelLlama *llama, uint32_t own, uint32_t gathered) {
    if (llama->walk.graph->shared.whole_tokens) {
        return model_llama_read_by_columns(llama, gathered);
    }
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return graph->shared.whole_ends ? plan_graph_shared_again(graph, own, gathered, &tokens)
                                    : gathered;
}

uint32_t model_llama_join_ranks(const ModelLlama *llama, uint32_t x) {
    PlanGraphTokens tokens = model_llama_tokens_between(llama);
    PlanGraph *graph = llama->walk.graph;
    return (graph->shared.whole_tokens ? plan_graph_shared_sum
                                       : plan_graph_shared_scatter)(graph, x, &tokens);
}

uint32_t model_llama_run_by_rows(const ModelLlama *llama, const ModelLayer *layer, uint32_t x,
                                 uint64_t in) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t y = model_run_linear(&llama->walk, layer, x, llama->walk.width, in);
    if (graph->shared.tensor == 1) {
        return y;
    }
    uint32_t own = model_llama_join_ranks(llama, y);
    plan_graph_keep(graph, x);
    plan_graph_let_go_after(graph, x, y);
    return own;
}
