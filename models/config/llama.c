#include "models/config/llama.h"

#include <math.h>
#include <string.h>

#include "models/config/families.h"

/* Biases of q, k and v alone are known: Qwen 2's, which all have, and Seed-OSS's. */
static bool append_biases(const ModelConfig *c, const char *model_type) {
    bool is_seed = g_str_equal(model_type, "seed_oss");
    const char *unknown = is_seed ? "attention_out_bias" : "attention_bias";
    if (model_config_flag(c, unknown, false) || model_config_flag(c, "mlp_bias", false)) {
        return model_config_not_known(
            c, "%s and mlp_bias are not known; biases of q, k and v alone are, qwen2's say",
            unknown);
    }
    bool has_them =
        is_seed ? model_config_flag(c, "attention_bias", true) : g_str_equal(model_type, "qwen2");
    if (has_them) {
        g_string_append(c->ini, "qkv_bias = yes\n");
    }
    return true;
}

static void append_norms(const ModelConfig *c, const char *model_type) {
    if (g_str_has_prefix(model_type, "qwen3")) {
        g_string_append(c->ini, "qk_norm = head\n");
    } else if (g_str_equal(model_type, "exaone4")) {
        g_string_append(c->ini, "qk_norm = head\nnorm_at = after\n");
    } else if (g_str_equal(model_type, "olmoe")) {
        g_string_append(c->ini, "qk_norm = width\n");
    } else if (g_str_equal(model_type, "olmo")) {
        g_string_append(c->ini, "norm_weight = none\n");
    } else if (g_str_has_prefix(model_type, "olmo")) {
        g_string_append(c->ini, "qk_norm = width\nnorm_at = after\n");
    }
}

/* Of a Llama with any activation. */
static bool append_llama(const ModelConfig *c) {
    const char *model_type = model_config_text(c, "model_type", "");
    if (!append_biases(c, model_type)) {
        return false;
    }
    append_norms(c, model_type);
    static const char *const larger[] = {"mixtral", "olmo2",   "olmo3", "olmoe",
                                         "phi3",    "exaone4", "arcee", NULL};
    return model_config_append_number(c, g_strv_contains(larger, model_type)
                                             ? "norm_eps=rms_norm_eps:1e-05"
                                             : "norm_eps=rms_norm_eps:1e-06") &&
           model_config_seq(c);
}

static bool opens_by_silu(const ModelConfig *c) {
    const char *act = model_config_text(c, "hidden_act", "silu");
    return g_str_equal(act, "silu") ||
           model_config_not_known(c, "hidden_act '%s' is not known; silu is", act);
}

static bool append_silu_llama(const ModelConfig *c) {
    return opens_by_silu(c) && append_llama(c);
}

bool model_config_rest_of_llama(const ModelConfig *c) {
    return append_silu_llama(c) && model_config_rope(c);
}

static bool append_scale(const ModelConfig *c, const char *key, const char *name, bool divides) {
    double value;
    if (!model_config_number(c, name, 1, &value)) {
        return false;
    }
    model_config_append_double(c, key, divides ? 1 / value : value, name);
    return true;
}

