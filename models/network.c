#include "models/network.h"

#include <float.h>
#include <string.h>

#include "models/sound.h"
#include "models/traced/traced.h"
#include "plan/files/ini.h"
#include "plan/files/nearest.h"

static const ModelFamily *const families[] = {&model_gpt,        &model_mpt,  &model_llama,
                                              &model_starcoder2, &model_neox, &model_opt,
                                              &model_phi,        &model_t5,   &model_mlp};

void model_network_free(ModelNetwork *network) {
    if (network) {
        g_free(network->name);
        g_free(network->text);
        model_traced_free(network->traced);
        g_free(network->dropouts);
        g_free(network->quantized);
        g_free(network);
    }
}

#define BELOW_ONE (1 - DBL_EPSILON / 2) /* the greatest number that is */

/* Bounds catch slips; products of shapes are bounded when a pass is emitted. */
static const struct {
    const char *key;
    gsize offset;
    uint64_t max;
    bool may_be_none; /* 0, as where the key does not stand */
} numbers[] = {
    {"layers", offsetof(ModelNetwork, layers), 10000},
    {"width", offsetof(ModelNetwork, width), 1 << 20},
    {"heads", offsetof(ModelNetwork, heads), 1 << 14},
    {"kv_heads", offsetof(ModelNetwork, kv_heads), 1 << 14},
    {"head_dim", offsetof(ModelNetwork, head_dim), 1 << 14},
    {"vocab", offsetof(ModelNetwork, vocab), 1 << 24},
    {"seq", offsetof(ModelNetwork, seq), 1 << 24},
    {"ffn", offsetof(ModelNetwork, ffn), 1 << 22},
    {"target_seq", offsetof(ModelNetwork, target_seq), 1 << 24, true},
    {"experts", offsetof(ModelNetwork, experts), 1 << 12},
    {"experts_per_token", offsetof(ModelNetwork, experts_per_token), 1 << 12},
    {"expert_ffn", offsetof(ModelNetwork, expert_ffn), 1 << 22},
    {"shared_ffn", offsetof(ModelNetwork, shared_ffn), 1 << 22},
    {"dense_layers", offsetof(ModelNetwork, dense_layers), 10000},
    {"expert_groups", offsetof(ModelNetwork, expert_groups), 1 << 12},
    {"groups_per_token", offsetof(ModelNetwork, groups_per_token), 1 << 12},
    {"q_lora_rank", offsetof(ModelNetwork, q_lora_rank), 1 << 20},
    {"kv_lora_rank", offsetof(ModelNetwork, kv_lora_rank), 1 << 20},
    {"qk_nope_head_dim", offsetof(ModelNetwork, qk_nope_head_dim), 1 << 14},
    {"qk_rope_head_dim", offsetof(ModelNetwork, qk_rope_head_dim), 1 << 14},
    {"v_head_dim", offsetof(ModelNetwork, v_head_dim), 1 << 14},
    {"global_every", offsetof(ModelNetwork, global_every), 10000},
    {"no_rope_every", offsetof(ModelNetwork, no_rope_every), 10000},
    {"window", offsetof(ModelNetwork, window), 1 << 24, true},
};

static bool read_number(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                        unsigned row, GError **error) {
    uint64_t value, least = numbers[row].may_be_none ? 0 : 1;
    if (!plan_parse_u64(entry->value, &value) || value < least || value > numbers[row].max) {
        g_autofree char *written_out =
            plan_written_out(entry->value, (double)least, (double)numbers[row].max);
        return plan_ini_refuse(ini, entry, error,
                               "%s must be a whole number from %" G_GUINT64_FORMAT
                               " to %" G_GUINT64_FORMAT ", not '%s'%s",
                               entry->key, least, numbers[row].max, entry->value, written_out);
    }
    G_STRUCT_MEMBER(uint64_t, network, numbers[row].offset) = value;
    return true;
}

