#include "tests/oracle/recording.h"

#include <stdio.h>
#include <string.h>

#include "models/config/json.h"
#include "models/network.h"
#include "plan/build/build.h"
#include "plan/files/ini.h"

static const char *other_network;

static const double ONE_BYTE_MIB = 1.0 / (1 << 20);

void recording_free(Recording *recording) {
    if (recording) {
        g_free(recording->file_name);
        g_clear_pointer(&recording->header, json_object_unref);
        g_ptr_array_unref(recording->summaries);
        g_ptr_array_unref(recording->events);
        g_ptr_array_unref(recording->construction);
        g_free(recording);
    }
}

static void take_line(Recording *recording, JsonObject *line) {
    if (json_object_has_member(line, "header")) {
        recording->header = json_object_ref(json_object_get_object_member(line, "header"));
    } else if (json_object_has_member(line, "summary")) {
        g_ptr_array_add(recording->summaries,
                        json_object_ref(json_object_get_object_member(line, "summary")));
    } else if (json_object_has_member(line, "construction")) {
        g_ptr_array_add(recording->construction, json_object_ref(line));
    } else if (json_object_has_member(line, "step")) {
        gint64 step = json_object_get_int_member(line, "step");
        while ((gint64)recording->events->len <= step) {
            g_ptr_array_add(recording->events,
                            g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref));
        }
        g_ptr_array_add(recording->events->pdata[step], json_object_ref(line));
    }
}

Recording *recording_read(const char *path, GError **error) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error)) {
        return NULL;
    }
    g_autoptr(Recording) recording = g_new0(Recording, 1);
    recording->file_name = g_strdup(path);
    recording->summaries = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    recording->construction = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    recording->events = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        if (!*lines[i]) {
            continue;
        }
        g_autoptr(JsonParser) parser = json_parser_new();
        g_autoptr(GError) cause = NULL;
        if (!json_parser_load_from_data(parser, lines[i], -1, &cause) ||
            !JSON_NODE_HOLDS_OBJECT(json_parser_get_root(parser))) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s:%u: no JSON object: %s", path,
                        i + 1, cause ? cause->message : "");
            return NULL;
        }
        take_line(recording, json_node_get_object(json_parser_get_root(parser)));
    }
    if (!recording->header || !recording->summaries->len) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX,
                    "%s: not a recording: it lacks a header or summaries", path);
        return NULL;
    }
    return g_steal_pointer(&recording);
}

/* ---- header to plan ------------------------------------------------------------------------- */

static const char *text_of(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : "";
}

static gint64 int_of(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_int(node) : 0;
}

static bool refuse(const Recording *recording, GError **error, const char *key) {
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: a plan cannot express its %s yet",
                recording->file_name, key);
    return false;
}

static bool flag_of(JsonObject *options, const char *key) {
    return json_object_get_boolean_member(options, key);
}

/* Recordings made by older recorders lack some keys. */
static bool has(JsonObject *options, const char *key) {
    return json_object_has_member(options, key) && !json_object_get_null_member(options, key);
}

static bool has_experts(const Recording *recording) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    return has(shape, "experts") && int_of(shape, "experts") > 0;
}

/* Settings that must have the one value a plan stands for. */
static bool expressible(const Recording *recording, JsonObject *shape, JsonObject *options,
                        GError **error) {
    bool casts_inputs =
        g_str_has_prefix(text_of(options, "mode"), "fsdp") && *text_of(options, "param_dtype");
    if (g_str_equal(text_of(shape, "kind"), "mlp") && !casts_inputs &&
        !g_str_equal(text_of(options, "model_dtype"), "fp32")) {
        return refuse(recording, error, "fp32 vectors in a network of another dtype (nor PyTorch)");
    }
    if (has(options, "tensor") && int_of(options, "tensor") > 1 &&
        !flag_of(options, "loss_parallel")) {
        return refuse(recording, error, "loss_parallel (the loss is of logits that stay apart)");
    }
    bool shares = has(options, "tensor") && int_of(options, "tensor") > 1 &&
                  !g_str_equal(text_of(options, "tensor_plan"), "ends-whole") &&
                  !(has(options, "sequence_parallel") && !flag_of(options, "sequence_parallel"));
    shares |= has(options, "expert") && int_of(options, "expert") > 1;
    bool scattered = has(options, "selective_scattered") && flag_of(options, "selective_scattered");
    if (shares && has(options, "selective") && flag_of(options, "selective") != scattered) {
        return refuse(recording, error,
                      "selective without selective_scattered (torchtitan's list)");
    }
    if (!shares && scattered && has_experts(recording)) {
        return refuse(recording, error, "selective_scattered (of experts that no ranks share)");
    }
    if (g_str_equal(text_of(options, "last_backward"), "last") &&
        !g_str_equal(text_of(options, "accumulate_sync"), "last")) {
        return refuse(recording, error, "last_backward (of passes that reduce and finish later)");
    }
    gint64 shard_size = int_of(options, "shard_size"), world = int_of(options, "world");
    if (shard_size > 0 && shard_size < world && world % shard_size) {
        return refuse(recording, error, "shard_size (it leaves some ranks out)");
    }
    /* gpu/'s recorders pretend a GPU there, and say which machine. */
    bool is_cpu = g_str_equal(text_of(options, "device"), "cpu") &&
                  !json_object_has_member(recording->header, "machine");
    return !is_cpu ||
           refuse(recording, error,
                  "device (on the CPU PyTorch takes other kernels; record with --device gpu)");
}

