/* models/families/llama-ends.c - what is declared and walked whosever the modules are: the table
 * and the blocks, the head behind them, the mask. */
#include "models/families/llama.h"
#include "models/layers/window.h"

void model_llama_split_table(const ModelLlama *llama, const ModelLayer *embed) {
    if (llama->walk.graph->shared.whole_ends) {
        plan_graph_sees_all(llama->walk.graph, embed->weight);
    } else {
        model_llama_split(llama, embed, PLAN_SPLIT_ROWS);
    }
}

ModelLayer model_llama_declare_head(const ModelLlama *llama, const ModelNetwork *network,
                                    uint32_t root, const ModelLayer *embed) {
    const ModelWalk *w = &llama->walk;
    ModelLayer head =
        model_head(w, root, llama->names->head, llama->vocab, false, network->tied ? embed : NULL);
    if (!network->tied && !w->graph->shared.whole_head) {
        model_llama_split(llama, &head, PLAN_SPLIT_ROWS);
    }
    return head;
}

ModelLlamaBlock *model_llama_declare_blocks(const ModelLlama *llama, const ModelNetwork *network,
                                            uint32_t parent, uint64_t first, uint64_t n) {
    uint64_t local = network->global_every, no_rope = network->no_rope_every;
    ModelLlamaBlock *blocks = g_new(ModelLlamaBlock, n);
    for (uint64_t i = first; i < first + n; i++) {
        ModelLlamaBlock *block = &blocks[i - first];
        *block = model_llama_declare_block(llama, parent, i);
        block->is_local = !local || (i + !network->global_first) % local != 0;
        block->turns = !no_rope || (i + 1) % no_rope != 0;
    }
    return blocks;
}

uint32_t model_llama_run_embedding(const ModelLlama *llama, const ModelLayer *embed,
                                   uint32_t tokens) {
    const ModelWalk *w = &llama->walk;
    if (w->graph->shared.tensor == 1) {
        return model_run_embedding(w, embed, tokens, w->rows, llama->vocab);
    }
    if (w->graph->shared.whole_ends && w->graph->shared.whole_tokens) {
        return model_run_embedding(w, embed, tokens, w->rows, llama->vocab_of_table);
    }
    if (w->graph->shared.whole_ends) {
        PlanGraphTokens own = model_llama_tokens_between(llama);
        uint32_t x = model_run_embedding(w, embed, tokens, w->rows, llama->vocab_of_table);
        plan_graph_hook_computes(w->graph);
        x = plan_graph_shared_taken(w->graph, x, &own);
        plan_graph_close(w->graph, embed->module, x);
        return x;
    }
    uint32_t mask;
    plan_graph_enter(w->graph, embed->module, &tokens, 1);
    uint32_t rows = plan_graph_shared_rows(w->graph, embed->weight, tokens, w->rows, w->width,
                                           llama->vocab, &mask);
    uint32_t results[] = {rows, mask};
    plan_graph_leave(w->graph, results, 2);
    plan_graph_hook_computes(w->graph);
    plan_graph_zero_masked(w->graph, mask, rows, w->rows, w->width);
    uint32_t x = model_llama_join_ranks(llama, rows);
    plan_graph_close(w->graph, embed->module, x);
    return x;
}

uint32_t model_llama_scale_embeddings(const ModelLlama *llama, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    return llama->embed_scale ? model_run_number(w, PLAN_OP_TIMES_NUMBER, x, w->rows * w->width,
                                                 llama->embed_scale)
                              : x;
}

void model_llama_make_mask(ModelLlama *llama) {
    if (llama->is_masked) {
        llama->mask = model_window_mask(&llama->walk, llama->window);
    }
}

uint32_t model_llama_run_head(const ModelLlama *llama, const ModelLayer *norm,
                              const ModelLayer *head, ModelStream stream, uint32_t targets) {
    const ModelWalk *w = &llama->walk;
    if (w->graph->shared.tensor == 1 || w->graph->shared.whole_head) {
        const ModelHead whole = {norm, head, llama->norm_eps, llama->vocab};
        return model_run_head(w, &whole, stream, targets);
    }
    ModelLayer product = *head;
    product.module = PLAN_NONE;
    plan_graph_hold(w->graph, stream.a);
    bool before = w->graph->now.fused;
    w->graph->now.fused |= w->graph->kernels.compiled_norm;
    uint32_t normed = model_run_rmsnorm(&llama->between, norm, stream.a, llama->norm_eps);
    w->graph->now.fused = before;
    plan_graph_enter(w->graph, head->module, &normed, 1);
    uint32_t read = model_llama_read_by_columns(llama, model_llama_gather_tokens(llama, normed));
    uint32_t logits = model_run_linear(w, &product, read, llama->vocab, w->width);
    plan_graph_leave(w->graph, &logits, 1);
    if (w->graph->shared
            .whole_ends) { /* by a hook of the head's, whose caller holds what it read */
        uint32_t own = logits;
        plan_graph_hook_computes(w->graph);
        logits = plan_graph_shared_whole(w->graph, own, w->rows, llama->vocab);
        plan_graph_close(w->graph, head->module, logits);
        plan_graph_keep(w->graph, normed);
        plan_graph_let_go_after(w->graph, normed, own);
    }
    plan_graph_let_go_after(w->graph, stream.a, logits);
    return logits;
}

uint32_t model_llama_scale_logits(const ModelLlama *llama, uint32_t logits) {
    const ModelWalk *w = &llama->walk;
    if (!llama->logits_scale) {
        return logits;
    }
    return model_run_number(w, PLAN_OP_TIMES_NUMBER, logits, w->rows * llama->vocab,
                            llama->logits_scale);
}
