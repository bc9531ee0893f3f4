/* models/config/json.c - which field of a config.json is which key of a network.
 *
 * Field names and defaults: huggingface/transformers, the configuration_*.py of each model_type.
 */
#include "models/config/json.h"

#include <string.h>

#include "models/config/families.h"
#include "models/config/python-numbers.h"
#include "plan/files/json-depth.h"

typedef struct {
    const char *model_type, *family;
    const char *numbers;  /* as model_config_append_number() takes them */
    const char *dropouts; /* "field:P": what it is when it does not stand */
    bool tied;            /* when tie_word_embeddings does not stand */
    bool (*rest)(const ModelConfig *c);
} Type;

/* What is read as true or false, or as a word, in the file or in an object within. */
static const char *const flags[] = {"add_cross_attention",
                                    "reorder_and_upcast_attn",
                                    "use_sliding_window",
                                    "attention_bias",
                                    "attention_out_bias",
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
                                    "rope_interleave",
                                    NULL};
static const char *const texts[] = {
    "model_type",        "activation_function", "hidden_act", "hidden_activation",
    "feed_forward_proj", "attn_type",           "norm_type",  "scoring_func",
    "topk_method",       "rope_type",           "type",       NULL};

static const char *const objects[] = {"attn_config", "rope_scaling", "rope_parameters", NULL};

static bool types_are_sound(const ModelConfig *c) {
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;
    json_object_iter_init(&iter, c->fields);
    while (json_object_iter_next(&iter, &name, &node)) {
        if (JSON_NODE_HOLDS_NULL(node)) {
            continue;
        }
        ModelConfig within;
        GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
        if (g_strv_contains(flags, name) && type != G_TYPE_BOOLEAN) {
            return model_config_refuse(c, "the field '%s' must be true or false", name);
        }
        if (g_strv_contains(texts, name) && type != G_TYPE_STRING) {
            return model_config_refuse(c, "the field '%s' must be a text", name);
        }
        if (g_strv_contains(objects, name) && model_config_within(c, name, &within) &&
            !types_are_sound(&within)) {
            return false;
        }
    }
    return true;
}

/* Of those that were recorded transformers' own modules are planned. Where others are, the loss is
 * at least theirs, of logits in fp32; T5's is of logits as they are, and an MPT is llm-foundry's.
 */