static double real_of(JsonObject *options, const char *key) {
    return has(options, key) ? json_object_get_double_member(options, key) : 0;
}

static void append_number(GString *text, JsonObject *shape, const char *recorded, const char *key) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    if (real_of(shape, recorded) > 0) {
        g_string_append_printf(text, "%s = %s\n", key,
                               plan_double_text(number, real_of(shape, recorded)));
    }
}

static bool is_latent(JsonObject *shape) {
    return has(shape, "kv_lora_rank") && int_of(shape, "kv_lora_rank") > 0;
}

static void append_latent(GString *text, JsonObject *shape) {
    static const char *const keys[] = {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                                       "qk_rope_head_dim", "v_head_dim"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys) && is_latent(shape); i++) {
        if (int_of(shape, keys[i]) > 0) {
            g_string_append_printf(text, "%s = %" G_GINT64_FORMAT "\n", keys[i],
                                   int_of(shape, keys[i]));
        }
    }
}

static void append_kind_of_loss(JsonObject *shape, GString *text) {
    static const char *const kinds[] = {"loss_in_place", "logits_shifted"};
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (has(shape, kinds[i]) && flag_of(shape, kinds[i])) {
            g_string_append_printf(text, "%s = yes\n", kinds[i]);
        }
    }
}

static void append_cache(JsonObject *shape, GString *text) {
    if (has(shape, "use_cache") && flag_of(shape, "use_cache")) {
        bool copied = has(shape, "cache_copied") && flag_of(shape, "cache_copied");
        g_string_append_printf(text, "use_cache = %s\n", copied ? "copied" : "yes");
    }
}

