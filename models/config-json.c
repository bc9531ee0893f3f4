/* models/config-json.c - which field of a config.json is which key of a network.
 *
 * Field names and defaults: huggingface/transformers, the configuration_*.py of each model_type.
 */
#include "models/config-json.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

#include "plan/ini.h"
#include "plan/plan.h"

typedef struct {
    const char *model_type, *family;
    /* "key=field" must stand, "key=field?" may, "key=field:N" is N when it does not. */
    const char *numbers;
    const char *dropouts; /* "field:P": what it is when it does not stand */
    bool tied;            /* when tie_word_embeddings does not stand */
    bool (*rest)(JsonObject *config, GString *ini, const char *file_name, GError **error);
} Type;

static bool refuse(const char *file_name, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool refuse(const char *file_name, GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s: %s", file_name, message);
    return false;
}

/* ---- fields --------------------------------------------------------------------------------- */

static JsonNode *field(JsonObject *config, const char *name) {
    JsonNode *node = json_object_get_member(config, name);
    return node && !JSON_NODE_HOLDS_NULL(node) ? node : NULL;
}

static const char *text_of(JsonObject *config, const char *name, const char *otherwise) {
    JsonNode *node = field(config, name);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : otherwise;
}

static bool flag_of(JsonObject *config, const char *name, bool otherwise) {
    JsonNode *node = field(config, name);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_BOOLEAN
               ? json_node_get_boolean(node)
               : otherwise;
}

/* What is read as true or false, or as a word, in the file or in an object within. */
static const char *const flags[] = {"add_cross_attention",
                                    "reorder_and_upcast_attn",
                                    "use_sliding_window",
                                    "attention_bias",
                                    "mlp_bias",
                                    "qk_ln",
                                    "qk_gn",
                                    "prefix_lm",
                                    "rope",
                                    "alibi",
                                    "learned_pos_emb",
                                    "no_bias",
                                    "tie_word_embeddings",
                                    "use_parallel_residual",
                                    "qk_layernorm",
                                    "use_bias",
                                    "enable_bias",
                                    "do_layer_norm_before",
                                    "layer_norm_elementwise_affine",
                                    "_remove_final_layer_norm",
                                    "norm_topk_prob",
                                    "output_router_logits",
                                    "use_bidirectional_attention",
                                    NULL};
static const char *const texts[] = {"model_type",
                                    "activation_function",
                                    "hidden_act",
                                    "hidden_activation",
                                    "feed_forward_proj",
                                    "attn_type",
                                    "norm_type",
                                    "rope_type",
                                    "type",
                                    NULL};

static const char *const objects[] = {"attn_config", "rope_scaling", "rope_parameters", NULL};

static bool types_are_sound(JsonObject *config, const char *file_name, GError **error) {
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;
    json_object_iter_init(&iter, config);
    while (json_object_iter_next(&iter, &name, &node)) {
        if (JSON_NODE_HOLDS_NULL(node)) {
            continue;
        }
        GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
        if (g_strv_contains(flags, name) && type != G_TYPE_BOOLEAN) {
            return refuse(file_name, error, "the field '%s' must be true or false", name);
        }
        if (g_strv_contains(texts, name) && type != G_TYPE_STRING) {
            return refuse(file_name, error, "the field '%s' must be a text", name);
        }
        if (g_strv_contains(objects, name) && JSON_NODE_HOLDS_OBJECT(node) &&
            !types_are_sound(json_node_get_object(node), file_name, error)) {
            return false;
        }
    }
    return true;
}

/* The field goes along, for whoever refuses the value. */
static void append_key(GString *ini, const char *key, const char *value, const char *from) {
    g_string_append_printf(ini, "%s = %s # %s\n", key, value, from);
}

static void append_whole(GString *ini, const char *key, gint64 value, const char *from) {
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, value);
    append_key(ini, key, text, from);
}

static bool append_number(JsonObject *config, const char *word, GString *ini, const char *file_name,
                          GError **error) {
    g_auto(GStrv) pair = g_strsplit(word, "=", 2);
    char *otherwise = strchr(pair[1], ':');
    gsize end = strlen(pair[1]) - 1;
    bool optional = pair[1][end] == '?';
    if (optional) {
        pair[1][end] = 0;
    }
    if (otherwise) {
        *otherwise++ = 0;
    }
    JsonNode *node = field(config, pair[1]);
    if (!node) {
        if (otherwise) {
            append_key(ini, pair[0], otherwise, pair[1]);
        }
        return optional || otherwise ||
               refuse(file_name, error,
                      "the field '%s' is missing; a config.json of model_type "
                      "'%s' has it",
                      pair[1], text_of(config, "model_type", ""));
    }
    GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    if (type == G_TYPE_INT64) {
        append_whole(ini, pair[0], json_node_get_int(node), pair[1]);
        return true;
    }
    if (type == G_TYPE_DOUBLE) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        append_key(ini, pair[0], plan_double_text(number, json_node_get_double(node)), pair[1]);
        return true;
    }
    return refuse(file_name, error, "the field '%s' must be a number", pair[1]);
}

