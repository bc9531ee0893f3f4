/* models/config/families.h - one function for each kind of model_type. It appends those
 * lines of the network that are not copied from plain numbers of the config.json, or returns false
 * with an error that names the field. Inside models/config/ only.
 */
#pragma once

#include "models/config/fields.h"

/* llama.c: Llama and its kin. */
bool model_config_rest_of_llama(const ModelConfig *c);
bool model_config_rest_of_granite(const ModelConfig *c);
bool model_config_rest_of_smollm3(const ModelConfig *c);
bool model_config_rest_of_phi3(const ModelConfig *c);
bool model_config_rest_of_gemma(const ModelConfig *c);
bool model_config_rest_of_ministral(const ModelConfig *c);
bool model_config_rest_of_gemma2(const ModelConfig *c);
bool model_config_rest_of_gemma3_text(const ModelConfig *c);
bool model_config_rest_of_olmo(const ModelConfig *c);
bool model_config_rest_of_olmo3(const ModelConfig *c);
bool model_config_rest_of_cohere(const ModelConfig *c);
bool model_config_rest_of_ernie(const ModelConfig *c);
bool model_config_rest_of_helium(const ModelConfig *c);
bool model_config_rest_of_glm(const ModelConfig *c);
bool model_config_rest_of_arcee(const ModelConfig *c);
bool model_config_rest_of_exaone4(const ModelConfig *c);

/* experts.c: those of its kin whose blocks have experts. */
bool model_config_rest_of_mixtral(const ModelConfig *c);
bool model_config_rest_of_granitemoe(const ModelConfig *c);
bool model_config_rest_of_gpt_oss(const ModelConfig *c);
bool model_config_rest_of_olmoe(const ModelConfig *c);
bool model_config_rest_of_qwen3_moe(const ModelConfig *c);
bool model_config_rest_of_deepseek_v2(const ModelConfig *c);
bool model_config_rest_of_deepseek_v3(const ModelConfig *c);

/* decoders.c: those with LayerNorm, and T5. */
bool model_config_rest_of_gpt2(const ModelConfig *c);
bool model_config_rest_of_mpt(const ModelConfig *c);
bool model_config_rest_of_neox(const ModelConfig *c);
bool model_config_rest_of_opt(const ModelConfig *c);
bool model_config_rest_of_phi(const ModelConfig *c);
bool model_config_rest_of_starcoder2(const ModelConfig *c);
bool model_config_rest_of_t5(const ModelConfig *c);