static char *network_text(JsonObject *shape) {
    GString *text = g_string_new("[network]\n");
    const char *kind = text_of(shape, "kind");
    g_string_append_printf(text, "family = %s\n", kind);
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
        keys = g_str_equal(kind, kinds[i].kind) ? kinds[i].keys : keys;
    }
    g_auto(GStrv) list = g_strsplit(keys, " ", -1);
    for (char **key = list; *key; key++) {
        bool is_of_experts = has(shape, "experts") && int_of(shape, "experts") > 0 &&
                             !(has(shape, "dense_layers") && int_of(shape, "dense_layers") > 0);
        bool is_heads = g_str_equal(*key, "head_dim") || g_str_equal(*key, "kv_heads");
        if ((g_str_equal(*key, "ffn") && is_of_experts) || (is_heads && is_latent(shape))) {
            continue;
        }
        g_string_append_printf(text, "%s = %" G_GINT64_FORMAT "\n", *key, int_of(shape, *key));
    }
    static const char *const never_tied[] = {"mlp", "mpt", "phi", NULL};
    if (!g_strv_contains(never_tied, kind)) {
        g_string_append_printf(text, "tied = %s\n", flag_of(shape, "tied") ? "yes" : "no");
    }
    static const char *const with_gelu[] = {"gpt", "starcoder2", "neox", "phi", NULL};
    static const char *const with_bias[] = {"gpt", "starcoder2", "opt", "neox", NULL};
    static const char *const turning_parts[] = {"neox", "phi", NULL};
    if (g_strv_contains(with_gelu, kind)) {
        const char *gelu = text_of(shape, "gelu");
        g_string_append_printf(text, "gelu = %s\n", g_str_equal(gelu, "none") ? "erf" : gelu);
    }
    if (g_strv_contains(turning_parts, kind)) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(text, "rotary_share = %s\n",
                               plan_double_text(number, real_of(shape, "rotary_share")));
    }
    if (g_strv_contains(with_bias, kind)) {
        bool no_bias = json_object_has_member(shape, "bias") && !flag_of(shape, "bias");
        g_string_append_printf(text, "bias = %s\n", no_bias ? "no" : "yes");
    }
    if (has(shape, "qkv_bias") && flag_of(shape, "qkv_bias")) {
        g_string_append(text, "qkv_bias = yes\n");
    }
    if (!g_str_equal(kind, "mlp")) {
        bool kernel = g_str_equal(text_of(shape, "attention"), "flash");
        g_string_append_printf(text, "attention = %s\n", kernel ? "kernel" : "math");
    }
    append_latent(text, shape);
    static const char *const of_experts[] = {
        "experts",      "experts_per_token", "expert_ffn",      "shared_ffn",
        "dense_layers", "expert_groups",     "groups_per_token"};
    bool has_experts = has(shape, "experts") && int_of(shape, "experts") > 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(of_experts) && has_experts; i++) {
        if (has(shape, of_experts[i]) && int_of(shape, of_experts[i]) > 0) {
            g_string_append_printf(text, "%s = %" G_GINT64_FORMAT "\n", of_experts[i],
                                   int_of(shape, of_experts[i]));
        }
    }
    if (has_experts) {
        g_string_append_printf(text, "route_norm = %s\n",
                               flag_of(shape, "route_norm") ? "yes" : "no");
    }
    if (has_experts && has(shape, "score")) {
        char scale[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(text, "score = %s\nroute_bias = %s\n", text_of(shape, "score"),
                               flag_of(shape, "route_bias") ? "yes" : "no");
        if (real_of(shape, "route_scale") != 1) {
            g_string_append_printf(text, "route_scale = %s\n",
                                   plan_double_text(scale, real_of(shape, "route_scale")));
        }
    }
    if (has_experts && has(shape, "routing")) {
        g_string_append_printf(text, "routing = %s\n", text_of(shape, "routing"));
    }
    static const char *const of_loss[] = {"loss", "loss_at", "logits_held"};
    for (unsigned i = 0; i < G_N_ELEMENTS(of_loss) && !g_str_equal(kind, "mlp"); i++) {
        if (has(shape, of_loss[i])) {
            g_string_append_printf(text, "%s = %s\n", of_loss[i], text_of(shape, of_loss[i]));
        }
    }
    append_kind_of_loss(shape, text);
    append_cache(shape, text);
    static const char *const words[] = {"rope",    "qkv",     "kv",   "qk_norm",
                                        "norm_at", "gate_up", "gate", "norm_weight"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        bool is_known = g_str_equal(kind, "llama") && has(shape, words[i]);
        if (is_known) {
            g_string_append_printf(text, "%s = %s\n", words[i], text_of(shape, words[i]));
        }
    }
    static const char *const numbers[] = {"embed_scale",  "attention_scale", "residual_scale",
                                          "logits_scale", "global_every",    "local_rope_base",
                                          "window"};
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        append_number(text, shape, numbers[i], numbers[i]);
    }
    append_number(text, shape, "unturned_every", "no_rope_every"); /* the recorder's word for it */
    if (g_str_equal(kind, "neox")) {
        g_string_append_printf(text, "block = %s\n", text_of(shape, "block"));
    }
    if (has(shape, "dropout") && real_of(shape, "dropout") > 0) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(text, "dropout = %s\n",
                               plan_double_text(number, real_of(shape, "dropout")));
    }
    if (g_str_equal(kind, "t5")) {
        g_string_append_printf(text, "gated = %s\n", flag_of(shape, "gated") ? "yes" : "no");
    }
    return g_string_free(text, FALSE);
}

uint32_t recording_rank(const Recording *recording, const Plan *plan) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    gint64 rank = int_of(options, "rank");
    return rank < plan->world ? (uint32_t)rank : 0;
}

