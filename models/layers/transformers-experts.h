/* models/layers/transformers-experts.h - a mixture of experts as Hugging Face's modules have it
 * (transformers 5.23).
 *
 * Read from src/transformers/models/mixtral/modeling_mixtral.py, the like of qwen3_moe, and
 * integrations/moe.py, whose grouped_mm is what a model gets unless told otherwise; recorded by
 * tests/oracle/recorder/transformers_network.py. Dropless, as experts.h. Inside models/ only.
 */
#pragma once

#include "models/layers/experts.h"

/* name: of the module; experts->transformers is "Mixtral" or "Qwen3Moe". */
ModelExpertLayer model_transformers_experts_declare(const ModelWalk *w, const ModelExperts *experts,
                                                    uint32_t parent, const char *name);
uint32_t model_transformers_experts_run(const ModelWalk *w, const ModelExperts *experts,
                                        const ModelExpertLayer *layer, uint32_t x);