/* ---- what is not a number ------------------------------------------------------------------- */

static bool append_gelu(JsonObject *config, const char *name, const char *otherwise, GString *ini,
                        const char *file_name, GError **error) {
    const char *act = text_of(config, name, otherwise);
    static const char *const words[][2] = {
        {"gelu_new", "ops"}, {"gelu_pytorch_tanh", "tanh"}, {"gelu", "erf"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_equal(act, words[i][0])) {
            g_string_append_printf(ini, "gelu = %s\n", words[i][1]);
            return true;
        }
    }
    return refuse(file_name, error, "%s '%s' is not known; gelu_new and gelu are", name, act);
}

static bool rest_of_gpt2(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    if (flag_of(config, "add_cross_attention", false)) {
        return refuse(file_name, error, "a GPT-2 with add_cross_attention is not known");
    }
    if (flag_of(config, "reorder_and_upcast_attn", false)) {
        return refuse(file_name, error, "a GPT-2 with reorder_and_upcast_attn is not known");
    }
    return append_gelu(config, "activation_function", "gelu_new", ini, file_name, error);
}

/* The longest sequence: no further than attention looks back (Mistral's sliding_window, 4096 unless
 * it says otherwise; Qwen's where it is used), for within it attention is causal and no more. */
static bool append_seq(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    const char *model_type = text_of(config, "model_type", "");
    bool is_asked = g_str_has_prefix(model_type, "qwen") || g_str_equal(model_type, "smollm3");
    bool slides = flag_of(config, "use_sliding_window", !is_asked);
    bool is_windowed = g_str_equal(model_type, "mistral") || g_str_equal(model_type, "gemma3_text");
    bool slides_unsaid = is_windowed && !json_object_has_member(config, "sliding_window");
    const char *names[] = {"max_position_embeddings", "sliding_window"};
    gint64 seq = slides_unsaid ? 4096 : G_MAXINT64;
    const char *from = names[slides_unsaid];
    for (unsigned i = 0; i < 1 + (unsigned)slides; i++) {
        JsonNode *node = field(config, names[i]);
        bool is_int =
            node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64;
        if (!is_int && (node || i == 0)) {
            return refuse(file_name, error,
                          node ? "the field '%s' must be a number" : "the field '%s' is missing",
                          names[i]);
        }
        if (is_int && json_node_get_int(node) < seq) {
            seq = json_node_get_int(node);
            from = names[i];
        }
    }
    append_whole(ini, "seq", seq, from);
    return true;
}

/* How rotary angles are stretched for sequences longer than those of the first training. It changes
 * neither bytes nor time, but what a run learns: the word is kept for it. "type" is what
 * transformers called "rope_type" before 4.43. */
static bool append_scaling(JsonObject *config, const char *name, GString *ini,
                           const char *file_name, GError **error) {
    JsonNode *node = field(config, name);
    if (!node) {
        return true;
    }
    if (!JSON_NODE_HOLDS_OBJECT(node)) {
        return refuse(file_name, error, "the field '%s' must be an object or null", name);
    }
    JsonObject *scaling = json_node_get_object(node);
    const char *kind = text_of(scaling, "rope_type", text_of(scaling, "type", "default"));
    if (!g_str_equal(kind, "default")) {
        append_key(ini, "rope_scaling", kind, name);
    }
    return true;
}

/* Files written by transformers 5 hold base and scaling one level down. */
static bool append_rope(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    JsonNode *node = field(config, "rope_parameters");
    bool is_nested = !field(config, "rope_theta") && node && JSON_NODE_HOLDS_OBJECT(node);
    const char *model_type = text_of(config, "model_type", "");
    const char *base = g_str_equal(model_type, "mixtral")   ? "rope_base=rope_theta:1000000"
                       : g_str_equal(model_type, "smollm3") ? "rope_base=rope_theta:2000000"
                                                            : "rope_base=rope_theta:10000";
    return append_number(is_nested ? json_node_get_object(node) : config, base, ini, file_name,
                         error) &&
           append_scaling(config, is_nested ? "rope_parameters" : "rope_scaling", ini, file_name,
                          error);
}