uint64_t recording_forgotten_bytes(const Recording *recording) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    bool has_bias = g_str_equal(text_of(shape, "kind"), "t5") &&
                    g_str_equal(text_of(shape, "attention"), "flash");
    if (!has_bias || (has(recording->header, "whole_storages") &&
                      flag_of(recording->header, "whole_storages"))) {
        return 0;
    }
    bool is_fsdp = g_str_has_prefix(text_of(options, "mode"), "fsdp");
    const char *dtype =
        text_of(options, is_fsdp && has(options, "param_dtype") ? "param_dtype" : "model_dtype");
    uint64_t beyond = (uint64_t)int_of(shape, "seq") % 16;
    return beyond ? (16 - beyond) * (g_str_equal(dtype, "fp32") ? 4 : 2) : 0;
}

bool recording_is_compiled(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return (has(options, "compile") && flag_of(options, "compile")) ||
           recording_is_compiled_whole(recording);
}

bool recording_is_compiled_in_parts(const Recording *recording) {
    return recording_is_compiled(recording) && has_experts(recording);
}

bool recording_is_compiled_whole(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return has(options, "compile_network") && flag_of(options, "compile_network");
}

static bool set_fsdp1(const Recording *recording, JsonObject *options, PlanStrategy *strategy,
                      GError **error) {
    static const struct {
        const char *name;
        unsigned sharding;
    } shardings[] = {{"FULL_SHARD", PLAN_SHARDING_FULL},
                     {"SHARD_GRAD_OP", PLAN_SHARDING_GRAD_OP},
                     {"NO_SHARD", PLAN_SHARDING_NONE},
                     {"HYBRID_SHARD", PLAN_SHARDING_HYBRID},
                     {"_HYBRID_SHARD_ZERO2", PLAN_SHARDING_HYBRID_GRAD_OP}};
    const char *name = text_of(options, "strategy");
    unsigned i = 0;
    while (i < G_N_ELEMENTS(shardings) && !g_str_equal(shardings[i].name, name)) {
        i++;
    }
    if (i == G_N_ELEMENTS(shardings)) {
        return refuse(recording, error, "strategy");
    }
    strategy->flavour = PLAN_FLAVOUR_FSDP1;
    strategy->sharding = shardings[i].sharding;
    strategy->use_orig_params = flag_of(options, "use_orig_params") ? PLAN_YES : PLAN_NO;
    strategy->forward_prefetch.choice =
        flag_of(options, "forward_prefetch") ? PLAN_FORWARD_PREFETCH_YES : PLAN_FORWARD_PREFETCH_NO;
    strategy->limit_all_gathers = flag_of(options, "limit_all_gathers") ? 2 : 0;
    return plan_strategy_set(strategy, "backward_prefetch", text_of(options, "backward_prefetch"),
                             error);
}

/* Only this project's recorder knows it, and gives Muon the weight decay that AdamW has. */
static void set_muon(JsonObject *options, PlanStrategy *strategy) {
    if (has(options, "muon_nesterov")) {
        strategy->muon_nesterov = flag_of(options, "muon_nesterov") ? PLAN_YES : PLAN_NO;
    }
    if (has(options, "muon_ns_steps")) {
        strategy->muon_steps = (uint64_t)int_of(options, "muon_ns_steps");
    }
    if (has(options, "weight_decay")) {
        strategy->muon_weight_decay = real_of(options, "weight_decay");
    }
}

static bool set_optimizer(JsonObject *options, PlanStrategy *strategy, GError **error) {
    const char *name = text_of(options, "optimizer");
    strategy->momentum = real_of(options, "momentum");
    strategy->clip = real_of(options, "clip");
    strategy->weight_decay = has(options, "weight_decay") ? real_of(options, "weight_decay") : -1;
    bool momentum = g_str_equal(name, "sgd") && strategy->momentum != 0;
    set_muon(options, strategy);
    return plan_strategy_set(strategy, "optimizer", momentum ? "momentum" : name, error);
}

/* Ranks that share a copy of the model, where that is not all of them. */
static void set_groups(JsonObject *options, PlanStrategy *strategy) {
    uint64_t shard_size = (uint64_t)int_of(options, "shard_size");
    bool is_hybrid = strategy->sharding == PLAN_SHARDING_HYBRID ||
                     strategy->sharding == PLAN_SHARDING_HYBRID_GRAD_OP;
    uint64_t ranks = strategy->ranks / strategy->tensor / strategy->pipeline;
    if (shard_size && strategy->flavour == PLAN_FLAVOUR_FSDP2 && shard_size < ranks) {
        strategy->sharding = PLAN_SHARDING_HYBRID;
        is_hybrid = true;
    }
    if (is_hybrid && shard_size) {
        strategy->replicate = ranks / shard_size;
    }
}