static void append_code(const ModelConfig *c, const char *model_type) {
    static const char *const recorded[] = {
        "llama",   "mistral",   "qwen2",   "qwen3",       "mixtral", "qwen3_moe", "granite",
        "smollm3", "phi3",      "gemma",   "gemma3_text", "exaone4", "arcee",     "olmoe",
        "gemma2",  "ministral", "olmo2",   "olmo3",       "gpt_oss", "olmo",      "glm",
        "glm4",    "cohere",    "cohere2", "ernie4_5",    "helium",  NULL};
    static const char *const narrow[] = {"t5", "mt5", "mpt", NULL};
    if (g_strv_contains(recorded, model_type)) {
        g_string_append(c->ini, "code = transformers\n");
    } else if (!g_strv_contains(narrow, model_type)) {
        g_string_append(c->ini, "loss = fp32\n");
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Where num_key_value_heads is null there are as many as heads, and where it does not stand as many
 * as the class has then (_OF), or as heads again. */
#define LLAMA_NUMBERS_OF(kv_heads)                                                                 \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "                        \
    "kv_heads=num_key_value_heads?" kv_heads " ffn=intermediate_size vocab=vocab_size "
#define LLAMA_NUMBERS LLAMA_NUMBERS_OF("") "head_dim=head_dim?"

/* A file for text and pictures has of its text_config what differs from the class alone. */
#define GEMMA3_NUMBERS                                                                             \
    "layers=num_hidden_layers:26 width=hidden_size heads=num_attention_heads:8 "                   \
    "kv_heads=num_key_value_heads:4 head_dim=head_dim:256 ffn=intermediate_size:9216 "             \
    "vocab=vocab_size:262208"

#define GEMMA2_NUMBERS                                                                             \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "                        \
    "kv_heads=num_key_value_heads?:4 head_dim=head_dim:256 ffn=intermediate_size "                 \
    "vocab=vocab_size"

#define EXPERT_NUMBERS_OF(kv_heads)                                                                \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads "                        \
    "kv_heads=num_key_value_heads?" kv_heads " head_dim=head_dim? vocab=vocab_size "               \
    "experts_per_token=num_experts_per_tok "

#define GPT_OSS_NUMBERS                                                                            \
    "layers=num_hidden_layers:36 width=hidden_size:2880 heads=num_attention_heads:64 "             \
    "kv_heads=num_key_value_heads:8 head_dim=head_dim:64 vocab=vocab_size:201088 "                 \
    "experts=num_local_experts:128 experts_per_token=num_experts_per_tok:4 "                       \
    "expert_ffn=intermediate_size:2880"

#define DECODER_NUMBERS                                                                            \
    "layers=num_hidden_layers width=hidden_size heads=num_attention_heads vocab=vocab_size "

#define DEEPSEEK_NUMBERS                                                                           \
    DECODER_NUMBERS                                                                                \
    "experts=n_routed_experts experts_per_token=num_experts_per_tok "                              \
    "expert_ffn=moe_intermediate_size kv_lora_rank=kv_lora_rank:512 "                              \
    "qk_nope_head_dim=qk_nope_head_dim:128 qk_rope_head_dim=qk_rope_head_dim:64 "                  \
    "v_head_dim=v_head_dim:128 q_lora_rank=q_lora_rank?"

#define T5_NUMBERS                                                                                 \
    "layers=num_layers width=d_model heads=num_heads head_dim=d_kv ffn=d_ff vocab=vocab_size "     \
    "seq=n_positions:512"

static const Type types[] = {
    {"gpt2", "gpt",
     "layers=n_layer width=n_embd heads=n_head ffn=n_inner? vocab=vocab_size seq=n_positions",
     "resid_pdrop:0.1 embd_pdrop:0.1 attn_pdrop:0.1", true, model_config_rest_of_gpt2},
    {"llama", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_llama},
    {"mistral", "llama", LLAMA_NUMBERS_OF(":8") "head_dim=head_dim?", "attention_dropout:0", false,
     model_config_rest_of_llama},
    {"ministral", "llama", LLAMA_NUMBERS_OF(":8") "head_dim=head_dim?", "attention_dropout:0",
     false, model_config_rest_of_ministral},
    {"qwen2", "llama", LLAMA_NUMBERS_OF(":32") "head_dim=head_dim?", "attention_dropout:0", false,
     model_config_rest_of_llama},
    {"qwen3", "llama", LLAMA_NUMBERS_OF(":32") "head_dim=head_dim:128", "attention_dropout:0",
     false, model_config_rest_of_llama},
    {"seed_oss", "llama", LLAMA_NUMBERS_OF(":8") "head_dim=head_dim:128",
     "residual_dropout:0.1 attention_dropout:0.1", false, model_config_rest_of_llama},
    {"mixtral", "llama",
     EXPERT_NUMBERS_OF(":8") "experts=num_local_experts expert_ffn=intermediate_size",
     "attention_dropout:0", false, model_config_rest_of_mixtral},
    {"granitemoe", "llama",
     EXPERT_NUMBERS_OF("") "experts=num_local_experts expert_ffn=intermediate_size",
     "attention_dropout:0", false, model_config_rest_of_granitemoe},
    {"olmoe", "llama", EXPERT_NUMBERS_OF("") "experts=num_experts expert_ffn=intermediate_size",
     "attention_dropout:0", false, model_config_rest_of_olmoe},
    {"gpt_oss", "llama", GPT_OSS_NUMBERS, "attention_dropout:0", false,
     model_config_rest_of_gpt_oss},
    {"qwen3_moe", "llama", EXPERT_NUMBERS_OF(":4") "expert_ffn=moe_intermediate_size",
     "attention_dropout:0", false, model_config_rest_of_qwen3_moe},
    {"deepseek_v2", "llama", DEEPSEEK_NUMBERS, "attention_dropout:0", false,
     model_config_rest_of_deepseek_v2},
    {"deepseek_v3", "llama", DEEPSEEK_NUMBERS, "attention_dropout:0", false,
     model_config_rest_of_deepseek_v3},
    {"kimi_k2", "llama", DEEPSEEK_NUMBERS, "attention_dropout:0", false,
     model_config_rest_of_deepseek_v3},
    {"olmo", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_olmo},
    {"olmo2", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_llama},
    {"olmo3", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_olmo3},
    {"exaone4", "llama", LLAMA_NUMBERS_OF(":32") "head_dim=head_dim?", "attention_dropout:0", false,
     model_config_rest_of_exaone4},
    {"cohere", "llama", LLAMA_NUMBERS, "attention_dropout:0", true, model_config_rest_of_cohere},
    {"cohere2", "llama", LLAMA_NUMBERS, "attention_dropout:0", true, model_config_rest_of_cohere},
    {"ernie4_5", "llama", LLAMA_NUMBERS_OF(":2") "head_dim=head_dim?:128", "attention_dropout:0",
     true, model_config_rest_of_ernie},
    {"helium", "llama", LLAMA_NUMBERS_OF(":20") "head_dim=head_dim:128", "attention_dropout:0",
     false, model_config_rest_of_helium},
    {"glm", "llama", LLAMA_NUMBERS_OF(":2") "head_dim=head_dim:128", "attention_dropout:0", false,
     model_config_rest_of_glm},
    {"glm4", "llama", LLAMA_NUMBERS_OF(":2") "head_dim=head_dim:128", "attention_dropout:0", false,
     model_config_rest_of_glm},
    {"arcee", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_arcee},
    {"gemma", "llama", LLAMA_NUMBERS_OF(":16") "head_dim=head_dim:256", "attention_dropout:0", true,
     model_config_rest_of_gemma},
    {"gemma2", "llama", GEMMA2_NUMBERS, "attention_dropout:0", true, model_config_rest_of_gemma2},
    {"gemma3_text", "llama", GEMMA3_NUMBERS, "attention_dropout:0", true,
     model_config_rest_of_gemma3_text},
    {"granite", "llama", LLAMA_NUMBERS, "attention_dropout:0", false, model_config_rest_of_granite},
    {"smollm3", "llama", LLAMA_NUMBERS_OF(":4") "head_dim=head_dim?", "attention_dropout:0", true,
     model_config_rest_of_smollm3},
    {"phi3", "llama", LLAMA_NUMBERS, "resid_pdrop:0 embd_pdrop:0 attention_dropout:0", false,
     model_config_rest_of_phi3},
    {"t5", "t5", T5_NUMBERS, "dropout_rate:0.1", true, model_config_rest_of_t5},
    {"mt5", "t5", T5_NUMBERS, "dropout_rate:0.1", true, model_config_rest_of_t5},
    {"mpt", "mpt", "layers=n_layers width=d_model heads=n_heads vocab=vocab_size seq=max_seq_len",
     "resid_pdrop:0 emb_pdrop:0", true, model_config_rest_of_mpt},
    {"gpt_neox", "neox", DECODER_NUMBERS "ffn=intermediate_size seq=max_position_embeddings",
     "hidden_dropout:0 attention_dropout:0", false, model_config_rest_of_neox},
    {"phi", "phi",
     DECODER_NUMBERS "kv_heads=num_key_value_heads? ffn=intermediate_size "
                     "seq=max_position_embeddings",
     "resid_pdrop:0 embd_pdrop:0 attention_dropout:0", false, model_config_rest_of_phi},
    {"starcoder2", "starcoder2",
     DECODER_NUMBERS "kv_heads=num_key_value_heads:2 ffn=intermediate_size head_dim=head_dim?",
     "residual_dropout:0 embedding_dropout:0 attention_dropout:0", true,
     model_config_rest_of_starcoder2},
    {"opt", "opt", DECODER_NUMBERS "ffn=ffn_dim seq=max_position_embeddings",
     "dropout:0.1 attention_dropout:0", true, model_config_rest_of_opt},
};

/* Widely trained ones, and what their modeling files in transformers do that is not planned. */
static const struct {
    const char *model_type, *does;
} unplanned[] = {
    {"llama4", "has attention in chunks, norms without weights, and scales experts' input"},
    {"llama4_text", "has attention in chunks, norms without weights, and scales experts' input"},
    {"stablelm",
     "has a LayerNorm before a hidden layer with a gate, and rotates a part of each head"},
    {"nemotron", "has a LayerNorm of one more than its weights, and a squared ReLU"},
    {"apertus", "has the activation xIELU"},
    {"hunyuan_v1_dense", "norms queries and keys behind their rotation"},
    {"ministral3", "multiplies queries by how far behind the first training's length they stand"},
    {"glm4_moe", "rotates a part of each head, beside experts scored by sigmoids"},
    {"minimax_m2", "rotates a part of each head, beside experts scored by sigmoids"},
    {"qwen2_moe", "has a gate of its own for the expert that every token goes to"},
    {"phimoe", "has a LayerNorm before experts, which a sparse mixer chooses"},
    {"ernie4_5_moe", "rotates pairs that lie side by side, beside experts chosen by a bias"},
    {"vaultgemma", "caps attention's scores by tanh, without norms behind its layers"},
    {"gemma3n_text", "has several streams, and embeddings for each block"},
    {"falcon", "has one layer for q, k and v, whose rows hold them by groups of heads"},
    {"bloom", "adds positions to its scores in the product that makes them, behind a norm of the "
              "embeddings"},
    {"gptj", "rotates pairs that lie side by side, in a part of each head"},
    {"codegen", "rotates pairs that lie side by side, in a part of each head"},
    {"gpt_neo", "has scores in memory that are not scaled, and windows in every other block"},
    {"gpt_bigcode", "has one head of keys and values, by the layer that makes q"},
    {"dbrx", "clamps q, k and v, and has a LayerNorm without bias before experts"},
    {"persimmon", "norms each head of q and k by a LayerNorm, and has a squared ReLU"},
    {"nanochat", "has norms without weights, and a squared ReLU"},
    {"lfm2", "has short convolutions in most blocks"},
    {"granitemoehybrid", "has a state-space layer (Mamba 2) in most blocks"},
    {"bamba", "has a state-space layer (Mamba 2) in most blocks"},
    {"nemotron_h", "has a state-space layer (Mamba 2) in most blocks"},
    {"falcon_h1", "has a state-space layer (Mamba 2) beside attention"},
    {"jamba", "has a state-space layer (Mamba) in most blocks"},
    {"qwen3_next", "has linear attention (a gated delta rule) in most blocks"},
    {"qwen3_5_text", "has linear attention (a gated delta rule) in most blocks"},
};

/* ": it ..., which is not planned", or nothing. */
static char *why_unplanned(const char *model_type) {
    for (unsigned i = 0; i < G_N_ELEMENTS(unplanned); i++) {
        if (g_str_equal(unplanned[i].model_type, model_type)) {
            return g_strdup_printf(": it %s, which is not planned", unplanned[i].does);
        }
    }
    return g_strdup("");
}

/* "resid_pdrop 0.1, attn_pdrop 0.1": those above 0; NULL: none. */
static bool read_dropouts(const Type *type, const ModelConfig *c, char **ret) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(type->dropouts, " ", -1);
    for (char **word = words; *word; word++) {
        g_auto(GStrv) pair = g_strsplit(*word, ":", 2);
        double share;
        if (!model_config_number(c, pair[0], g_ascii_strtod(pair[1], NULL), &share)) {
            return false;
        }
        if (share > 0) {
            g_string_append_printf(text, "%s%s %g", text->len ? ", " : "", pair[0], share);
        }
    }
    *ret = text->len ? g_strdup(text->str) : NULL;
    return true;
}

/* Of weights that a checkpoint has in fewer bits; training makes plain ones of them. */
static char *quantization_of(const ModelConfig *c) {
    ModelConfig within;
    return model_config_within(c, "quantization_config", &within)
               ? g_strdup(model_config_text(&within, "quant_method", "of an unnamed kind"))
               : NULL;
}

void model_config_left_out_clear(ModelConfigLeftOut *left_out) {
    g_free(left_out->dropouts);
    g_free(left_out->quantized);
}

static bool append_all(const ModelConfig *c, const Type *type) {
    g_string_append_printf(c->ini,
                           "# From a config.json of model_type %s.\n[network]\nfamily = %s\n",
                           type->model_type, type->family);
    g_auto(GStrv) words = g_strsplit(type->numbers, " ", -1);
    for (char **word = words; *word; word++) {
        if (!model_config_append_number(c, *word)) {
            return false;
        }
    }
    if (!g_str_equal(type->family, "mpt") && !g_str_equal(type->family, "phi")) {
        bool tied = model_config_flag(c, "tie_word_embeddings", type->tied);
        g_string_append_printf(c->ini, "tied = %s\n", tied ? "yes" : "no");
    }
    append_code(c, type->model_type);
    return type->rest(c);
}

static const Type *type_of(const ModelConfig *c) {
    const char *model_type = model_config_text(c, "model_type", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        if (g_str_equal(types[i].model_type, model_type)) {
            return &types[i];
        }
    }
    return NULL;
}

/* "; its text_config is (jq .text_config ...)" of a file for text and pictures, whose text may be
 * planned. */
static char *known_within(const ModelConfig *c) {
    ModelConfig text;
    const Type *type = model_config_within(c, "text_config", &text) ? type_of(&text) : NULL;
    return type ? g_strdup_printf("; the %s of its text_config is, as a file of its own: "
                                  "jq .text_config %s > text.json",
                                  type->model_type, c->file_name)
                : g_strdup("");
}

static bool is_of_deepspeed(const ModelConfig *c) {
    return json_object_has_member(c->fields, "zero_optimization") ||
           json_object_has_member(c->fields, "train_batch_size") ||
           json_object_has_member(c->fields, "train_micro_batch_size_per_gpu");
}

/* NULL with an error that lists those that are known. */
static const Type *find_type(const ModelConfig *c) {
    const char *model_type = model_config_text(c, "model_type", NULL);
    const Type *type = type_of(c);
    if (type) {
        return type;
    }
    g_autoptr(GString) known = g_string_new(types[0].model_type);
    for (unsigned i = 1; i < G_N_ELEMENTS(types); i++) {
        g_string_append_printf(known, ", %s", types[i].model_type);
    }
    if (!model_type && json_object_has_member(c->fields, "model_type")) {
        model_config_refuse(c, "the field 'model_type' must be a text; it is one of %s",
                            known->str);
        return NULL;
    }
    if (!model_type && is_of_deepspeed(c)) {
        model_config_refuse(c, "these are DeepSpeed's settings; name the network (its "
                               "config.json), and give them as options: docs/hugging-face.md "
                               "translates them");
        return NULL;
    }
    if (!model_type) {
        model_config_refuse(c, "the field 'model_type' is missing; it is one of %s", known->str);
        return NULL;
    }
    g_autofree char *within = known_within(c);
    g_autofree char *why = why_unplanned(model_type);
    model_config_refuse(
        c,
        "model_type '%s' is not known%s%s; any other network can be traced in PyTorch "
        "(docs/own-network.md); known are %s",
        model_type, why, within, known->str);
    return NULL;
}

char *model_config_json_to_ini(const char *json, gsize length, const char *file_name,
                               ModelConfigLeftOut *ret, GError **error) {
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GString) ini = g_string_new(NULL);
    g_autoptr(GError) cause = NULL;
    ModelConfig c = {.file_name = file_name, .ini = ini, .error = error};
    if (plan_json_is_too_deep(json, length)) {
        model_config_refuse(&c, "not a config.json: more than %d brackets stand in one another",
                            PLAN_JSON_DEEPEST);
        return NULL;
    }
    gsize read_length;
    g_autofree char *read = model_config_python_numbers(json, length, &read_length);
    if (!json_parser_load_from_data(parser, read, (gssize)read_length, &cause)) {
        const char *what = strstr(cause->message, "<data>:");
        if (!g_utf8_validate_len(json, length, NULL)) {
            model_config_refuse(&c, "not JSON: not text in UTF-8; save it as such");
            return NULL;
        }
        g_autofree char *trimmed = g_strchomp(g_strndup(json, length));
        if (!g_str_has_suffix(trimmed, "}")) {
            model_config_refuse(&c, "not JSON: it is cut short, for it does not end with }");
            return NULL;
        }
        model_config_refuse(&c, "not JSON: %s", what ? what + strlen("<data>:") : cause->message);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        model_config_refuse(&c, "not a config.json: it is no object");
        return NULL;
    }
    c.fields = json_node_get_object(root);
    const Type *type = find_type(&c);
    bool is_read = type && types_are_sound(&c) && append_all(&c, type) &&
                   read_dropouts(type, &c, &ret->dropouts);
    if (is_read) {
        ret->quantized = quantization_of(&c);
        ret->longer =
            g_regex_match_simple("^seq = \\d+ # sliding_window$", ini->str, G_REGEX_MULTILINE, 0);
    }
    return is_read ? g_strdup(ini->str) : NULL;
}