/* Of those that were recorded transformers' own modules are planned. Where others are, the loss is
 * at least theirs, of logits in fp32; T5's is of logits as they are, and an MPT is llm-foundry's.
 */
static void append_code(const char *model_type, GString *ini) {
    static const char *const recorded[] = {"llama", "mistral", "qwen2", "qwen3", NULL};
    static const char *const narrow[] = {"t5", "mpt", NULL};
    if (g_strv_contains(recorded, model_type)) {
        g_string_append(ini, "code = transformers\n");
    } else if (!g_strv_contains(narrow, model_type)) {
        g_string_append(ini, "loss = fp32\n");
    }
}

/* Of a Llama with any activation. */
static bool append_llama(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    if (flag_of(config, "attention_bias", false) || flag_of(config, "mlp_bias", false)) {
        return refuse(file_name, error,
                      "attention_bias and mlp_bias are not known; qwen2's biases "
                      "of q, k and v are");
    }
    const char *model_type = text_of(config, "model_type", "");
    if (g_str_equal(model_type, "qwen2")) {
        g_string_append(ini, "qkv_bias = yes\n");
    } else if (g_str_has_prefix(model_type, "qwen3")) {
        g_string_append(ini, "qk_norm = head\n");
    } else if (g_str_equal(model_type, "olmo2")) {
        g_string_append(ini, "qk_norm = width\nnorm_at = after\n");
    }
    return append_seq(config, ini, file_name, error);
}

static bool rest_of_llama(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    const char *act = text_of(config, "hidden_act", "silu");
    if (!g_str_equal(act, "silu")) {
        return refuse(file_name, error, "hidden_act '%s' is not known; silu is", act);
    }
    return append_llama(config, ini, file_name, error) &&
           append_rope(config, ini, file_name, error);
}

static bool append_scale(JsonObject *config, const char *key, const char *name, double otherwise,
                         bool divides, GString *ini, const char *file_name, GError **error) {
    JsonNode *node = field(config, name);
    GType type =
        node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    if (node && type != G_TYPE_INT64 && type != G_TYPE_DOUBLE) {
        return refuse(file_name, error, "the field '%s' must be a number", name);
    }
    double value = node ? json_node_get_double(node) : otherwise;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    append_key(ini, key, plan_double_text(number, divides ? 1 / value : value), name);
    return true;
}

static bool rest_of_granite(JsonObject *config, GString *ini, const char *file_name,
                            GError **error) {
    static const struct {
        const char *key, *name;
        bool divides;
    } scales[] = {{"embed_scale", "embedding_multiplier", false},
                  {"attention_scale", "attention_multiplier", false},
                  {"residual_scale", "residual_multiplier", false},
                  {"logits_scale", "logits_scaling", true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(scales); i++) {
        if (!append_scale(config, scales[i].key, scales[i].name, 1, scales[i].divides, ini,
                          file_name, error)) {
            return false;
        }
    }
    return rest_of_llama(config, ini, file_name, error);
}

/* Blocks that turn nothing are every so many-th: the list of those that do says no more. */
static bool rest_of_smollm3(JsonObject *config, GString *ini, const char *file_name,
                            GError **error) {
    JsonNode *list = field(config, "no_rope_layers"),
             *every = field(config, "no_rope_layer_interval");
    bool is_int =
        every && JSON_NODE_HOLDS_VALUE(every) && json_node_get_value_type(every) == G_TYPE_INT64;
    gint64 interval = is_int ? json_node_get_int(every) : 4;
    if (interval < 1 || (every && !is_int)) {
        return refuse(file_name, error,
                      "the field 'no_rope_layer_interval' must be a whole number from 1");
    }
    JsonArray *turns = list && JSON_NODE_HOLDS_ARRAY(list) ? json_node_get_array(list) : NULL;
    for (guint i = 0; turns && i < json_array_get_length(turns); i++) {
        JsonNode *one = json_array_get_element(turns, i);
        bool is_whole = JSON_NODE_HOLDS_VALUE(one) && json_node_get_value_type(one) == G_TYPE_INT64;
        if (!is_whole || (json_node_get_int(one) != 0) != ((i + 1) % (guint64)interval != 0)) {
            return refuse(file_name, error,
                          "no_rope_layers is known as 0 at each no_rope_layer_interval-th block "
                          "(%" G_GINT64_FORMAT ") and 1 elsewhere; block %u differs",
                          interval, i + 1);
        }
    }
    append_whole(ini, "unturned_every", interval, "no_rope_layer_interval");
    return rest_of_llama(config, ini, file_name, error);
}

static bool rest_of_phi3(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    JsonNode *rope = field(config, "rope_parameters");
    JsonObject *within = rope && JSON_NODE_HOLDS_OBJECT(rope) ? json_node_get_object(rope) : config;
    JsonNode *share = field(config, "partial_rotary_factor");
    share = share ? share : field(within, "partial_rotary_factor");
    if (share && (!JSON_NODE_HOLDS_VALUE(share) || json_node_get_double(share) != 1)) {
        return refuse(file_name, error,
                      "a Phi-3 with a partial_rotary_factor other than 1 is not known");
    }
    g_string_append(ini, "qkv = sliced\nrope = partial\ngate_up = joined\n");
    return rest_of_llama(config, ini, file_name, error);
}

/* What all Gemmas have: RMSNorm that scales by one more than its weights, embeddings times the root
 * of their width, and a hidden layer that GELU opens. */
static bool append_gemma(JsonObject *config, const char *activation, GString *ini,
                         const char *file_name, GError **error) {
    static const char *const words[][2] = {{"gelu_pytorch_tanh", "gelu-tanh"},
                                           {"gelu", "gelu-erf"}};
    if (flag_of(config, "use_bidirectional_attention", false)) {
        return refuse(file_name, error, "use_bidirectional_attention is not known");
    }
    JsonNode *width = field(config, "hidden_size");
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    double root = width && JSON_NODE_HOLDS_VALUE(width) ? sqrt(json_node_get_double(width)) : 0;
    append_key(ini, "embed_scale", plan_double_text(number, root), "hidden_size");
    g_string_append(ini, "norm_weight = from-one\n");
    const char *act = text_of(config, activation, words[0][0]);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_equal(act, words[i][0])) {
            append_key(ini, "gate", words[i][1], activation);
            return true;
        }
    }
    return refuse(file_name, error, "%s '%s' is not known; gelu_pytorch_tanh and gelu are",
                  activation, act);
}

