/* The header's shape, or the config.json in it, as the text of a network. */
#include <string.h>

#include "models/config/json.h"
#include "plan/files/ini.h"
#include "tests/oracle/recording-private.h"

static const char *other_network;

void recorded_network_take(const char *path) {
    other_network = path;
}

static void append_real(GString *text, const char *key, double value) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(text, "%s = %s\n", key, plan_double_text(number, value));
}

static void append_positive(GString *text, JsonObject *shape, const char *recorded,
                            const char *key) {
    if (recorded_real(shape, recorded) > 0) {
        append_real(text, key, recorded_real(shape, recorded));
    }
}

static void append_int(GString *text, JsonObject *shape, const char *key) {
    g_string_append_printf(text, "%s = %" G_GINT64_FORMAT "\n", key, recorded_int(shape, key));
}

/* Those that are there and more than 0. */
static void append_ints(GString *text, JsonObject *shape, const char *const *keys) {
    for (; *keys; keys++) {
        if (is_recorded(shape, *keys) && recorded_int(shape, *keys) > 0) {
            append_int(text, shape, *keys);
        }
    }
}

static void append_words(GString *text, JsonObject *shape, const char *const *keys) {
    for (; *keys; keys++) {
        if (is_recorded(shape, *keys)) {
            g_string_append_printf(text, "%s = %s\n", *keys, recorded_text(shape, *keys));
        }
    }
}

static void append_yes_or_no(GString *text, const char *key, bool yes) {
    g_string_append_printf(text, "%s = %s\n", key, yes ? "yes" : "no");
}

/* ---- parts of a network ---------------------------------------------------------------------- */

static bool is_latent(JsonObject *shape) {
    return is_recorded(shape, "kv_lora_rank") && recorded_int(shape, "kv_lora_rank") > 0;
}

static bool has_experts(JsonObject *shape) {
    return is_recorded(shape, "experts") && recorded_int(shape, "experts") > 0;
}

static void append_sizes(GString *text, JsonObject *shape) {
    static const struct {
        const char *kind, *keys;
    } kinds[] = {{"mlp", "layers width seq"},
                 {"gpt", "layers width heads vocab seq ffn"},
                 {"mpt", "layers width heads vocab seq ffn"},
                 {"llama", "layers width heads kv_heads head_dim vocab seq ffn"},
                 {"starcoder2", "layers width heads kv_heads head_dim vocab seq ffn"},
                 {"opt", "layers width heads vocab seq ffn"},
                 {"neox", "layers width heads vocab seq ffn"},
                 {"phi", "layers width heads kv_heads vocab seq ffn"},
                 {"t5", "layers width heads head_dim vocab seq ffn"}};
    const char *keys = "";
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        keys = recorded_is(shape, "kind", kinds[i].kind) ? kinds[i].keys : keys;
    }
    bool all_experts = has_experts(shape) && !(is_recorded(shape, "dense_layers") &&
                                               recorded_int(shape, "dense_layers") > 0);
    g_auto(GStrv) list = g_strsplit(keys, " ", -1);
    for (char **key = list; *key; key++) {
        bool is_heads = g_str_equal(*key, "head_dim") || g_str_equal(*key, "kv_heads");
        bool is_left_out =
            (g_str_equal(*key, "ffn") && all_experts) || (is_heads && is_latent(shape));
        if (!is_left_out) {
            append_int(text, shape, *key);
        }
    }
}

/* Keys that only some families have. */
static void append_of_family(GString *text, JsonObject *shape) {
    static const char *const never_tied[] = {"mlp", "mpt", "phi", NULL};
    static const char *const with_gelu[] = {"gpt", "starcoder2", "neox", "phi", NULL};
    static const char *const with_bias[] = {"gpt", "starcoder2", "opt", "neox", NULL};
    static const char *const turning_parts[] = {"neox", "phi", NULL};
    const char *kind = recorded_text(shape, "kind");
    if (!g_strv_contains(never_tied, kind)) {
        append_yes_or_no(text, "tied", recorded_flag(shape, "tied"));
    }
    if (g_strv_contains(with_gelu, kind)) {
        const char *gelu = recorded_text(shape, "gelu");
        g_string_append_printf(text, "gelu = %s\n", g_str_equal(gelu, "none") ? "erf" : gelu);
    }
    if (g_strv_contains(turning_parts, kind)) {
        append_real(text, "rotary_share", recorded_real(shape, "rotary_share"));
    }
    if (g_strv_contains(with_bias, kind)) {
        bool no_bias = json_object_has_member(shape, "bias") && !recorded_flag(shape, "bias");
        append_yes_or_no(text, "bias", !no_bias);
    }
    if (!g_str_equal(kind, "mlp")) {
        bool kernel = recorded_is(shape, "attention", "flash");
        g_string_append_printf(text, "attention = %s\n", kernel ? "kernel" : "math");
    }
    if (g_str_equal(kind, "neox")) {
        g_string_append_printf(text, "block = %s\n", recorded_text(shape, "block"));
    }
    if (g_str_equal(kind, "t5")) {
        append_yes_or_no(text, "gated", recorded_flag(shape, "gated"));
        append_ints(text, shape, (const char *const[]){"target_seq", NULL});
    }
}

