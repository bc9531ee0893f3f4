#include "models/config/fields.h"

#include <string.h>

#include "plan/files/ini.h"

static void set_error(const ModelConfig *c, const char *format, va_list args, const char *remedy) {
    g_autofree char *message = g_strdup_vprintf(format, args);
    g_set_error(c->error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s: %s%s", c->file_name, message, remedy);
}

bool model_config_refuse(const ModelConfig *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set_error(c, format, args, "");
    va_end(args);
    return false;
}

bool model_config_not_known(const ModelConfig *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set_error(c, format, args,
              "; a network that has it can be traced in PyTorch (docs/own-network.md)");
    va_end(args);
    return false;
}

/* ---- fields --------------------------------------------------------------------------------- */

static GType type_of(JsonNode *node) {
    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
}

JsonNode *model_config_field(const ModelConfig *c, const char *name) {
    JsonNode *node = json_object_get_member(c->fields, name);
    return node && !JSON_NODE_HOLDS_NULL(node) ? node : NULL;
}

const char *model_config_text(const ModelConfig *c, const char *name, const char *otherwise) {
    JsonNode *node = model_config_field(c, name);
    return type_of(node) == G_TYPE_STRING ? json_node_get_string(node) : otherwise;
}

bool model_config_flag(const ModelConfig *c, const char *name, bool otherwise) {
    JsonNode *node = model_config_field(c, name);
    return type_of(node) == G_TYPE_BOOLEAN ? json_node_get_boolean(node) : otherwise;
}

bool model_config_number(const ModelConfig *c, const char *name, double otherwise, double *ret) {
    JsonNode *node = model_config_field(c, name);
    bool is_number = type_of(node) == G_TYPE_INT64 || type_of(node) == G_TYPE_DOUBLE;
    *ret = is_number ? json_node_get_double(node) : otherwise;
    return !node || is_number || model_config_refuse(c, "the field '%s' must be a number", name);
}

bool model_config_is_whole(JsonNode *node) {
    return type_of(node) == G_TYPE_INT64;
}

bool model_config_is(const ModelConfig *c, const char *name, gint64 number) {
    JsonNode *node = model_config_field(c, name);
    return !node || (model_config_is_whole(node) && json_node_get_int(node) == number);
}

static bool count_from(const ModelConfig *c, const char *name, gint64 least, gint64 otherwise,
                       gint64 *ret) {
    JsonNode *node = model_config_field(c, name);
    *ret = model_config_is_whole(node) ? json_node_get_int(node) : otherwise;
    return (*ret >= least && (!node || model_config_is_whole(node))) ||
           model_config_refuse(c, "the field '%s' must be a whole number from %" G_GINT64_FORMAT,
                               name, least);
}

bool model_config_count(const ModelConfig *c, const char *name, gint64 otherwise, gint64 *ret) {
    return count_from(c, name, 1, otherwise, ret);
}

bool model_config_count_or_none(const ModelConfig *c, const char *name, gint64 otherwise,
                                gint64 *ret) {
    return count_from(c, name, 0, otherwise, ret);
}

bool model_config_within(const ModelConfig *c, const char *name, ModelConfig *ret) {
    JsonNode *node = model_config_field(c, name);
    *ret = *c;
    bool is_object = node && JSON_NODE_HOLDS_OBJECT(node);
    if (is_object) {
        ret->fields = json_node_get_object(node);
    }
    return is_object;
}

JsonArray *model_config_array(const ModelConfig *c, const char *name) {
    JsonNode *node = model_config_field(c, name);
    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

/* ---- lines ---------------------------------------------------------------------------------- */

void model_config_append(const ModelConfig *c, const char *key, const char *value,
                         const char *from) {
    g_string_append_printf(c->ini, "%s = %s # %s\n", key, value, from);
}

void model_config_append_whole(const ModelConfig *c, const char *key, gint64 value,
                               const char *from) {
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, value);
    model_config_append(c, key, text, from);
}

void model_config_append_double(const ModelConfig *c, const char *key, double value,
                                const char *from) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    model_config_append(c, key, plan_double_text(number, value), from);
}

bool model_config_append_number(const ModelConfig *c, const char *word) {
    g_auto(GStrv) pair = g_strsplit(word, "=", 2);
    char *otherwise = strchr(pair[1], ':');
    if (otherwise) {
        *otherwise++ = 0;
    }
    gsize end = strlen(pair[1]) - 1;
    bool optional = pair[1][end] == '?';
    if (optional) {
        pair[1][end] = 0;
    }
    JsonNode *node = model_config_field(c, pair[1]);
    if (!node) {
        bool is_null = json_object_has_member(c->fields, pair[1]);
        if (otherwise && !(optional && is_null)) {
            model_config_append(c, pair[0], otherwise, pair[1]);
        }
        return optional || otherwise ||
               model_config_refuse(c,
                                   "the field '%s' is missing; a config.json of model_type '%s' "
                                   "has it",
                                   pair[1], model_config_text(c, "model_type", ""));
    }
    if (model_config_is_whole(node)) {
        model_config_append_whole(c, pair[0], json_node_get_int(node), pair[1]);
        return true;
    }
    if (type_of(node) == G_TYPE_DOUBLE) {
        model_config_append_double(c, pair[0], json_node_get_double(node), pair[1]);
        return true;
    }
    return model_config_refuse(c, "the field '%s' must be a number", pair[1]);
}