bool model_config_rest_of_granite(const ModelConfig *c) {
    static const struct {
        const char *key, *name;
        bool divides;
    } scales[] = {{"embed_scale", "embedding_multiplier", false},
                  {"attention_scale", "attention_multiplier", false},
                  {"residual_scale", "residual_multiplier", false},
                  {"logits_scale", "logits_scaling", true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(scales); i++) {
        if (!append_scale(c, scales[i].key, scales[i].name, scales[i].divides)) {
            return false;
        }
    }
    return model_config_rest_of_llama(c);
}

/* Blocks that turn nothing are every so many-th: the list of those that do says no more. */
bool model_config_rest_of_smollm3(const ModelConfig *c) {
    gint64 interval;
    if (!model_config_count(c, "no_rope_layer_interval", 4, &interval)) {
        return false;
    }
    JsonArray *turns = model_config_array(c, "no_rope_layers");
    for (guint i = 0; turns && i < json_array_get_length(turns); i++) {
        JsonNode *one = json_array_get_element(turns, i);
        if (!model_config_is_whole(one) ||
            (json_node_get_int(one) != 0) != ((i + 1) % (guint64)interval != 0)) {
            return model_config_not_known(
                c,
                "no_rope_layers is known as 0 at each no_rope_layer_interval-th block "
                "(%" G_GINT64_FORMAT ") and 1 elsewhere; block %u differs",
                interval, i + 1);
        }
    }
    model_config_append_whole(c, "no_rope_every", interval, "no_rope_layer_interval");
    return model_config_rest_of_llama(c);
}

bool model_config_rest_of_phi3(const ModelConfig *c) {
    ModelConfig rope;
    JsonNode *share = model_config_field(c, "partial_rotary_factor");
    if (!share && model_config_within(c, "rope_parameters", &rope)) {
        share = model_config_field(&rope, "partial_rotary_factor");
    }
    if (share && (!JSON_NODE_HOLDS_VALUE(share) || json_node_get_double(share) != 1)) {
        return model_config_not_known(
            c, "a Phi-3 with a partial_rotary_factor other than 1 is not known");
    }
    g_string_append(c->ini, "qkv = sliced\nrope = partial\ngate_up = joined\n");
    return model_config_rest_of_llama(c);
}

/* What all Gemmas have: RMSNorm that scales by one more than its weights, embeddings times the root
 * of their width, and a hidden layer that GELU opens. */
static bool append_gemma(const ModelConfig *c, const char *activation) {
    static const char *const words[][2] = {{"gelu_pytorch_tanh", "gelu-tanh"},
                                           {"gelu", "gelu-erf"}};
    if (model_config_flag(c, "use_bidirectional_attention", false)) {
        return model_config_not_known(c, "use_bidirectional_attention is not known");
    }
    double width;
    if (!model_config_number(c, "hidden_size", 0, &width)) {
        return false;
    }
    model_config_append_double(c, "embed_scale", sqrt(width), "hidden_size");
    g_string_append(c->ini, "norm_weight = from-one\n");
    const char *act = model_config_text(c, activation, words[0][0]);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_equal(act, words[i][0])) {
            model_config_append(c, "gate", words[i][1], activation);
            return true;
        }
    }
    return model_config_not_known(c, "%s '%s' is not known; gelu_pytorch_tanh and gelu are",
                                  activation, act);
}

bool model_config_rest_of_gemma(const ModelConfig *c) {
    bool renamed =
        model_config_field(c, "hidden_activation"); /* what Google's files were mended by */
    return append_gemma(c, renamed ? "hidden_activation" : "hidden_act") && append_llama(c) &&
           model_config_rope(c);
}

/* The first block, counted from 1, of which layer_types does not say that of each so many blocks
 * the first or else the last looks back all the way, and no other; 0: none. */
static guint unlike_in_layer_types(const ModelConfig *c, gint64 every, bool is_first) {
    JsonArray *types = model_config_array(c, "layer_types");
    for (guint i = 0; types && i < json_array_get_length(types); i++) {
        JsonNode *one = json_array_get_element(types, i);
        bool is_text = JSON_NODE_HOLDS_VALUE(one) && json_node_get_value_type(one) == G_TYPE_STRING;
        bool slides = (i + !is_first) % (guint64)every != 0;
        const char *expected = slides ? "sliding_attention" : "full_attention";
        if (!is_text || !g_str_equal(json_node_get_string(one), expected)) {
            return i + 1;
        }
    }
    return 0;
}

bool model_config_layer_types_are_every(const ModelConfig *c, gint64 every) {
    guint unlike = unlike_in_layer_types(c, every, false);
    return !unlike ||
           model_config_not_known(c,
                                  "layer_types is known as full_attention at each %" G_GINT64_FORMAT
                                  "-th block and sliding_attention elsewhere; block %u differs",
                                  every, unlike);
}