static bool set_passes(JsonObject *options, PlanStrategy *strategy, GError **error) {
    strategy->accumulate = (uint64_t)int_of(options, "accumulate");
    strategy->zero_grad = has(options, "keep_gradients") && flag_of(options, "keep_gradients")
                              ? PLAN_ZERO_KEEP
                              : PLAN_ZERO_DROP;
    return plan_strategy_set(strategy, "accumulate_sync", text_of(options, "accumulate_sync"),
                             error);
}

/* The recorder's dtypes of storage are uint8, or those of networks. */
static void set_base(JsonObject *options, PlanStrategy *strategy) {
    if (!has(options, "lora_base")) {
        return;
    }
    strategy->lora_base =
        g_str_equal(text_of(options, "lora_base"), "nf4") ? PLAN_LORA_BASE_NF4 : PLAN_LORA_BASE_FP4;
    strategy->lora_base_double =
        has(options, "lora_base_double") && flag_of(options, "lora_base_double") ? PLAN_YES
                                                                                 : PLAN_NO;
    strategy->lora_base_storage = g_str_equal(text_of(options, "lora_base_storage"), "uint8")
                                      ? PLAN_LORA_STORAGE_UINT8
                                      : PLAN_LORA_STORAGE_MODEL;
}

/* What is trained: recordings have regular expressions of the same words. */
static void set_trained(JsonObject *options, PlanStrategy *strategy) {
    if (has(options, "freeze") && *text_of(options, "freeze")) {
        strategy->freeze = (PlanVariant){.choice = PLAN_FREEZE_MODULE,
                                         .text = g_intern_string(text_of(options, "freeze"))};
    }
    if (int_of(options, "lora_rank")) {
        strategy->lora_rank = (uint64_t)int_of(options, "lora_rank");
        strategy->lora_alpha = real_of(options, "lora_alpha");
        strategy->lora_on = (PlanVariant){.choice = PLAN_LORA_ON_MODULE,
                                          .text = g_intern_string(text_of(options, "lora_on"))};
        if (has(options, "lora_dropout")) {
            strategy->lora_dropout = real_of(options, "lora_dropout");
        }
        strategy->lora_dtype = flag_of(options, "lora_fp32") ? PLAN_LORA_FP32 : PLAN_LORA_MODEL;
        set_base(options, strategy);
    }
}

