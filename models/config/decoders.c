#include "models/config/families.h"

bool model_config_rest_of_gpt2(const ModelConfig *c) {
    if (model_config_flag(c, "add_cross_attention", false)) {
        return model_config_not_known(c, "a GPT-2 with add_cross_attention is not known");
    }
    if (model_config_flag(c, "reorder_and_upcast_attn", false)) {
        return model_config_not_known(c, "a GPT-2 with reorder_and_upcast_attn is not known");
    }
    return model_config_gelu(c, "activation_function", "gelu_new");
}

/* A field that transformers 5 has moved into rope_parameters, under a name of its own. */
static bool append_rope_number(const ModelConfig *c, const char *key, const char *nested,
                               const char *word) {
    ModelConfig rope;
    bool is_nested = model_config_within(c, "rope_parameters", &rope) &&
                     json_object_has_member(rope.fields, nested);
    g_autofree char *moved = g_strdup_printf("%s=%s", key, nested);
    g_autofree char *own = g_strdup_printf("%s=%s", key, word);
    return is_nested ? model_config_append_number(&rope, moved)
                     : model_config_append_number(c, own);
}

/* Without it the layers of transformers' class have no biases, but its norms do; a network's
 * bias = no is of both. */
static bool has_bias(const ModelConfig *c, const char *name) {
    return model_config_flag(c, name, true) ||
           model_config_not_known(c, "%s = false is not known: biases of norms alone", name);
}

bool model_config_rest_of_neox(const ModelConfig *c) {
    bool parallel = model_config_flag(c, "use_parallel_residual", true);
    model_config_append(c, "block", parallel ? "parallel" : "sequential", "use_parallel_residual");
    if (!model_config_flag(c, "attention_bias", true)) {
        return model_config_not_known(c, "a GPT-NeoX without attention_bias is not known");
    }
    return model_config_gelu(c, "hidden_act", "gelu") &&
           append_rope_number(c, "rotary_share", "partial_rotary_factor", "rotary_pct:0.25") &&
           append_rope_number(c, "rope_base", "rope_theta", "rotary_emb_base:10000") &&
           model_config_rope_scaling(c, model_config_field(c, "rope_parameters") ? "rope_parameters"
                                                                                 : "rope_scaling");
}

bool model_config_rest_of_phi(const ModelConfig *c) {
    if (model_config_flag(c, "qk_layernorm", false)) {
        return model_config_not_known(c, "a Phi with qk_layernorm is not known");
    }
    if (model_config_flag(c, "tie_word_embeddings", false)) {
        return model_config_not_known(c, "a Phi with tie_word_embeddings is not known");
    }
    return model_config_gelu(c, "hidden_act", "gelu_new") &&
           append_rope_number(c, "rotary_share", "partial_rotary_factor",
                              "partial_rotary_factor:0.5") &&
           model_config_rope(c);
}

bool model_config_rest_of_starcoder2(const ModelConfig *c) {
    return has_bias(c, "use_bias") && model_config_gelu(c, "hidden_act", "gelu_pytorch_tanh") &&
           model_config_rope(c) && model_config_seq(c);
}

/* OPT-350M alone has its norms behind, and embeddings narrower than its blocks. */
bool model_config_rest_of_opt(const ModelConfig *c) {
    if (!model_config_flag(c, "do_layer_norm_before", true)) {
        return model_config_not_known(c, "an OPT without do_layer_norm_before is not known");
    }
    if (!model_config_is(c, "word_embed_proj_dim",
                         json_object_get_int_member(c->fields, "hidden_size"))) {
        return model_config_not_known(
            c, "word_embed_proj_dim differs from hidden_size, which is not known");
    }
    if (!model_config_flag(c, "layer_norm_elementwise_affine", true) ||
        model_config_flag(c, "_remove_final_layer_norm", false)) {
        return model_config_not_known(
            c, "an OPT whose norms have no weights, or without its last one, is not known");
    }
    const char *act = model_config_text(c, "activation_function", "relu");
    if (!g_str_equal(act, "relu")) {
        return model_config_not_known(c, "activation_function '%s' is not known; relu is", act);
    }
    return has_bias(c, "enable_bias");
}