/* ---- what families share -------------------------------------------------------------------- */

bool model_config_gelu(const ModelConfig *c, const char *name, const char *otherwise) {
    const char *act = model_config_text(c, name, otherwise);
    static const char *const words[][2] = {
        {"gelu_new", "ops"}, {"gelu_pytorch_tanh", "tanh"}, {"gelu", "erf"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_equal(act, words[i][0])) {
            g_string_append_printf(c->ini, "gelu = %s\n", words[i][1]);
            return true;
        }
    }
    return model_config_not_known(
        c,
        "%s '%s' is not known; gelu_new, gelu_pytorch_tanh and gelu are (gelu_fast computes what "
        "gelu_new does, by a kernel more: set that to plan nearly the same)",
        name, act);
}

/* Mistral's window is 4096 unless its file says otherwise, and so are Gemma 3's and OLMo 3's. */
static bool read_window(const ModelConfig *c, gint64 *ret_window) {
    static const char *const windowed[] = {"mistral", "gemma2",  "gemma3_text", "olmo3",
                                           "exaone4", "cohere2", NULL};
    const char *model_type = model_config_text(c, "model_type", "");
    bool is_asked = g_str_has_prefix(model_type, "qwen") || g_str_equal(model_type, "smollm3");
    JsonNode *node = model_config_field(c, "sliding_window");
    *ret_window = 0;
    if (!model_config_flag(c, "use_sliding_window", !is_asked)) {
        return true;
    }
    if (node && !model_config_is_whole(node)) {
        return model_config_refuse(c, "the field 'sliding_window' must be a number");
    }
    bool is_unsaid = g_strv_contains(windowed, model_type) &&
                     !json_object_has_member(c->fields, "sliding_window");
    *ret_window = node ? json_node_get_int(node) : is_unsaid ? 4096 : 0;
    return true;
}

enum {
    GEMMA3_POSITIONS = 131072 /* where its file does not say how many */
};

/* Of Qwen's the last blocks slide, and StarCoder 2 is of a family without windows: their sequences
 * end where the window does, for within it attention is causal and no more. */
bool model_config_seq(const ModelConfig *c) {
    static const char *const planned[] = {"mistral",   "mixtral",     "phi3",  "gemma2",
                                          "ministral", "gemma3_text", "olmo3", "exaone4",
                                          "gpt_oss",   "cohere2",     NULL};
    JsonNode *node = model_config_field(c, "max_position_embeddings");
    gint64 window;
    const char *model_type = model_config_text(c, "model_type", "");
    bool is_gemma3 = g_str_equal(model_type, "gemma3_text");
    if (node ? !model_config_is_whole(node) : !is_gemma3) {
        return model_config_refuse(
            c, node ? "the field '%s' must be a number" : "the field '%s' is missing",
            "max_position_embeddings");
    }
    if (!read_window(c, &window)) {
        return false;
    }
    gint64 seq = node ? json_node_get_int(node) : GEMMA3_POSITIONS;
    bool is_planned = g_strv_contains(planned, model_type);
    if (window && is_planned) {
        model_config_append_whole(c, "window", window, "sliding_window");
    }
    bool ends = window && !is_planned && window < seq;
    model_config_append_whole(c, "seq", ends ? window : seq,
                              ends ? "sliding_window" : "max_position_embeddings");
    return true;
}

/* How rotary angles are stretched for sequences longer than those of the first training. It changes
 * neither bytes nor time, but what a run learns: the word is kept for it. "type" is what
 * transformers called "rope_type" before 4.43. */
bool model_config_rope_scaling(const ModelConfig *c, const char *name) {
    ModelConfig scaling;
    if (!model_config_field(c, name)) {
        return true;
    }
    if (!model_config_within(c, name, &scaling)) {
        return model_config_refuse(c, "the field '%s' must be an object or null", name);
    }
    const char *kind =
        model_config_text(&scaling, "rope_type", model_config_text(&scaling, "type", "default"));
    if (!g_str_equal(kind, "default")) {
        model_config_append(c, "rope_scaling", kind, name);
    }
    return true;
}

/* Files written by transformers 5 hold base and scaling one level down. */
bool model_config_rope(const ModelConfig *c) {
    ModelConfig nested;
    bool is_nested =
        model_config_within(c, "rope_parameters", &nested) && !model_config_field(c, "rope_theta");
    const char *model_type = model_config_text(c, "model_type", "");
    const char *base = g_str_equal(model_type, "mixtral") ? "rope_base=rope_theta:1000000"
                       : g_str_equal(model_type, "cohere") || g_str_equal(model_type, "ernie4_5")
                           ? "rope_base=rope_theta:500000"
                       : g_str_equal(model_type, "helium")  ? "rope_base=rope_theta:100000"
                       : g_str_equal(model_type, "smollm3") ? "rope_base=rope_theta:2000000"
                                                            : "rope_base=rope_theta:10000";
    return model_config_append_number(is_nested ? &nested : c, base) &&
           model_config_rope_scaling(c, is_nested ? "rope_parameters" : "rope_scaling");
}
