/* models/eager-alone.c - what of a network was recorded with eager kernels alone. */
#include "models/known-private.h"

const char *model_never_compiled(const ModelNetwork *network) {
    bool is_scaled = network->embed_scale || network->attention_scale || network->residual_scale ||
                     network->logits_scale;
    return is_scaled                ? "embed_scale, attention_scale, residual_scale or logits_scale"
           : network->no_rope_every ? "no_rope_every"
           : network->gate_up_joined             ? "gate_up = joined"
           : network->rope == MODEL_ROPE_PAIRS   ? "rope = pairs"
           : network->norms_from_one             ? "norm_weight = from-one"
           : network->norms_bare                 ? "norm_weight = none"
           : network->gate != MODEL_GATE_SILU    ? "gate = gelu or none"
           : network->norm_at == MODEL_NORM_BOTH ? "norm_at = both"
           : network->global_every               ? "global_every"
                                                 : NULL;
}

const char *model_eager_alone(const ModelNetwork *network) {
    const char *never = model_never_compiled(network);
    return never                    ? never
           : network->kv_lora_rank  ? "latent attention (kv_lora_rank)"
           : network->dense_layers  ? "dense_layers"
           : network->scores_apart  ? "score = sigmoid"
           : network->route_bias    ? "route_bias"
           : network->route_scale   ? "route_scale"
           : network->expert_groups ? "expert_groups"
                                    : NULL;
}