/* Keys that only recorders of this project write. */
static void set_later_keys(JsonObject *options, PlanStrategy *strategy) {
    if (has(options, "rms_norm") && g_str_equal(text_of(options, "rms_norm"), "ops")) {
        strategy->rms_norm = PLAN_RMS_NORM_OPS;
    }
    if (has(options, "compile") && flag_of(options, "compile")) {
        strategy->kernels = PLAN_KERNELS_COMPILED;
    }
    if (has(options, "float8")) {
        strategy->float8 = g_str_equal(text_of(options, "float8"), "rowwise")
                               ? PLAN_FLOAT8_ROWWISE
                               : PLAN_FLOAT8_TENSORWISE;
    }
    if (has(options, "float8_gather")) {
        strategy->float8_gather = g_str_equal(text_of(options, "float8_gather"), "precomputed")
                                      ? PLAN_FLOAT8_GATHER_PRECOMPUTED
                                      : PLAN_FLOAT8_GATHER_YES;
    }
    if (has(options, "compile_network") && flag_of(options, "compile_network")) {
        strategy->kernels = PLAN_KERNELS_COMPILED;
        strategy->compile = PLAN_COMPILE_NETWORK;
    }
    if (has(options, "deterministic") && flag_of(options, "deterministic")) {
        strategy->deterministic = PLAN_DETERMINISTIC_YES;
    }
    if (has(options, "autocast") && *text_of(options, "autocast")) {
        strategy->autocast = g_str_equal(text_of(options, "autocast"), "bf16") ? PLAN_AUTOCAST_BF16
                                                                               : PLAN_AUTOCAST_FP16;
    }
    if (has(options, "grad_scaler") && flag_of(options, "grad_scaler")) {
        strategy->loss_scale.choice = PLAN_LOSS_SCALE_DYNAMIC;
    }
    if (has(options, "early_stop") && !flag_of(options, "early_stop")) {
        strategy->checkpoint_early_stop = PLAN_NO;
    }
    if (strategy->checkpointing.choice == PLAN_CHECKPOINTING_FULL && has(options, "selective") &&
        flag_of(options, "selective")) {
        strategy->checkpointing.choice = PLAN_CHECKPOINTING_SELECTIVE_OP;
    }
    if (strategy->flavour == PLAN_FLAVOUR_FSDP1 && has(options, "keep_low_precision_grads") &&
        *text_of(options, "param_dtype") && flag_of(options, "keep_low_precision_grads")) {
        strategy->keep_low_precision_grads = PLAN_YES;
    }
    bool is_fsdp =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
    if (is_fsdp && has(options, "cpu_offload") && flag_of(options, "cpu_offload")) {
        strategy->offload = PLAN_OFFLOAD_PARAMS;
    }
    if (has(options, "tensor_plan") && g_str_equal(text_of(options, "tensor_plan"), "ends-whole")) {
        strategy->tensor_plan = PLAN_TENSOR_KEMPNERFORGE;
    }
    if (has(options, "tensor_plan") &&
        g_str_equal(text_of(options, "tensor_plan"), "logits-whole")) {
        strategy->tensor_plan = PLAN_TENSOR_TRANSFORMERS;
    }
    if (has(options, "sequence_parallel") && !flag_of(options, "sequence_parallel")) {
        strategy->sequence_parallel = PLAN_NO;
    }
    if (has(options, "accelerate") && flag_of(options, "accelerate")) {
        strategy->wrap_ends = PLAN_ENDS_TAIL;
    }
    if (has(options, "context")) {
        strategy->context = (uint64_t)int_of(options, "context");
    }
    if (has(options, "expert")) {
        strategy->expert = (uint64_t)int_of(options, "expert");
    }
    if (has(options, "pipeline")) {
        strategy->pipeline = (uint64_t)int_of(options, "pipeline");
        const char *schedule = text_of(options, "pipeline_schedule");
        strategy->pipeline_schedule =
            g_str_equal(schedule, "gpipe")              ? PLAN_PIPELINE_GPIPE
            : g_str_equal(schedule, "interleaved-1f1b") ? PLAN_PIPELINE_INTERLEAVED
            : g_str_equal(schedule, "looped-bfs")       ? PLAN_PIPELINE_LOOPED_BFS
                                                        : PLAN_PIPELINE_1F1B;
        if (has(options, "pipeline_stages")) {
            strategy->pipeline_stages = (uint64_t)int_of(options, "pipeline_stages");
        }
        strategy->pipeline_split = g_str_equal(text_of(options, "pipeline_split"), "even")
                                       ? PLAN_SPLIT_EVEN
                                       : PLAN_SPLIT_TORCHTITAN;
    }
    if (has(options, "async_tensor") && flag_of(options, "async_tensor")) {
        strategy->async_tensor = PLAN_YES;
    }
    if (has(options, "tensor")) {
        strategy->tensor = (uint64_t)int_of(options, "tensor");
    }
    if (strategy->flavour != PLAN_FLAVOUR_FSDP2) {
        return;
    }
    if (has(options, "reshard_last") && !flag_of(options, "reshard_last")) {
        strategy->reshard_last = PLAN_NO;
    }
    if (has(options, "reshard_after_backward") &&
        g_str_equal(text_of(options, "reshard_after_backward"), "last")) {
        strategy->reshard_after_backward = PLAN_NO;
    }
    int64_t ahead = int_of(options, "fsdp2_forward_prefetch");
    if (ahead > 0) {
        strategy->forward_prefetch =
            (PlanVariant){.choice = PLAN_FORWARD_PREFETCH_UNITS, .number = (double)ahead};
    }
}

/* Recorded in a plan's words. */
static bool set_wraps(JsonObject *options, PlanStrategy *strategy, GError **error) {
    static const char *const keys[] = {"wrap", "wrap_ends"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (has(options, keys[i]) &&
            !plan_strategy_set(strategy, keys[i], text_of(options, keys[i]), error)) {
            return false;
        }
    }
    return true;
}

/* "2.13.0+cu130"; first of all, for it sets other keys. */
static bool set_version(const Recording *recording, PlanStrategy *strategy, GError **error) {
    const char *text = text_of(recording->header, "torch");
    g_autofree char *version = g_strndup(text, strcspn(text, "+"));
    return plan_strategy_set(strategy, "pytorch", version, error);
}