static bool rest_of_gemma(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    bool renamed = field(config, "hidden_activation"); /* what Google's files were mended by */
    return append_gemma(config, renamed ? "hidden_activation" : "hidden_act", ini, file_name,
                        error) &&
           append_llama(config, ini, file_name, error) &&
           append_rope(config, ini, file_name, error);
}

/* Whether each so many-th block looks back all the way, and no other. */
static bool layer_types_are_every(JsonObject *config, gint64 every, const char *file_name,
                                  GError **error) {
    JsonNode *node = field(config, "layer_types");
    JsonArray *types = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    for (guint i = 0; types && i < json_array_get_length(types); i++) {
        JsonNode *one = json_array_get_element(types, i);
        bool is_text = JSON_NODE_HOLDS_VALUE(one) && json_node_get_value_type(one) == G_TYPE_STRING;
        const char *expected = (i + 1) % (guint64)every ? "sliding_attention" : "full_attention";
        if (!is_text || !g_str_equal(json_node_get_string(one), expected)) {
            return refuse(
                file_name, error,
                "layer_types is known as full_attention at each sliding_window_pattern-th "
                "block (%" G_GINT64_FORMAT ") and sliding_attention elsewhere; block %u "
                "differs",
                every, i + 1);
        }
    }
    return true;
}

/* Angles of blocks that look back all the way and of others: where they stand depends on who wrote
 * the file. */
static bool append_two_ropes(JsonObject *config, GString *ini, const char *file_name,
                             GError **error) {
    JsonNode *node = field(config, "rope_parameters");
    JsonObject *both = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    JsonNode *full = both ? field(both, "full_attention") : NULL;
    JsonNode *local = both ? field(both, "sliding_attention") : NULL;
    bool is_nested = full && JSON_NODE_HOLDS_OBJECT(full) && local && JSON_NODE_HOLDS_OBJECT(local);
    if (is_nested) {
        return append_number(json_node_get_object(full), "rope_base=rope_theta:1000000", ini,
                             file_name, error) &&
               append_number(json_node_get_object(local), "local_rope_base=rope_theta:10000", ini,
                             file_name, error) &&
               append_scaling(both, "full_attention", ini, file_name, error);
    }
    return append_number(config, "rope_base=rope_theta:1000000", ini, file_name, error) &&
           append_number(config, "local_rope_base=rope_local_base_freq:10000", ini, file_name,
                         error) &&
           append_scaling(config, "rope_scaling", ini, file_name, error);
}

/* Gemma 3's text. Its files give the window in two fields, of which the pattern is not kept by
 * transformers from 4.53 on: six, unless layer_types says otherwise. */