static const struct {
    const char *key;
    gsize offset;
    double least, most;
    const char *range; /* in words: some bounds are of the range, some not */
} reals[] = {
    {"embed_scale", offsetof(ModelNetwork, embed_scale), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"attention_scale", offsetof(ModelNetwork, attention_scale), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"residual_scale", offsetof(ModelNetwork, residual_scale), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"logits_scale", offsetof(ModelNetwork, logits_scale), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"attention_cap", offsetof(ModelNetwork, attention_cap), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"logits_cap", offsetof(ModelNetwork, logits_cap), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"local_rope_base", offsetof(ModelNetwork, local_rope_base), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"route_scale", offsetof(ModelNetwork, route_scale), 1e-6, 1e6, "from 1e-6 to 1e6"},
    {"rope_base", offsetof(ModelNetwork, rope_base), 1, 1e12, "from 1 to 1e12"},
    {"norm_eps", offsetof(ModelNetwork, norm_eps), 0, 1, "from 0 to 1"},
    {"rotary_share", offsetof(ModelNetwork, rotary_share), DBL_MIN, BELOW_ONE,
     "above 0 and below 1"},
    {"dropout", offsetof(ModelNetwork, dropout), 0, BELOW_ONE, "from 0 to below 1"},
};

static bool read_real(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                      unsigned row, GError **error) {
    double value;
    if (!plan_parse_double(entry->value, &value) || value < reals[row].least ||
        value > reals[row].most) {
        return plan_ini_refuse(ini, entry, error, "%s must be a number %s, not '%s'", entry->key,
                               reals[row].range, entry->value);
    }
    G_STRUCT_MEMBER(double, network, reals[row].offset) = value;
    return true;
}

/* The first word sets the flag, the other clears it. */
static const struct {
    const char *key, *yes, *no;
    gsize offset;
} choices[] = {
    {"tied", "yes", "no", offsetof(ModelNetwork, tied)},
    {"bias", "no", "yes", offsetof(ModelNetwork, no_bias)},
    {"positions", "alibi", "learned", offsetof(ModelNetwork, alibi)},
    {"qkv_bias", "yes", "no", offsetof(ModelNetwork, qkv_bias)},
    {"kv", "repeated", "grouped", offsetof(ModelNetwork, kv_repeated)},
    {"loss_in_place", "yes", "no", offsetof(ModelNetwork, loss_in_place)},
    {"logits_shifted", "yes", "no", offsetof(ModelNetwork, logits_shifted)},
    {"mask_buffers", "yes", "no", offsetof(ModelNetwork, mask_buffers)},
    {"gate_up", "joined", "apart", offsetof(ModelNetwork, gate_up_joined)},
    {"block", "sequential", "parallel", offsetof(ModelNetwork, sequential)},
    {"gated", "yes", "no", offsetof(ModelNetwork, gated)},
    {"global_at", "first", "last", offsetof(ModelNetwork, global_first)},
    {"route_norm", "no", "yes", offsetof(ModelNetwork, keeps_scores)},
    {"score", "sigmoid", "softmax", offsetof(ModelNetwork, scores_apart)},
    {"route_bias", "yes", "no", offsetof(ModelNetwork, route_bias)},
    {"sinks", "yes", "no", offsetof(ModelNetwork, sinks)},
    {"routing", "in-turn", "scores", offsetof(ModelNetwork, routes_in_turn)},
};