static PlanConstruction construction_on_gpu(JsonObject *options, const PlanStrategy *strategy) {
    bool is_whole = has(options, "real_start") && flag_of(options, "real_start");
    return is_whole                                  ? PLAN_CONSTRUCTION_WHOLE
           : strategy->flavour == PLAN_FLAVOUR_FSDP1 ? PLAN_CONSTRUCTION_UNIT
                                                     : PLAN_CONSTRUCTION_SHARD;
}

static void set_program(RecordingProgram program, JsonObject *options, PlanStrategy *strategy) {
    if (program == RECORDING_OF_DETERMINISTIC) {
        strategy->deterministic = PLAN_DETERMINISTIC_YES;
    }
    strategy->step_sync = program == RECORDING_OF_ALLOCATOR ? PLAN_YES : PLAN_NO;
    strategy->init = program == RECORDING_OF_GPU            ? construction_on_gpu(options, strategy)
                     : program == RECORDING_OF_CONSTRUCTION ? PLAN_CONSTRUCTION_WHOLE
                                                            : PLAN_CONSTRUCTION_SHARD;
}

static bool set_strategy(const Recording *recording, JsonObject *options, PlanStrategy *strategy,
                         GError **error) {
    const char *mode = text_of(options, "mode");
    plan_strategy_init(strategy);
    if (!set_version(recording, strategy, error)) {
        return false;
    }
    strategy->ranks = (uint64_t)int_of(options, "world");
    strategy->micro_batch = (uint64_t)int_of(options, "batch");
    /* The recorder's own device has no kernel for it; a real GPU does, and so does the CPU, which
     * versions before 2.1 are recorded on. */
    bool is_real = g_str_equal(text_of(options, "device"), "cuda") ||
                   !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0);
    strategy->silu_backward = is_real ? PLAN_SILU_KERNEL : PLAN_SILU_OPS;
    /* PyTorch picks foreach by default for DTensors, the loop for the recorder's other tensors. */
    const char *kernel = text_of(options, "optimizer_kernel");
    if (g_str_equal(kernel, "default")) {
        bool is_shared = has(options, "tensor") && int_of(options, "tensor") > 1;
        kernel = g_str_equal(mode, "fsdp2") || is_shared ? "foreach" : "loop";
    }
    if (!plan_strategy_set(strategy, "optimizer_kernel", kernel, error)) {
        return false;
    }
    if (!set_optimizer(options, strategy, error) || !set_passes(options, strategy, error)) {
        return false;
    }
    const char *checkpointing = text_of(options, "checkpointing");
    strategy->checkpointing.choice = g_str_equal(checkpointing, "none") ? PLAN_CHECKPOINTING_NONE
                                     : g_str_equal(checkpointing, "parts")
                                         ? PLAN_CHECKPOINTING_PARTS
                                         : PLAN_CHECKPOINTING_FULL;
    if (has(options, "parts")) {
        g_autofree char *one = g_strdup_printf("module=.*\\.%s", text_of(options, "parts"));
        if (!plan_strategy_set(strategy, "checkpointing", one, error)) {
            return false;
        }
    }
    strategy->checkpoint_place =
        g_str_equal(checkpointing, "outside") ? PLAN_CHECKPOINT_OUTSIDE : PLAN_CHECKPOINT_INSIDE;
    static const char *const dtypes[] = {"model_dtype", "param_dtype", "reduce_dtype"};
    /* The recorder tells FSDP alone of mixed precision, FSDP1 only where param_dtype is given. */
    bool is_fsdp2 = g_str_equal(mode, "fsdp2");
    bool is_mixed = g_str_equal(mode, "fsdp1") && *text_of(options, "param_dtype");
    unsigned told = is_fsdp2 || is_mixed ? G_N_ELEMENTS(dtypes) : 1;
    for (unsigned i = 0; i < told; i++) {
        const char *dtype = text_of(options, dtypes[i]);
        if (*dtype && !plan_strategy_set(strategy, dtypes[i], dtype, error)) {
            return false;
        }
    }
    if (is_fsdp2) {
        strategy->flavour = PLAN_FLAVOUR_FSDP2;
        const char *reshard = text_of(options, "reshard_after_forward");
        reshard = g_str_equal(reshard, "true")    ? "yes"
                  : g_str_equal(reshard, "false") ? "no"
                                                  : reshard;
        if (!plan_strategy_set(strategy, "reshard_after_forward", reshard, error)) {
            return false;
        }
        strategy->backward_prefetch =
            json_object_get_boolean_member(options, "fsdp2_backward_prefetch") ? PLAN_PREFETCH_PRE
                                                                               : PLAN_PREFETCH_NONE;
    } else if (g_str_equal(mode, "fsdp1")) {
        if (!set_fsdp1(recording, options, strategy, error)) {
            return false;
        }
    } else if (g_str_equal(mode, "ddp")) {
        strategy->sharding = PLAN_SHARDING_NONE;
        strategy->flavour = PLAN_FLAVOUR_DDP;
        strategy->bucket_view = flag_of(options, "ddp_bucket_view") ? PLAN_YES : PLAN_NO;
        if (!json_object_get_null_member(options, "ddp_bucket_mb")) {
            double mib = json_object_get_double_member(options, "ddp_bucket_mb");
            strategy->bucket_mb = mib > 0 ? mib : ONE_BYTE_MIB; /* a bucket for each gradient */
        }
    } else if (g_str_equal(mode, "none")) {
        strategy->sharding = PLAN_SHARDING_NONE;
        strategy->flavour = PLAN_FLAVOUR_PLAIN;
        strategy->ranks = has(options, "tensor") ? (uint64_t)int_of(options, "tensor") : 1;
    } else {
        return refuse(recording, error, "mode");
    }
    if (!set_wraps(options, strategy, error)) {
        return false;
    }
    set_later_keys(options, strategy);
    set_groups(options, strategy);
    set_trained(options, strategy);
    return true;
}

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
    if (has(shape, "logits_held")) {
        g_string_append_printf(all, "logits_held = %s\n", text_of(shape, "logits_held"));
    }
    append_kind_of_loss(shape, all);
    append_cache(shape, all);
    bool is_older = has(shape, "logits_shifted") && flag_of(shape, "logits_shifted");
    if (is_older && !g_str_equal(text_of(shape, "loss"), "fp32")) {
        g_string_append_printf(all, "loss = %s\n", text_of(shape, "loss"));
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

/* A file that was traced, in a folder beside those of recordings. */
static char *traced_text(const Recording *recording, GError **error) {
    g_autofree char *folder = g_path_get_dirname(recording->file_name);
    g_autofree char *path =
        g_build_filename(folder, "..", "traced", text_of(recording->header, "network"), NULL);
    char *text = NULL;
    return g_file_get_contents(other_network ? other_network : path, &text, NULL, error) ? text
                                                                                         : NULL;
}

static void take_network(const char *path) {
    other_network = path;
}

Plan *recording_plan(const Recording *recording, RecordingProgram program, GError **error) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    if (!shape || !options) {
        refuse(recording, error, "header (shape or options is missing)");
        return NULL;
    }
    PlanStrategy strategy;
    if (!expressible(recording, shape, options, error) ||
        !set_strategy(recording, options, &strategy, error)) {
        return NULL;
    }
    if (has(recording->header, "config")) { /* whose sequences may be longer than those recorded */
        strategy.seq = (uint64_t)int_of(shape, "seq");
    }
    strategy.document = has(shape, "document") ? (uint64_t)int_of(shape, "document") : 0;
    set_program(program, options, &strategy);
    if (!plan_strategy_settle(&strategy, error)) {
        return NULL;
    }
    bool is_traced = has(recording->header, "network") || other_network;
    g_autofree char *text = is_traced                          ? traced_text(recording, error)
                            : has(recording->header, "config") ? config_text(recording, error)
                                                               : network_text(shape);
    if (!text) {
        return NULL;
    }
    g_autoptr(ModelNetwork) network =
        model_network_read(text, strlen(text), recording->file_name, error);
    if (!network) {
        return NULL;
    }
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, error);
    return graph ? plan_build(graph, &strategy, network->name, network->text, error) : NULL;
}

int recording_check_all(const char *program, int argc, char **argv,
                        int (*check_file)(const char *path)) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s [--network FILE] RECORD.jsonl...\n", program);
        return 2;
    }
    int worst = 0;
    int first = 1;
    if (argc > 2 && g_str_equal(argv[1], "--network")) {
        take_network(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        int status = check_file(argv[i]);
        worst = MAX(worst, status);
    }
    return worst;
}