/* What q k is multiplied by: Gemma's files give what is under its root. */
static bool append_scale_of_scores(const ModelConfig *c) {
    double squared;
    if (!model_config_number(c, "query_pre_attn_scalar", 256, &squared)) {
        return false;
    }
    model_config_append_double(c, "attention_scale", 1 / sqrt(squared), "query_pre_attn_scalar");
    return true;
}

/* Angles of blocks that look back all the way and of others: where they stand depends on who wrote
 * the file. local_own: of a file that has them side by side. */
static bool append_two_ropes(const ModelConfig *c, const char *global, const char *local,
                             const char *local_own) {
    ModelConfig both, of_global, of_local;
    bool is_nested = model_config_within(c, "rope_parameters", &both) &&
                     model_config_within(&both, "full_attention", &of_global) &&
                     model_config_within(&both, "sliding_attention", &of_local);
    if (is_nested) {
        return model_config_append_number(&of_global, global) &&
               model_config_append_number(&of_local, local) &&
               model_config_rope_scaling(&both, "full_attention");
    }
    return model_config_append_number(c, global) && model_config_append_number(c, local_own) &&
           model_config_rope_scaling(c, "rope_scaling");
}

/* Gemma 3's text. Its files give the window in two fields, of which the pattern is not kept by
 * transformers from 4.53 on: six, unless layer_types says otherwise. */
bool model_config_rest_of_gemma3_text(const ModelConfig *c) {
    static const char *const caps[] = {"final_logit_softcapping", "attn_logit_softcapping"};
    for (unsigned i = 0; i < G_N_ELEMENTS(caps); i++) {
        if (model_config_field(c, caps[i])) {
            return model_config_refuse(c, "%s is not known; set it to null", caps[i]);
        }
    }
    gint64 every;
    if (!model_config_count(c, "sliding_window_pattern", 6, &every)) {
        return false;
    }
    model_config_append_whole(c, "global_every", every, "sliding_window_pattern");
    g_string_append(c->ini, "qk_norm = head\nnorm_at = both\n");
    return append_scale_of_scores(c) && append_gemma(c, "hidden_activation") &&
           model_config_layer_types_are_every(c, every) &&
           append_two_ropes(c, "rope_base=rope_theta:1000000", "local_rope_base=rope_theta:10000",
                            "local_rope_base=rope_local_base_freq:10000") &&
           append_llama(c);
}

/* Mistral's blocks, of which each fourth, from the first on, looks back all the way; without a list
 * all have the window. */
bool model_config_rest_of_ministral(const ModelConfig *c) {
    const gint64 every = 4;
    guint unlike = unlike_in_layer_types(c, every, true);
    if (unlike) {
        return model_config_not_known(
            c,
            "layer_types of a Ministral is known as full_attention at the first of each "
            "%" G_GINT64_FORMAT " blocks and sliding_attention elsewhere; block %u differs",
            every, unlike);
    }
    if (!model_config_array(c, "layer_types") || !model_config_field(c, "sliding_window")) {
        return model_config_not_known(
            c, "a Ministral whose blocks are all alike, without layer_types or sliding_window, is "
               "not known");
    }
    model_config_append_whole(c, "global_every", every, "layer_types");
    g_string_append(c->ini, "global_at = first\n");
    return model_config_rest_of_llama(c);
}

/* Gemma 2's caps need attention with its scores in memory, as transformers then takes it by itself:
 * PyTorch's kernel knows none. */
bool model_config_rest_of_gemma2(const ModelConfig *c) {
    static const char *const caps[][2] = {{"attention_cap", "attn_logit_softcapping"},
                                          {"logits_cap", "final_logit_softcapping"}};
    static const double usual[] = {50, 30};
    const gint64 every = 2;
    for (unsigned i = 0; i < G_N_ELEMENTS(caps); i++) {
        double cap;
        if (!model_config_field(c, caps[i][1]) && json_object_has_member(c->fields, caps[i][1])) {
            return model_config_not_known(c, "a Gemma 2 whose %s is null is not known", caps[i][1]);
        }
        if (!model_config_number(c, caps[i][1], usual[i], &cap)) {
            return false;
        }
        model_config_append_double(c, caps[i][0], cap, caps[i][1]);
    }
    if (!model_config_field(c, "sliding_window") &&
        json_object_has_member(c->fields, "sliding_window")) {
        return model_config_not_known(c, "a Gemma 2 whose sliding_window is null is not known");
    }
    if (!append_scale_of_scores(c)) {
        return false;
    }
    model_config_append_whole(c, "global_every", every, "layer_types");
    g_string_append(c->ini, "norm_at = both\nattention = math-fp32\n");
    return append_gemma(c, "hidden_activation") && model_config_layer_types_are_every(c, every) &&
           append_llama(c) && model_config_rope(c);
}