static bool rest_of_gemma3_text(JsonObject *config, GString *ini, const char *file_name,
                                GError **error) {
    static const char *const caps[] = {"final_logit_softcapping", "attn_logit_softcapping"};
    for (unsigned i = 0; i < G_N_ELEMENTS(caps); i++) {
        if (field(config, caps[i])) {
            return refuse(file_name, error, "%s is not known; set it to null", caps[i]);
        }
    }
    JsonNode *pattern = field(config, "sliding_window_pattern");
    bool is_int = pattern && JSON_NODE_HOLDS_VALUE(pattern) &&
                  json_node_get_value_type(pattern) == G_TYPE_INT64;
    gint64 every = is_int ? json_node_get_int(pattern) : 6;
    if (every < 1 || (pattern && !is_int)) {
        return refuse(file_name, error,
                      "the field 'sliding_window_pattern' must be a whole number from 1");
    }
    append_whole(ini, "global_every", every, "sliding_window_pattern");
    g_string_append(ini, "qk_norm = head\nnorm_at = both\n");
    JsonNode *scalar = field(config, "query_pre_attn_scalar");
    double squared = scalar && JSON_NODE_HOLDS_VALUE(scalar) ? json_node_get_double(scalar) : 256;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    append_key(ini, "attention_scale", plan_double_text(number, 1 / sqrt(squared)),
               "query_pre_attn_scalar");
    return append_gemma(config, "hidden_activation", ini, file_name, error) &&
           layer_types_are_every(config, every, file_name, error) &&
           append_two_ropes(config, ini, file_name, error) &&
           append_llama(config, ini, file_name, error);
}

/* Whether the field is missing or that number. */
static bool is_number(JsonObject *config, const char *name, gint64 number) {
    JsonNode *node = field(config, name);
    return !node ||
           (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64 &&
            json_node_get_int(node) == number);
}

/* What adds a loss that balances the experts is no part of a plan. */
static bool has_plain_router(JsonObject *config, const char *file_name, GError **error) {
    if (flag_of(config, "output_router_logits", false)) {
        return refuse(file_name, error,
                      "output_router_logits adds a loss of the router's, which is not known; set "
                      "it to false");
    }
    JsonNode *noise = field(config, "router_jitter_noise");
    return !noise || !JSON_NODE_HOLDS_VALUE(noise) || json_node_get_double(noise) <= 0 ||
           refuse(file_name, error, "router_jitter_noise above 0 is not known");
}

static bool rest_of_mixtral(JsonObject *config, GString *ini, const char *file_name,
                            GError **error) {
    return has_plain_router(config, file_name, error) &&
           rest_of_llama(config, ini, file_name, error);
}

/* Blocks without experts among those that have them are not known. */
static bool rest_of_qwen3_moe(JsonObject *config, GString *ini, const char *file_name,
                              GError **error) {
    JsonNode *dense = field(config, "mlp_only_layers");
    bool has_dense = dense && (!JSON_NODE_HOLDS_ARRAY(dense) ||
                               json_array_get_length(json_node_get_array(dense)) > 0);
    if (has_dense || !is_number(config, "decoder_sparse_step", 1)) {
        return refuse(file_name, error,
                      "blocks without experts are not known beside those with them: "
                      "decoder_sparse_step must be 1 and mlp_only_layers empty");
    }
    append_key(ini, "route_norm", flag_of(config, "norm_topk_prob", false) ? "yes" : "no",
               "norm_topk_prob");
    /* transformers 5 may write it under the name that Mixtral has. */
    const char *experts =
        field(config, "num_experts") ? "experts=num_experts" : "experts=num_local_experts";
    return append_number(config, experts, ini, file_name, error) &&
           has_plain_router(config, file_name, error) &&
           rest_of_llama(config, ini, file_name, error);
}

/* ---- decoders with LayerNorm ---------------------------------------------------------------- */

/* A field that transformers 5 has moved into rope_parameters, under a name of its own. */
static bool append_rope_number(JsonObject *config, const char *key, const char *nested,
                               const char *word, GString *ini, const char *file_name,
                               GError **error) {
    JsonNode *node = field(config, "rope_parameters");
    bool is_nested = node && JSON_NODE_HOLDS_OBJECT(node) &&
                     json_object_has_member(json_node_get_object(node), nested);
    g_autofree char *moved = g_strdup_printf("%s=%s", key, nested);
    g_autofree char *own = g_strdup_printf("%s=%s", key, word);
    return is_nested ? append_number(json_node_get_object(node), moved, ini, file_name, error)
                     : append_number(config, own, ini, file_name, error);
}

static void append_bias(JsonObject *config, const char *name, GString *ini) {
    append_key(ini, "bias", flag_of(config, name, true) ? "yes" : "no", name);
}

