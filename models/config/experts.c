/* models/config/experts.c - Llama's kin whose blocks have experts. */
#include "models/config/families.h"
#include "models/config/llama.h"

/* What adds a loss that balances the experts is no part of a plan. */
static bool has_plain_router(const ModelConfig *c) {
    if (model_config_flag(c, "output_router_logits", false)) {
        return model_config_refuse(
            c, "output_router_logits adds a loss of the router's, which is not known; set "
               "it to false");
    }
    double noise;
    if (!model_config_number(c, "router_jitter_noise", 0, &noise)) {
        return false;
    }
    return noise <= 0 || model_config_not_known(c, "router_jitter_noise above 0 is not known");
}

/* Whether a token's scores are divided by their sum. */
static void append_route_norm(const ModelConfig *c, bool otherwise) {
    bool divides = model_config_flag(c, "norm_topk_prob", otherwise);
    model_config_append(c, "route_norm", divides ? "yes" : "no", "norm_topk_prob");
}

bool model_config_rest_of_mixtral(const ModelConfig *c) {
    return has_plain_router(c) && model_config_rest_of_llama(c);
}

/* Granite's scores are a softmax of the chosen ones, which is what of all is divided by its sum. */
bool model_config_rest_of_granitemoe(const ModelConfig *c) {
    return has_plain_router(c) && model_config_rest_of_granite(c);
}

bool model_config_rest_of_olmoe(const ModelConfig *c) {
    if (model_config_field(c, "clip_qkv")) {
        return model_config_not_known(c, "clip_qkv is not known");
    }
    if (!model_config_heads_fill_width(
            c, 0, "OLMoE cannot run: its norm of the queries is as wide as a token")) {
        return false;
    }
    append_route_norm(c, false);
    return has_plain_router(c) && model_config_rest_of_llama(c);
}

/* What its code has as numbers of its own: older files do not say them. */
static bool has_usual_gate(const ModelConfig *c) {
    static const struct {
        const char *name;
        double usual;
    } numbers[] = {{"swiglu_alpha", 1.702}, {"swiglu_limit", 7}};
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        double value;
        if (!model_config_number(c, numbers[i].name, numbers[i].usual, &value)) {
            return false;
        }
        if (value < numbers[i].usual || value > numbers[i].usual) {
            return model_config_not_known(c, "%s other than %g is not known", numbers[i].name,
                                          numbers[i].usual);
        }
    }
    return true;
}

/* Sinks, and all that goes with them: scores in memory, for PyTorch's kernel knows no sinks, a
 * window in every other block from the first on, biases of all layers, and clamped experts. */
bool model_config_rest_of_gpt_oss(const ModelConfig *c) {
    const gint64 every = 2;
    const char *act = model_config_text(c, "hidden_act", "silu");
    if (!model_config_flag(c, "attention_bias", true) || !g_str_equal(act, "silu") ||
        !model_config_field(c, "sliding_window")) {
        return model_config_not_known(
            c, "a gpt-oss without sliding_window, with a hidden_act other than silu or with "
               "attention_bias = false is not known");
    }
    model_config_append_whole(c, "global_every", every, "layer_types");
    g_string_append(c->ini, "sinks = yes\nattention = math\nqkv_bias = yes\n");
    ModelConfig nested;
    bool is_nested =
        model_config_within(c, "rope_parameters", &nested) && !model_config_field(c, "rope_theta");
    return has_usual_gate(c) && model_config_layer_types_are_every(c, every) &&
           has_plain_router(c) && model_config_append_number(c, "norm_eps=rms_norm_eps:1e-05") &&
           model_config_seq(c) &&
           model_config_append_number(is_nested ? &nested : c, "rope_base=rope_theta:150000") &&
           model_config_rope_scaling(c, is_nested ? "rope_parameters" : "rope_scaling");
}

/* Blocks without experts among those that have them are not known. */
bool model_config_rest_of_qwen3_moe(const ModelConfig *c) {
    JsonNode *dense = model_config_field(c, "mlp_only_layers");
    bool has_dense = dense && (!JSON_NODE_HOLDS_ARRAY(dense) ||
                               json_array_get_length(json_node_get_array(dense)) > 0);
    if (has_dense || !model_config_is(c, "decoder_sparse_step", 1)) {
        return model_config_not_known(
            c, "blocks without experts are not known beside those with them: "
               "decoder_sparse_step must be 1 and mlp_only_layers empty");
    }
    append_route_norm(c, false);
    /* transformers 5 may write it under the name that Mixtral has. */
    const char *experts =
        model_config_field(c, "num_experts") ? "experts=num_experts" : "experts=num_local_experts";
    return model_config_append_number(c, experts) && has_plain_router(c) &&
           model_config_rest_of_llama(c);
}