bool model_config_heads_fill_width(const ModelConfig *c, double usual, const char *told) {
    double width, heads, head_dim;
    if (!model_config_number(c, "hidden_size", 0, &width) ||
        !model_config_number(c, "num_attention_heads", 1, &heads) ||
        !model_config_number(c, "head_dim", usual > 0 ? usual : width / heads, &head_dim)) {
        return false;
    }
    return heads * head_dim == width ||
           model_config_not_known(
               c, "head_dim is not hidden_size / num_attention_heads, which transformers' own %s",
               told);
}

/* Whose q, k and v may be clamped in place, which keeps copies of them. */
bool model_config_rest_of_olmo(const ModelConfig *c) {
    if (model_config_field(c, "clip_qkv")) {
        return model_config_not_known(c, "clip_qkv is not known");
    }
    return model_config_rest_of_llama(c);
}

/* OLMo 2's blocks, of which each fourth looks back all the way. Both kinds have one base, and
 * tables of their own, for only that fourth's angles are stretched. */
bool model_config_rest_of_olmo3(const ModelConfig *c) {
    const gint64 every = 4;
    const char *local = "local_rope_base=rope_theta:500000";
    model_config_append_whole(c, "global_every", every, "layer_types");
    return model_config_layer_types_are_every(c, every) &&
           append_two_ropes(c, "rope_base=rope_theta:500000", local, local) && append_silu_llama(c);
}

/* OLMo 2's blocks, with norms of each head. Of the hybrid ones those that look back all the way,
 * each fourth unless the file says otherwise, turn nothing. */
bool model_config_rest_of_exaone4(const ModelConfig *c) {
    bool has_window = model_config_field(c, "sliding_window") ||
                      !json_object_has_member(c->fields, "sliding_window");
    const char *pattern = model_config_text(c, "sliding_window_pattern", NULL);
    gint64 every = pattern ? (gint64)strlen(pattern) : 4;
    if (!has_window) {
        return model_config_rest_of_llama(c);
    }
    if (pattern &&
        (every < 2 || strspn(pattern, "L") != (gsize)every - 1 || pattern[every - 1] != 'G')) {
        return model_config_not_known(
            c, "sliding_window_pattern '%s' is not known; several L and a G, or a number, are",
            pattern);
    }
    if (!pattern && !model_config_count(c, "sliding_window_pattern", every, &every)) {
        return false;
    }
    model_config_append_whole(c, "global_every", every, "sliding_window_pattern");
    model_config_append_whole(c, "no_rope_every", every, "sliding_window_pattern");
    return model_config_layer_types_are_every(c, every) && model_config_rest_of_llama(c);
}

/* Half of each head is turned unless the file says otherwise; transformers 5 has moved that into
 * rope_parameters. */
static bool append_rotary_share(const ModelConfig *c) {
    static const char *const name = "partial_rotary_factor";
    ModelConfig rope;
    bool is_nested =
        model_config_within(c, "rope_parameters", &rope) && model_config_field(&rope, name);
    double share;
    if (!model_config_number(is_nested ? &rope : c, name, 0.5, &share)) {
        return false;
    }
    if (share != 1) {
        model_config_append_double(c, "rotary_share", share, name);
    }
    return true;
}