static bool rest_of_neox(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    bool parallel = flag_of(config, "use_parallel_residual", true);
    append_key(ini, "block", parallel ? "parallel" : "sequential", "use_parallel_residual");
    if (!flag_of(config, "attention_bias", true)) {
        return refuse(file_name, error, "a GPT-NeoX without attention_bias is not known");
    }
    return append_gelu(config, "hidden_act", "gelu", ini, file_name, error) &&
           append_rope_number(config, "rotary_share", "partial_rotary_factor", "rotary_pct:0.25",
                              ini, file_name, error) &&
           append_rope_number(config, "rope_base", "rope_theta", "rotary_emb_base:10000", ini,
                              file_name, error) &&
           append_scaling(config,
                          field(config, "rope_parameters") ? "rope_parameters" : "rope_scaling",
                          ini, file_name, error);
}

static bool rest_of_phi(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    if (flag_of(config, "qk_layernorm", false)) {
        return refuse(file_name, error, "a Phi with qk_layernorm is not known");
    }
    if (flag_of(config, "tie_word_embeddings", false)) {
        return refuse(file_name, error, "a Phi with tie_word_embeddings is not known");
    }
    return append_gelu(config, "hidden_act", "gelu_new", ini, file_name, error) &&
           append_rope_number(config, "rotary_share", "partial_rotary_factor",
                              "partial_rotary_factor:0.5", ini, file_name, error) &&
           append_rope(config, ini, file_name, error);
}

static bool rest_of_starcoder2(JsonObject *config, GString *ini, const char *file_name,
                               GError **error) {
    append_bias(config, "use_bias", ini);
    return append_gelu(config, "hidden_act", "gelu_pytorch_tanh", ini, file_name, error) &&
           append_rope(config, ini, file_name, error) && append_seq(config, ini, file_name, error);
}

/* OPT-350M alone has its norms behind, and embeddings narrower than its blocks. */
static bool rest_of_opt(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    if (!flag_of(config, "do_layer_norm_before", true)) {
        return refuse(file_name, error, "an OPT without do_layer_norm_before is not known");
    }
    if (!is_number(config, "word_embed_proj_dim",
                   json_object_get_int_member(config, "hidden_size"))) {
        return refuse(file_name, error,
                      "word_embed_proj_dim differs from hidden_size, which is not known");
    }
    if (!flag_of(config, "layer_norm_elementwise_affine", true) ||
        flag_of(config, "_remove_final_layer_norm", false)) {
        return refuse(file_name, error,
                      "an OPT whose norms have no weights, or without its last one, is not known");
    }
    const char *act = text_of(config, "activation_function", "relu");
    append_bias(config, "enable_bias", ini);
    return g_str_equal(act, "relu") ||
           refuse(file_name, error, "activation_function '%s' is not known; relu is", act);
}

static bool rest_of_t5(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    const char *act = text_of(config, "feed_forward_proj", "relu");
    if (!is_number(config, "num_decoder_layers",
                   json_object_get_int_member(config, "num_layers"))) {
        return refuse(file_name, error,
                      "num_decoder_layers differs from num_layers, which is not "
                      "known");
    }
    if (!is_number(config, "relative_attention_num_buckets", 32)) {
        return refuse(file_name, error, "relative_attention_num_buckets is not 32, as T5 has it");
    }
    g_string_append_printf(ini, "gated = %s\n", g_str_equal(act, "gated-gelu") ? "yes" : "no");
    return g_str_equal(act, "relu") || g_str_equal(act, "gated-gelu") ||
           refuse(file_name, error, "feed_forward_proj '%s' is not known; relu and gated-gelu are",
                  act);
}

/* What its attention may ask for beside ALiBi; *ret_alibi as llm-foundry's own MPTs have it. */
static bool attention_of_mpt(JsonObject *config, bool *ret_alibi, const char *file_name,
                             GError **error) {
    JsonNode *node = field(config, "attn_config");
    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        return true;
    }
    JsonObject *attention = json_node_get_object(node);
    static const char *const unknown[] = {"qk_ln", "qk_gn", "prefix_lm", "rope"};
    for (unsigned i = 0; i < G_N_ELEMENTS(unknown); i++) {
        if (flag_of(attention, unknown[i], false)) {
            return refuse(file_name, error, "attn_config.%s of an MPT is not known", unknown[i]);
        }
    }
    if (field(attention, "clip_qkv")) {
        return refuse(file_name, error, "attn_config.clip_qkv of an MPT is not known");
    }
    if (!is_number(attention, "alibi_bias_max", 8)) {
        return refuse(file_name, error, "attn_config.alibi_bias_max is not 8, as MPTs have it");
    }
    const char *type = text_of(attention, "attn_type", "multihead_attention");
    *ret_alibi = flag_of(attention, "alibi", true);
    return g_str_equal(type, "multihead_attention") ||
           refuse(file_name, error, "attn_type '%s' is not known; multihead_attention is", type);
}