/* Which of the words the value is; -1 with an error that has them all. */
static int read_word(const PlanIni *ini, const PlanIniEntry *entry, const char *const *words,
                     GError **error) {
    g_autoptr(GString) known = g_string_new(NULL);
    for (int i = 0; words[i]; i++) {
        if (g_str_equal(entry->value, words[i])) {
            return i;
        }
        g_string_append_printf(known, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    plan_ini_refuse(ini, entry, error, "%s must be %s, not '%s'", entry->key, known->str,
                    entry->value);
    return -1;
}

static bool read_choice(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                        unsigned row, GError **error) {
    const char *const words[] = {choices[row].yes, choices[row].no, NULL};
    int word = read_word(ini, entry, words, error);
    G_STRUCT_MEMBER(bool, network, choices[row].offset) = word == 0;
    return word >= 0;
}

/* Keys of a few words, which number an enum; its storage is an unsigned's. */
static const struct {
    const char *key;
    gsize offset;
    const char *words[10]; /* NULL behind the last */
} enums[] = {
    {"loss",
     offsetof(ModelNetwork, loss),
     {[MODEL_LOSS_MODEL] = "model",
      [MODEL_LOSS_OPS] = "ops",
      [MODEL_LOSS_FP32_LOGITS] = "fp32-logits",
      [MODEL_LOSS_FP32] = "fp32",
      [MODEL_LOSS_METERED] = "metered",
      [MODEL_LOSS_KERNEL] = "kernel",
      [MODEL_LOSS_CHUNKED] = "chunked",
      [MODEL_LOSS_LIGER] = "liger",
      [MODEL_LOSS_TORCHTITAN] = "torchtitan"}},
    {"loss_at",
     offsetof(ModelNetwork, loss_at),
     {[MODEL_LOSS_IN_MODEL] = "model", [MODEL_LOSS_IN_LOOP] = "loop"}},
    {"logits_held",
     offsetof(ModelNetwork, logits_held),
     {[PLAN_RESULTS_DROPPED] = "no",
      [PLAN_RESULTS_BACKWARD] = "backward",
      [PLAN_RESULTS_NEXT_FORWARD] = "next-forward"}},
    {"use_cache",
     offsetof(ModelNetwork, cache),
     {[MODEL_CACHE_NONE] = "no", [MODEL_CACHE_AS_MADE] = "yes", [MODEL_CACHE_COPIED] = "copied"}},
    {"gelu",
     offsetof(ModelNetwork, gelu),
     {[MODEL_GELU_TANH] = "tanh", [MODEL_GELU_ERF] = "erf", [MODEL_GELU_OPS] = "ops"}},
    {"code",
     offsetof(ModelNetwork, code),
     {[MODEL_CODE_OWN] = "own", [MODEL_CODE_TRANSFORMERS] = "transformers"}},
    {"rope",
     offsetof(ModelNetwork, rope),
     {[MODEL_ROPE_REAL] = "real",
      [MODEL_ROPE_COMPLEX] = "complex",
      [MODEL_ROPE_PARTIAL] = "partial",
      [MODEL_ROPE_PAIRS] = "pairs"}},
    {"qkv",
     offsetof(ModelNetwork, qkv),
     {[MODEL_QKV_APART] = "apart", [MODEL_QKV_JOINED] = "joined", [MODEL_QKV_SLICED] = "sliced"}},
    {"norm_at",
     offsetof(ModelNetwork, norm_at),
     {[MODEL_NORM_BEFORE] = "before",
      [MODEL_NORM_AFTER] = "after",
      [MODEL_NORM_BOTH] = "both",
      [MODEL_NORM_ONCE] = "once"}},
    {"gate",
     offsetof(ModelNetwork, gate),
     {[MODEL_GATE_SILU] = "silu",
      [MODEL_GATE_GELU_TANH] = "gelu-tanh",
      [MODEL_GATE_GELU_ERF] = "gelu-erf",
      [MODEL_GATE_NONE] = "none"}},
    {"window_by",
     offsetof(ModelNetwork, window_by),
     {[MODEL_WINDOW_BY_MASK] = "mask", [MODEL_WINDOW_BY_KERNEL] = "kernel"}},
    {"qk_norm",
     offsetof(ModelNetwork, qk_norm),
     {[MODEL_QK_NORM_NONE] = "none",
      [MODEL_QK_NORM_HEAD] = "head",
      [MODEL_QK_NORM_WIDTH] = "width"}},
};

static bool read_enum(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                      unsigned row, GError **error) {
    int word = read_word(ini, entry, enums[row].words, error);
    G_STRUCT_MEMBER(unsigned, network, enums[row].offset) = (unsigned)MAX(word, 0);
    return word >= 0;
}

static bool read_attention(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                           GError **error) {
    static const char *const words[] = {"kernel", "math", "math-fp32", NULL};
    int word = read_word(ini, entry, words, error);
    network->scores_in_memory = word > 0;
    network->wide_softmax = word > 1;
    return word >= 0;
}

static bool read_norm_weight(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                             GError **error) {
    static const char *const words[] = {"plain", "from-one", "none", "centred", "widened", NULL};
    int word = read_word(ini, entry, words, error);
    network->norms_from_one = word == 1;
    network->norms_bare = word == 2;
    network->norms_centred = word == 3;
    network->norms_widened = word == 4;
    return word >= 0;
}

static bool read_rope_scaling(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                              GError **error) {
    static const char *const words[] = {"linear", "dynamic", "yarn", "longrope", "llama3", NULL};
    int word = read_word(ini, entry, words, error);
    network->rope_scaling = words[MAX(word, 0)];
    return word >= 0;
}

static bool read_entry(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                       GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(choices); i++) {
        if (g_str_equal(choices[i].key, entry->key)) {
            return read_choice(network, ini, entry, i, error);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(enums); i++) {
        if (g_str_equal(enums[i].key, entry->key)) {
            return read_enum(network, ini, entry, i, error);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(reals); i++) {
        if (g_str_equal(reals[i].key, entry->key)) {
            return read_real(network, ini, entry, i, error);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (g_str_equal(numbers[i].key, entry->key)) {
            return read_number(network, ini, entry, i, error);
        }
    }
    if (g_str_equal(entry->key, "attention")) {
        return read_attention(network, ini, entry, error);
    }
    if (g_str_equal(entry->key, "norm_weight")) {
        return read_norm_weight(network, ini, entry, error);
    }
    if (g_str_equal(entry->key, "rope_scaling")) {
        return read_rope_scaling(network, ini, entry, error);
    }
    g_assert_not_reached();
}

static bool find_family(ModelNetwork *network, const PlanIni *ini, GError **error) {
    const PlanIniEntry *entry = plan_ini_find(ini, "network", "family");
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(families); i++) {
        g_string_append_printf(known, "%s%s", i ? ", " : "", families[i]->name);
        if (entry && g_str_equal(entry->value, families[i]->name)) {
            network->family = families[i];
            return true;
        }
    }
    const PlanIniEntry *first = plan_ini_first(ini, "network");
    if (!first) {
        return plan_ini_refuse(ini, NULL, error,
                               "this describes no network: it has no section [network] with a "
                               "family, one of %s",
                               known->str);
    }
    if (!entry) {
        return plan_ini_refuse(ini, first, error, "[network] has no 'family'; it is one of %s",
                               known->str);
    }
    return plan_ini_refuse(ini, entry, error, "unknown family '%s'; it is one of %s", entry->value,
                           known->str);
}

static bool has_all_keys(const PlanIni *ini, const ModelFamily *family, GError **error) {
    g_auto(GStrv) needed = g_strsplit(family->keys, "|", 2);
    g_auto(GStrv) words = g_strsplit(needed[0], " ", -1);
    for (char **word = words; *word; word++) {
        if (**word && !plan_ini_find(ini, "network", *word)) {
            return plan_ini_refuse(ini, plan_ini_first(ini, "network"), error,
                                   "[network] lacks '%s'; family %s needs %s", *word, family->name,
                                   g_strstrip(needed[0]));
        }
    }
    return true;
}

/* Called as its file is, without what such files end in. */
static char *name_of(const char *file_name) {
    g_autofree char *base = g_path_get_basename(file_name);
    for (const char *const *end = (const char *const[]){".ini", ".network", NULL}; *end; end++) {
        if (g_str_has_suffix(base, *end)) {
            return g_strndup(base, strlen(base) - strlen(*end));
        }
    }
    return g_steal_pointer(&base);
}

/* A plan holds it, and where it lies, so that who has a trace of the plan finds the file again. */
static char *traced_text(const char *text, gsize length, const char *file_name) {
    g_autofree char *path = g_canonicalize_filename(file_name, NULL);
    g_autofree char *whole = g_strndup(text, length);
    gsize head = strcspn(whole, "\n");
    const char *rest = whole + head + (whole[head] == '\n');
    if (g_str_has_prefix(rest, MODEL_TRACED_FILE)) {
        rest += strcspn(rest, "\n");
        rest += *rest == '\n';
    }
    return g_strdup_printf("%.*s\n" MODEL_TRACED_FILE "%s\n%s", (int)head, whole, path, rest);
}

static ModelNetwork *read_traced(const char *text, gsize length, const char *file_name,
                                 GError **error) {
    ModelTraced *traced = model_traced_read(text, length, file_name, error);
    if (!traced) {
        return NULL;
    }
    ModelNetwork *network = g_new0(ModelNetwork, 1);
    network->name = name_of(file_name);
    network->text = traced_text(text, length, file_name);
    network->family = &model_traced;
    network->traced = traced;
    network->seq = traced->tokens;
    network->rope_base = 10000;
    network->rotary_share = 1;
    return network;
}

static void refuse_key(const PlanIni *ini, const PlanIniEntry *entry, const ModelFamily *family,
                       GError **error) {
    g_auto(GStrv) keys = g_strsplit_set(family->keys, " |", -1);
    bool is_renamed = g_str_equal(entry->key, "unturned_every");
    g_autofree char *near = is_renamed ? g_strdup("; it is called no_rope_every now")
                                       : plan_did_you_mean(entry->key, (const char *const *)keys);
    g_autofree char *all = g_strdup_printf("; it has %s", family->keys);
    plan_ini_refuse(ini, entry, error, "family %s has no key '%s'%s", family->name, entry->key,
                    *near ? near : all);
}

ModelNetwork *model_network_read(const char *text, gsize length, const char *file_name,
                                 GError **error) {
    if (model_traced_is(text, length)) {
        return read_traced(text, length, file_name, error);
    }
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, file_name, error);
    if (!ini) {
        return NULL;
    }
    g_autoptr(ModelNetwork) network = g_new0(ModelNetwork, 1);
    network->name = name_of(file_name);
    network->text = g_strndup(text, length);
    network->rope_base = 10000;
    network->norm_eps = 1e-5; /* rms_norm_eps of Llama 2 and 3 */
    network->rotary_share = 1;
    if (!find_family(network, ini, error)) {
        return NULL;
    }
    const ModelFamily *family = network->family;
    bool is_tanh = model_family_has_key(family, "gelu") && family != &model_neox;
    network->gelu = is_tanh ? MODEL_GELU_TANH : MODEL_GELU_ERF;
    network->scores_in_memory = family == &model_t5; /* T5 was written so */
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        if (!g_str_equal(entry->section, "network")) {
            plan_ini_refuse(ini, entry, error, "'%s' stands outside [network]; move it there",
                            entry->key);
            return NULL;
        }
        if (g_str_equal(entry->key, "family")) {
            continue;
        }
        if (!model_family_has_key(family, entry->key)) {
            refuse_key(ini, entry, family, error);
            return NULL;
        }
        if (!read_entry(network, ini, entry, error)) {
            return NULL;
        }
    }
    if (!has_all_keys(ini, family, error) || !model_network_is_sound(network, ini, error)) {
        return NULL;
    }
    return g_steal_pointer(&network);
}
