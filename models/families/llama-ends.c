/* models/families/llama-ends.c - what is declared and walked whosever the modules are: the table
 * and the blocks, the head behind them, the mask. */
#include "models/families/llama.h"
#include "models/layers/window.h"

ModelLayer model_llama_declare_head(const ModelLlama *llama, const ModelNetwork *network,
                                    uint32_t root, const ModelLayer *embed) {
    const ModelWalk *w = &llama->walk;
    ModelLayer head =
        model_head(w, root, llama->names->head, llama->vocab, false, network->tied ? embed : NULL);
    if (!network->tied && !w->graph->shared.whole_head) {
        model_split(w, &head, PLAN_SPLIT_ROWS);
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

uint32_t model_llama_scale_logits(const ModelLlama *llama, uint32_t logits) {
    const ModelWalk *w = &llama->walk;
    if (!llama->logits_scale) {
        return logits;
    }
    return model_run_number(w, PLAN_OP_TIMES_NUMBER, logits, w->rows * llama->vocab,
                            llama->logits_scale);
}