bool model_config_rest_of_t5(const ModelConfig *c) {
    bool is_mt5 = g_str_equal(model_config_text(c, "model_type", ""), "mt5");
    const char *act = model_config_text(c, "feed_forward_proj", is_mt5 ? "gated-gelu" : "relu");
    if (!model_config_is(c, "num_decoder_layers",
                         json_object_get_int_member(c->fields, "num_layers"))) {
        return model_config_not_known(c, "num_decoder_layers differs from num_layers, which is not "
                                         "known");
    }
    if (!model_config_is(c, "relative_attention_num_buckets", 32)) {
        return model_config_refuse(c, "relative_attention_num_buckets is not 32, as T5 has it");
    }
    g_string_append_printf(c->ini, "gated = %s\n", g_str_equal(act, "gated-gelu") ? "yes" : "no");
    return g_str_equal(act, "relu") || g_str_equal(act, "gated-gelu") ||
           model_config_not_known(c, "feed_forward_proj '%s' is not known; relu and gated-gelu are",
                                  act);
}

/* What its attention may ask for beside ALiBi; *ret_alibi as llm-foundry's own MPTs have it. */
static bool attention_of_mpt(const ModelConfig *c, bool *ret_alibi) {
    ModelConfig attention;
    if (!model_config_within(c, "attn_config", &attention)) {
        return true;
    }
    static const char *const unknown[] = {"qk_ln", "qk_gn", "prefix_lm", "rope"};
    for (unsigned i = 0; i < G_N_ELEMENTS(unknown); i++) {
        if (model_config_flag(&attention, unknown[i], false)) {
            return model_config_not_known(c, "attn_config.%s of an MPT is not known", unknown[i]);
        }
    }
    if (model_config_field(&attention, "clip_qkv")) {
        return model_config_not_known(c, "attn_config.clip_qkv of an MPT is not known");
    }
    if (!model_config_is(&attention, "alibi_bias_max", 8)) {
        return model_config_refuse(c, "attn_config.alibi_bias_max is not 8, as MPTs have it");
    }
    const char *type = model_config_text(&attention, "attn_type", "multihead_attention");
    *ret_alibi = model_config_flag(&attention, "alibi", true);
    return g_str_equal(type, "multihead_attention") ||
           model_config_not_known(c, "attn_type '%s' is not known; multihead_attention is", type);
}

/* Its hidden layer is so many times as wide; without the field four times, as it is anyhow. */
static bool append_mpt_ffn(const ModelConfig *c) {
    JsonNode *node = model_config_field(c, "expansion_ratio");
    if (!node) {
        return true;
    }
    gint64 ratio = model_config_is_whole(node) ? json_node_get_int(node) : 0;
    gint64 width = json_object_get_int_member(c->fields, "d_model");
    if (ratio < 1 || ratio > 64) {
        return model_config_refuse(c, "expansion_ratio must be a whole number from 1 to 64");
    }
    if (width > 0 && width <= G_MAXINT32) { /* else the width itself is refused */
        model_config_append_whole(c, "ffn", ratio * width, "expansion_ratio");
    }
    return true;
}

/* A network with ALiBi learns no positions, whatever learned_pos_emb says. */
bool model_config_rest_of_mpt(const ModelConfig *c) {
    bool alibi = true;
    if (!attention_of_mpt(c, &alibi)) {
        return false;
    }
    if (!alibi && !model_config_flag(c, "learned_pos_emb", true)) {
        return model_config_refuse(c, "an MPT without positions is not known; set "
                                      "learned_pos_emb or attn_config.alibi to true");
    }
    if (!model_config_flag(c, "tie_word_embeddings", true)) {
        return model_config_not_known(c, "an MPT without tie_word_embeddings is not known");
    }
    const char *norm = model_config_text(c, "norm_type", "low_precision_layernorm");
    if (!g_str_has_suffix(norm, "layernorm")) {
        return model_config_not_known(c, "norm_type '%s' is not known; layernorm is", norm);
    }
    if (!append_mpt_ffn(c)) {
        return false;
    }
    /* Where no_bias does not stand: transformers' MPTs, all with ALiBi, have no biases; those of
     * llm-foundry's trainer have. */
    g_string_append_printf(c->ini, "positions = %s\nbias = %s\n", alibi ? "alibi" : "learned",
                           model_config_flag(c, "no_bias", alibi) ? "no" : "yes");
    return true;
}