/* GLM, and GLM-4 with four norms a block. */
bool model_config_rest_of_glm(const ModelConfig *c) {
    if (!opens_by_silu(c)) {
        return false;
    }
    bool is_glm4 = g_str_equal(model_config_text(c, "model_type", ""), "glm4");
    bool has_biases = model_config_flag(c, "attention_bias", true);
    g_string_append_printf(c->ini, "rope = pairs\ngate_up = joined\nnorm_at = %s\nqkv_bias = %s\n",
                           is_glm4 ? "both" : "before", has_biases ? "yes" : "no");
    return append_rotary_share(c) && model_config_rope(c) && model_config_seq(c) &&
           model_config_append_number(c, "norm_eps=rms_norm_eps:1.5625e-07");
}

/* Of Cohere 2 those blocks that look back all the way, each fourth unless the file says otherwise,
 * turn nothing. */
static bool append_places_of_cohere2(const ModelConfig *c) {
    gint64 every;
    if (!model_config_field(c, "sliding_window") &&
        json_object_has_member(c->fields, "sliding_window")) {
        return model_config_not_known(c, "a Cohere 2 whose sliding_window is null is not known");
    }
    if (!model_config_count(c, "sliding_window_pattern", 4, &every)) {
        return false;
    }
    model_config_append_whole(c, "global_every", every, "sliding_window_pattern");
    model_config_append_whole(c, "no_rope_every", every, "sliding_window_pattern");
    return model_config_layer_types_are_every(c, every);
}

/* One norm a block, whose result attention and the hidden layer read side by side. */
bool model_config_rest_of_cohere(const ModelConfig *c) {
    if (!opens_by_silu(c)) {
        return false;
    }
    if (model_config_flag(c, "use_qk_norm", false) ||
        model_config_flag(c, "attention_bias", false)) {
        return model_config_not_known(c,
                                      "a Cohere with use_qk_norm or attention_bias is not known");
    }
    double scale;
    if (!model_config_number(c, "logit_scale", 0.0625, &scale)) {
        return false;
    }
    model_config_append_double(c, "logits_scale", scale, "logit_scale");
    g_string_append(c->ini, "rope = pairs\nnorm_at = once\nnorm_weight = centred\n");
    bool is_second = g_str_equal(model_config_text(c, "model_type", ""), "cohere2");
    return (!is_second || append_places_of_cohere2(c)) &&
           model_config_append_number(c, "norm_eps=layer_norm_eps:1e-05") && model_config_seq(c) &&
           model_config_rope(c);
}

bool model_config_rest_of_ernie(const ModelConfig *c) {
    if (!opens_by_silu(c)) {
        return false;
    }
    if (model_config_flag(c, "use_bias", false)) {
        return model_config_not_known(c, "an ERNIE 4.5 with use_bias is not known");
    }
    g_string_append(c->ini, "rope = pairs\n");
    return model_config_append_number(c, "norm_eps=rms_norm_eps:1e-05") && model_config_seq(c) &&
           model_config_rope(c);
}

bool model_config_rest_of_helium(const ModelConfig *c) {
    if (!opens_by_silu(c)) {
        return false;
    }
    if (model_config_flag(c, "attention_bias", false) || model_config_flag(c, "mlp_bias", false)) {
        return model_config_not_known(c, "a Helium with attention_bias or mlp_bias is not known");
    }
    if (!model_config_heads_fill_width(c, 128,
                                       "Helium cannot run: the layer behind attention is square")) {
        return false;
    }
    g_string_append(c->ini, "rope = pairs\nnorm_weight = widened\n");
    return model_config_append_number(c, "norm_eps=rms_norm_eps:1e-08") && model_config_seq(c) &&
           model_config_rope(c);
}

/* Whose hidden layer has no gate. */
bool model_config_rest_of_arcee(const ModelConfig *c) {
    const char *act = model_config_text(c, "hidden_act", "relu2");
    if (!g_str_equal(act, "relu2")) {
        return model_config_not_known(c, "hidden_act '%s' of an Arcee is not known; relu2 is", act);
    }
    g_string_append(c->ini, "gate = none\n");
    return append_llama(c) && model_config_rope(c);
}