/* Its hidden layer is so many times as wide; without the field four times, as it is anyhow. */
static bool append_mpt_ffn(JsonObject *config, GString *ini, const char *file_name,
                           GError **error) {
    JsonNode *node = field(config, "expansion_ratio");
    if (!node) {
        return true;
    }
    bool is_whole = JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64;
    gint64 ratio = is_whole ? json_node_get_int(node) : 0;
    gint64 width = json_object_get_int_member(config, "d_model");
    if (ratio < 1 || ratio > 64) {
        return refuse(file_name, error, "expansion_ratio must be a whole number from 1 to 64");
    }
    if (width > 0 && width <= G_MAXINT32) { /* else the width itself is refused */
        append_whole(ini, "ffn", ratio * width, "expansion_ratio");
    }
    return true;
}

/* A network with ALiBi learns no positions, whatever learned_pos_emb says. */
static bool rest_of_mpt(JsonObject *config, GString *ini, const char *file_name, GError **error) {
    bool alibi = true;
    if (!attention_of_mpt(config, &alibi, file_name, error)) {
        return false;
    }
    if (!alibi && !flag_of(config, "learned_pos_emb", true)) {
        return refuse(file_name, error,
                      "an MPT without positions is not known; set "
                      "learned_pos_emb or attn_config.alibi to true");
    }
    const char *norm = text_of(config, "norm_type", "low_precision_layernorm");
    if (!g_str_has_suffix(norm, "layernorm")) {
        return refuse(file_name, error, "norm_type '%s' is not known; layernorm is", norm);
    }
    if (!append_mpt_ffn(config, ini, file_name, error)) {
        return false;
    }
    /* Where no_bias does not stand: transformers' MPTs, all with ALiBi, have no biases; those of
     * llm-foundry's trainer have. */
    g_string_append_printf(ini, "positions = %s\nbias = %s\n", alibi ? "alibi" : "learned",
                           flag_of(config, "no_bias", alibi) ? "no" : "yes");
    return true;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define LLAMA_NUMBERS_BUT_HEAD_DIM                                                                 \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "                        \
    "kv_heads=num_key_value_heads? ffn=intermediate_size vocab=vocab_size "
#define LLAMA_NUMBERS LLAMA_NUMBERS_BUT_HEAD_DIM "head_dim=head_dim?"

#define EXPERT_NUMBERS                                                                             \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "                        \
    "kv_heads=num_key_value_heads head_dim=head_dim? vocab=vocab_size "                            \
    "experts_per_token=num_experts_per_tok "

#define DECODER_NUMBERS                                                                            \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads vocab=vocab_size "

static const Type types[] = {
    {"gpt2", "gpt",
     "layers=n_layer width=n_embd heads=n_head ffn=n_inner? vocab=vocab_size seq=n_positions",
     "resid_pdrop:0.1 embd_pdrop:0.1 attn_pdrop:0.1", true, rest_of_gpt2},
    {"llama", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, rest_of_llama},
    {"mistral", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, rest_of_llama},
    {"qwen2", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, rest_of_llama},
    {"qwen3", "llama", LLAMA_NUMBERS_BUT_HEAD_DIM "head_dim=head_dim:128", "attention_dropout:0",
     false, rest_of_llama},
    {"mixtral", "llama", EXPERT_NUMBERS "experts=num_local_experts expert_ffn=intermediate_size",
     "attention_dropout:0", false, rest_of_mixtral},
    {"qwen3_moe", "llama", EXPERT_NUMBERS "expert_ffn=moe_intermediate_size", "attention_dropout:0",
     false, rest_of_qwen3_moe},
    {"olmo2", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, rest_of_llama},
    {"gemma", "llama", LLAMA_NUMBERS_BUT_HEAD_DIM "head_dim=head_dim:256", "attention_dropout:0",
     true, rest_of_gemma},
    {"gemma3_text", "llama", LLAMA_NUMBERS_BUT_HEAD_DIM "head_dim=head_dim:256",
     "attention_dropout:0", true, rest_of_gemma3_text},
    {"granite", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, rest_of_granite},
    {"smollm3", "llama",
     "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "
     "kv_heads=num_key_value_heads:4 ffn=intermediate_size vocab=vocab_size head_dim=head_dim?",
     "attention_dropout:0", true, rest_of_smollm3},
    {"phi3", "llama", LLAMA_NUMBERS, "resid_pdrop:0 embd_pdrop:0 attention_dropout:0", false,
     rest_of_phi3},
    {"t5", "t5",
     "layers=num_layers width=d_model heads=num_heads head_dim=d_kv ffn=d_ff vocab=vocab_size "
     "seq=n_positions:512",
     "dropout_rate:0.1", true, rest_of_t5},
    {"mpt", "mpt", "layers=n_layers width=d_model heads=n_heads vocab=vocab_size seq=max_seq_len",
     "resid_pdrop:0 emb_pdrop:0", true, rest_of_mpt},
    {"gpt_neox", "neox", DECODER_NUMBERS "ffn=intermediate_size seq=max_position_embeddings",
     "hidden_dropout:0 attention_dropout:0", false, rest_of_neox},
    {"phi", "phi",
     DECODER_NUMBERS "kv_heads=num_key_value_heads? ffn=intermediate_size "
                     "seq=max_position_embeddings",
     "resid_pdrop:0 embd_pdrop:0 attention_dropout:0", false, rest_of_phi},
    {"starcoder2", "starcoder2",
     DECODER_NUMBERS "kv_heads=num_key_value_heads:2 ffn=intermediate_size head_dim=head_dim?",
     "residual_dropout:0 embedding_dropout:0 attention_dropout:0", true, rest_of_starcoder2},
    {"opt", "opt", DECODER_NUMBERS "ffn=ffn_dim seq=max_position_embeddings",
     "dropout:0.1 attention_dropout:0", true, rest_of_opt},
};

/* "resid_pdrop 0.1, attn_pdrop 0.1": those above 0; NULL: none. */
static char *dropouts_of(const Type *type, JsonObject *config) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(type->dropouts, " ", -1);
    for (char **word = words; *word; word++) {
        g_auto(GStrv) pair = g_strsplit(*word, ":", 2);
        JsonNode *node = field(config, pair[0]);
        double share = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_double(node)
                                                           : g_ascii_strtod(pair[1], NULL);
        if (share > 0) {
            g_string_append_printf(text, "%s%s %g", text->len ? ", " : "", pair[0], share);
        }
    }
    return text->len ? g_strdup(text->str) : NULL;
}