/* Of the first blocks, and of experts that all tokens go to: as many as there are, side by side. */
static bool append_deepseek_layers(const ModelConfig *c, gint64 dense) {
    gint64 ffn, shared, width = 0;
    if (!model_config_is(c, "moe_layer_freq", 1)) {
        return model_config_not_known(c, "moe_layer_freq other than 1 is not known");
    }
    if (!model_config_count_or_none(c, "first_k_dense_replace", dense, &dense) ||
        !model_config_count_or_none(c, "n_shared_experts", 0, &shared) ||
        !model_config_count(c, "moe_intermediate_size", 1, &ffn)) {
        return false;
    }
    if (__builtin_mul_overflow(shared, ffn, &width)) {
        return model_config_refuse(c, "n_shared_experts times moe_intermediate_size is too large");
    }
    if (shared > 0) {
        model_config_append_whole(c, "shared_ffn", width, "n_shared_experts");
    }
    if (dense > 0) {
        model_config_append_whole(c, "dense_layers", dense, "first_k_dense_replace");
        return model_config_append_number(c, "ffn=intermediate_size");
    }
    return true;
}

/* One group is all experts. */
static bool append_deepseek_groups(const ModelConfig *c, gint64 groups) {
    gint64 kept;
    if (!model_config_count(c, "n_group", groups, &groups) ||
        !model_config_count(c, "topk_group", groups, &kept)) {
        return false;
    }
    if (groups > 1) {
        model_config_append_whole(c, "expert_groups", groups, "n_group");
        model_config_append_whole(c, "groups_per_token", kept, "topk_group");
    }
    return true;
}

/* What both have; each token's keys are of as many heads as its queries. */
static bool append_deepseek(const ModelConfig *c, const char *score, bool divides) {
    gint64 heads, kv_heads;
    double scale;
    if (!model_config_count(c, "num_attention_heads", 1, &heads) ||
        !model_config_count(c, "num_key_value_heads", heads, &kv_heads) ||
        !model_config_number(c, "routed_scaling_factor", 1, &scale)) {
        return false;
    }
    if (kv_heads != heads) {
        return model_config_refuse(c, "num_key_value_heads must be num_attention_heads");
    }
    const char *told = model_config_text(c, "scoring_func", score);
    if (!g_str_equal(told, score)) {
        return model_config_not_known(c, "scoring_func '%s' is not known of this model_type; %s is",
                                      told, score);
    }
    append_route_norm(c, divides);
    if (scale != 1) {
        model_config_append_double(c, "route_scale", scale, "routed_scaling_factor");
    }
    g_string_append_printf(c->ini, "rope = complex\nscore = %s\n", score);
    return has_plain_router(c) && model_config_rest_of_llama(c);
}

/* A softmax's scores; of groups the best ones, where the method says so. */
bool model_config_rest_of_deepseek_v2(const ModelConfig *c) {
    const char *method = model_config_text(c, "topk_method", "greedy");
    bool grouped = g_str_equal(method, "group_limited_greedy");
    if (!grouped && !g_str_equal(method, "greedy")) {
        return model_config_not_known(
            c, "topk_method '%s' is not known; greedy and group_limited_greedy are", method);
    }
    return append_deepseek_layers(c, 0) && (!grouped || append_deepseek_groups(c, 1)) &&
           append_deepseek(c, "softmax", false);
}

/* Each score by itself, and a bias that balances the experts. */
bool model_config_rest_of_deepseek_v3(const ModelConfig *c) {
    const char *method = model_config_text(c, "topk_method", "noaux_tc");
    if (!g_str_equal(method, "noaux_tc")) {
        return model_config_not_known(c, "topk_method '%s' is not known; noaux_tc is", method);
    }
    g_string_append(c->ini, "route_bias = yes\n");
    return append_deepseek_layers(c, 3) && append_deepseek_groups(c, 8) &&
           append_deepseek(c, "sigmoid", true);
}
