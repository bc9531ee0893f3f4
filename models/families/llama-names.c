/* models/families/llama-names.c - which of transformers' networks it is, and what its modules are
 * called. */
#include "models/families/llama.h"

bool model_llama_is_olmo(const ModelNetwork *network) {
    return network->qk_norm == MODEL_QK_NORM_WIDTH && network->norm_at == MODEL_NORM_AFTER;
}

static bool is_olmoe(const ModelNetwork *network) {
    return network->experts && network->qk_norm == MODEL_QK_NORM_WIDTH;
}

/* Neighbours in a head are turned: GLM's, Cohere's, ERNIE 4.5's, Helium's. */
static bool is_paired(const ModelNetwork *network) {
    return network->rope == MODEL_ROPE_PAIRS;
}

bool model_llama_is_ernie(const ModelNetwork *network) {
    return is_paired(network) && !network->gate_up_joined && !network->norms_centred &&
           !network->norms_widened;
}

static const char *prefix_of_pairs(const ModelNetwork *network) {
    return model_llama_is_ernie(network)         ? "Ernie4_5"
           : network->norms_widened              ? "Helium"
           : network->norms_centred              ? (network->window ? "Cohere2" : "Cohere")
           : network->norm_at == MODEL_NORM_BOTH ? "Glm4"
                                                 : "Glm";
}

/* What transformers' class names begin with. Mistral's modules do what Llama's do, and without a
 * window nothing tells them apart. */
const char *model_llama_prefix(const ModelNetwork *network) {
    bool normed = network->qk_norm == MODEL_QK_NORM_HEAD;
    return network->code != MODEL_CODE_TRANSFORMERS ? NULL
           : network->sinks                         ? "GptOss"
           : network->attention_cap                 ? "Gemma2"
           : is_paired(network)                     ? prefix_of_pairs(network)
           : network->norms_bare                    ? "Olmo"
           : network->norms_from_one                ? (normed ? "Gemma3" : "Gemma")
           : model_llama_is_olmo(network)           ? (network->global_every ? "Olmo3" : "Olmo2")
           : network->norm_at == MODEL_NORM_AFTER   ? "Exaone4"
           : is_olmoe(network)                      ? "Olmoe"
           : network->experts                       ? (normed ? "Qwen3Moe" : "Mixtral")
           : network->gate == MODEL_GATE_NONE       ? "Arcee"
           : network->no_rope_every                 ? "SmolLM3"
           : network->gate_up_joined                ? "Phi3"
           : network->residual_scale                ? "Granite"
           : network->qkv_bias                      ? "Qwen2"
           : normed                                 ? "Qwen3"
           : network->window ? (network->global_every ? "Ministral" : "Mistral")
                             : "Llama";
}

/* Of what transformers hands to a block: Mistral's, Granite's, Phi-3's, EXAONE 4's, the first
 * Gemma's and those with experts name positions before the rotary tables, Llama's, other Gemmas',
 * gpt-oss' and those that turn pairs behind them. A Mistral without a window is planned as
 * Llama. */
bool model_llama_names_positions_first(const ModelNetwork *network) {
    return network->sinks || is_paired(network) ? false
           : network->norms_from_one            ? network->norm_at == MODEL_NORM_BEFORE
           : model_llama_is_olmo(network) || is_olmoe(network)
               ? network->global_every > 0
               : network->window || network->experts || network->residual_scale ||
                     network->gate_up_joined || network->norm_at == MODEL_NORM_AFTER;
}

char *model_llama_class(const ModelLlama *llama, const char *transformers_name,
                        const char *own_name) {
    return llama->transformers ? g_strconcat(llama->transformers, transformers_name, NULL)
                               : g_strdup(own_name);
}

uint32_t model_llama_declare_module(const ModelLlama *llama, uint32_t parent, const char *name,
                                    const char *transformers_class, const char *own_class) {
    g_autofree char *class_name = model_llama_class(llama, transformers_class, own_class);
    return plan_graph_module(llama->walk.graph, parent, name, class_name, false);
}