static void append_experts(GString *text, JsonObject *shape) {
    static const char *const sizes[] = {
        "experts",      "experts_per_token", "expert_ffn",       "shared_ffn",
        "dense_layers", "expert_groups",     "groups_per_token", NULL};
    if (!has_experts(shape)) {
        return;
    }
    append_ints(text, shape, sizes);
    append_yes_or_no(text, "route_norm", recorded_flag(shape, "route_norm"));
    if (is_recorded(shape, "score")) {
        g_string_append_printf(text, "score = %s\n", recorded_text(shape, "score"));
        append_yes_or_no(text, "route_bias", recorded_flag(shape, "route_bias"));
        if (recorded_real(shape, "route_scale") != 1) {
            append_real(text, "route_scale", recorded_real(shape, "route_scale"));
        }
    }
    if (is_recorded(shape, "routing")) {
        g_string_append_printf(text, "routing = %s\n", recorded_text(shape, "routing"));
    }
}

static void append_kind_of_loss(GString *text, JsonObject *shape) {
    static const char *const kinds[] = {"loss_in_place", "logits_shifted"};
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (recorded_yes(shape, kinds[i])) {
            g_string_append_printf(text, "%s = yes\n", kinds[i]);
        }
    }
}

static void append_cache(GString *text, JsonObject *shape) {
    if (recorded_yes(shape, "use_cache")) {
        bool copied = recorded_yes(shape, "cache_copied");
        g_string_append_printf(text, "use_cache = %s\n", copied ? "copied" : "yes");
    }
}

static char *shape_text(JsonObject *shape) {
    static const char *const latent[] = {"q_lora_rank",      "kv_lora_rank", "qk_nope_head_dim",
                                         "qk_rope_head_dim", "v_head_dim",   NULL};
    static const char *const of_loss[] = {"loss", "loss_at", "logits_held", NULL};
    static const char *const of_llama[] = {"rope",    "qkv",  "kv",          "qk_norm", "norm_at",
                                           "gate_up", "gate", "norm_weight", NULL};
    static const char *const numbers[] = {"embed_scale",  "attention_scale", "residual_scale",
                                          "logits_scale", "global_every",    "local_rope_base",
                                          "window",       "dropout"};
    GString *text = g_string_new("[network]\n");
    g_string_append_printf(text, "family = %s\n", recorded_text(shape, "kind"));
    append_sizes(text, shape);
    append_of_family(text, shape);
    if (recorded_yes(shape, "qkv_bias")) {
        append_yes_or_no(text, "qkv_bias", true);
    }
    if (is_latent(shape)) {
        append_ints(text, shape, latent);
    }
    append_experts(text, shape);
    if (!recorded_is(shape, "kind", "mlp")) {
        append_words(text, shape, of_loss);
    }
    append_kind_of_loss(text, shape);
    append_cache(text, shape);
    if (recorded_is(shape, "kind", "llama")) {
        append_words(text, shape, of_llama);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        append_positive(text, shape, numbers[i], numbers[i]);
    }
    append_positive(text, shape, "unturned_every", "no_rope_every"); /* the recorder's word */
    return g_string_free(text, FALSE);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Of transformers' own modules: what is made of their config.json. */
static char *config_text(const Recording *recording, GError **error) {
    JsonNode *config = json_object_get_member(recording->header, "config");
    g_autofree char *json = json_to_string(config, FALSE);
    g_auto(ModelConfigLeftOut) left_out = {NULL};
    g_autofree char *text =
        model_config_json_to_ini(json, strlen(json), recording->file_name, &left_out, error);
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    if (!text) {
        return NULL;
    }
    g_autoptr(GString) all = g_string_new(text);
    if (is_recorded(shape, "logits_held")) {
        g_string_append_printf(all, "logits_held = %s\n", recorded_text(shape, "logits_held"));
    }
    append_kind_of_loss(all, shape);
    append_cache(all, shape);
    bool is_older = recorded_yes(shape, "logits_shifted");
    if (is_older && !recorded_is(shape, "loss", "fp32")) {
        g_string_append_printf(all, "loss = %s\n", recorded_text(shape, "loss"));
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

/* A file that was traced, in a folder beside those of recordings. */
static char *traced_text(const Recording *recording, GError **error) {
    g_autofree char *folder = g_path_get_dirname(recording->file_name);
    g_autofree char *path =
        g_build_filename(folder, "..", "traced", recorded_text(recording->header, "network"), NULL);
    char *text = NULL;
    return g_file_get_contents(other_network ? other_network : path, &text, NULL, error) ? text
                                                                                         : NULL;
}

char *recorded_network_text(const Recording *recording, GError **error) {
    if (is_recorded(recording->header, "network") || other_network) {
        return traced_text(recording, error);
    }
    return is_recorded(recording->header, "config")
               ? config_text(recording, error)
               : shape_text(json_object_get_object_member(recording->header, "shape"));
}