static char *to_ini(const Type *type, JsonObject *config, const char *file_name, GError **error) {
    g_autoptr(GString) ini = g_string_new(NULL);
    g_string_append_printf(ini, "# From a config.json of model_type %s.\n[network]\nfamily = %s\n",
                           type->model_type, type->family);
    g_auto(GStrv) words = g_strsplit(type->numbers, " ", -1);
    for (char **word = words; *word; word++) {
        if (!append_number(config, *word, ini, file_name, error)) {
            return NULL;
        }
    }
    if (!g_str_equal(type->family, "mpt") && !g_str_equal(type->family, "phi")) {
        bool tied = flag_of(config, "tie_word_embeddings", type->tied);
        g_string_append_printf(ini, "tied = %s\n", tied ? "yes" : "no");
    }
    append_code(type->model_type, ini);
    return type->rest(config, ini, file_name, error) ? g_strdup(ini->str) : NULL;
}

char *model_config_json_to_ini(const char *json, gsize length, const char *file_name,
                               char **ret_dropouts, GError **error) {
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) cause = NULL;
    if (!json_parser_load_from_data(parser, json, (gssize)length, &cause)) {
        const char *what = strstr(cause->message, "<data>:");
        refuse(file_name, error, "not JSON: %s", what ? what + strlen("<data>:") : cause->message);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        refuse(file_name, error, "not a config.json: it is no object");
        return NULL;
    }
    JsonObject *config = json_node_get_object(root);
    if (!types_are_sound(config, file_name, error)) {
        return NULL;
    }
    const char *model_type = text_of(config, "model_type", NULL);
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        if (model_type && g_str_equal(types[i].model_type, model_type)) {
            char *ini = to_ini(&types[i], config, file_name, error);
            *ret_dropouts = ini ? dropouts_of(&types[i], config) : NULL;
            return ini;
        }
        g_string_append_printf(known, "%s%s", i ? ", " : "", types[i].model_type);
    }
    if (!model_type) {
        refuse(file_name, error, "the field 'model_type' is missing; it is one of %s", known->str);
    } else {
        bool has_text = field(config, "text_config");
        refuse(file_name, error, "model_type '%s' is not known; %sit is one of %s", model_type,
               has_text ? "its text_config, saved as a file of its own, may be; " : "", known->str);
    }
    return NULL;
}
