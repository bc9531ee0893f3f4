/* models/families/latent.h - attention whose keys and values come of one short row a token
 * (DeepSeek-V2's multi-head latent attention). Of llama.c and llama-attention.c alone.
 */
#pragma once

#include "models/families/llama.h"

void model_latent_declare(const ModelLlama *llama, ModelLlamaBlock *block);
/* Of the block's first norm: what attention adds to the stream. */
uint32_t model_latent_run(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x);
