#include "models/network.h"

#include <string.h>

#include "models/chunked-loss.h"
#include "models/config-json.h"
#include "plan/build.h"
#include "plan/file.h"
#include "plan/ini.h"

static const ModelFamily *const families[] = {&model_gpt,        &model_mpt,  &model_llama,
                                              &model_starcoder2, &model_neox, &model_opt,
                                              &model_phi,        &model_t5,   &model_mlp};

void model_network_free(ModelNetwork *network) {
    if (network) {
        g_free(network->name);
        g_free(network->text);
        g_free(network->dropouts);
        g_free(network);
    }
}

/* Bounds catch slips; products of shapes are bounded when a pass is emitted. */
static const struct {
    const char *key;
    gsize offset;
    uint64_t max;
} numbers[] = {
    {"layers", offsetof(ModelNetwork, layers), 10000},
    {"width", offsetof(ModelNetwork, width), 1 << 20},
    {"heads", offsetof(ModelNetwork, heads), 1 << 14},
    {"kv_heads", offsetof(ModelNetwork, kv_heads), 1 << 14},
    {"head_dim", offsetof(ModelNetwork, head_dim), 1 << 14},
    {"vocab", offsetof(ModelNetwork, vocab), 1 << 24},
    {"seq", offsetof(ModelNetwork, seq), 1 << 24},
    {"ffn", offsetof(ModelNetwork, ffn), 1 << 22},
    {"experts", offsetof(ModelNetwork, experts), 1 << 12},
    {"experts_per_token", offsetof(ModelNetwork, experts_per_token), 1 << 12},
    {"expert_ffn", offsetof(ModelNetwork, expert_ffn), 1 << 22},
    {"shared_ffn", offsetof(ModelNetwork, shared_ffn), 1 << 22},
    {"global_every", offsetof(ModelNetwork, global_every), 10000},
    {"unturned_every", offsetof(ModelNetwork, unturned_every), 10000},
};

static bool read_number(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                        unsigned row, GError **error) {
    uint64_t value;
    if (!plan_parse_u64(entry->value, &value) || value < 1 || value > numbers[row].max) {
        return plan_ini_refuse(ini, entry, error,
                               "%s must be a whole number from 1 to %" G_GUINT64_FORMAT
                               ", not '%s'",
                               entry->key, numbers[row].max, entry->value);
    }
    G_STRUCT_MEMBER(uint64_t, network, numbers[row].offset) = value;
    return true;
}

static const struct {
    const char *key;
    gsize offset;
} scales[] = {
    {"embed_scale", offsetof(ModelNetwork, embed_scale)},
    {"attention_scale", offsetof(ModelNetwork, attention_scale)},
    {"residual_scale", offsetof(ModelNetwork, residual_scale)},
    {"logits_scale", offsetof(ModelNetwork, logits_scale)},
    {"local_rope_base", offsetof(ModelNetwork, local_rope_base)},
};

static bool read_scale(ModelNetwork *network, const PlanIni *ini, const PlanIniEntry *entry,
                       unsigned row, GError **error) {
    double value;
    if (!plan_parse_double(entry->value, &value) || value < 1e-6 || value > 1e6) {
        return plan_ini_refuse(ini, entry, error, "%s must be a number from 1e-6 to 1e6, not '%s'",
                               entry->key, entry->value);
    }
    G_STRUCT_MEMBER(double, network, scales[row].offset) = value;
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
    {"mask_buffers", "yes", "no", offsetof(ModelNetwork, mask_buffers)},
    {"norm_weight", "from-one", "plain", offsetof(ModelNetwork, norms_from_one)},
    {"gate_up", "joined", "apart", offsetof(ModelNetwork, gate_up_joined)},
    {"block", "sequential", "parallel", offsetof(ModelNetwork, sequential)},
    {"gated", "yes", "no", offsetof(ModelNetwork, gated)},
    {"route_norm", "no", "yes", offsetof(ModelNetwork, keeps_scores)},
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
    const char *words[8]; /* NULL behind the last */
} enums[] = {
    {"loss",
     offsetof(ModelNetwork, loss),
     {[MODEL_LOSS_MODEL] = "model",
      [MODEL_LOSS_OPS] = "ops",
      [MODEL_LOSS_FP32_LOGITS] = "fp32-logits",
      [MODEL_LOSS_FP32] = "fp32",
      [MODEL_LOSS_METERED] = "metered",
      [MODEL_LOSS_KERNEL] = "kernel",
      [MODEL_LOSS_CHUNKED] = "chunked"}},
    {"loss_at",
     offsetof(ModelNetwork, loss_at),
     {[MODEL_LOSS_IN_MODEL] = "model",
      [MODEL_LOSS_IN_LOOP] = "loop",
      [MODEL_LOSS_IN_LOOP_HOLDING] = "loop-holding"}},
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
      [MODEL_ROPE_PARTIAL] = "partial"}},
    {"qkv",
     offsetof(ModelNetwork, qkv),
     {[MODEL_QKV_APART] = "apart", [MODEL_QKV_JOINED] = "joined", [MODEL_QKV_SLICED] = "sliced"}},
    {"norm_at",
     offsetof(ModelNetwork, norm_at),
     {[MODEL_NORM_BEFORE] = "before", [MODEL_NORM_AFTER] = "after", [MODEL_NORM_BOTH] = "both"}},
    {"gate",
     offsetof(ModelNetwork, gate),
     {[MODEL_GATE_SILU] = "silu",
      [MODEL_GATE_GELU_TANH] = "gelu-tanh",
      [MODEL_GATE_GELU_ERF] = "gelu-erf"}},
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
    for (unsigned i = 0; i < G_N_ELEMENTS(scales); i++) {
        if (g_str_equal(scales[i].key, entry->key)) {
            return read_scale(network, ini, entry, i, error);
        }
    }
    if (g_str_equal(entry->key, "attention")) {
        return read_attention(network, ini, entry, error);
    }
    if (g_str_equal(entry->key, "rope_scaling")) {
        return read_rope_scaling(network, ini, entry, error);
    }
    if (g_str_equal(entry->key, "rope_base")) {
        return (plan_parse_double(entry->value, &network->rope_base) && network->rope_base >= 1 &&
                network->rope_base <= 1e12) ||
               plan_ini_refuse(ini, entry, error,
                               "rope_base must be a number from 1 to 1e12, "
                               "not '%s'",
                               entry->value);
    }
    if (g_str_equal(entry->key, "rotary_share")) {
        return (plan_parse_double(entry->value, &network->rotary_share) &&
                network->rotary_share > 0 && network->rotary_share < 1) ||
               plan_ini_refuse(ini, entry, error,
                               "rotary_share must be a number above 0 and below 1, not '%s'",
                               entry->value);
    }
    if (g_str_equal(entry->key, "dropout")) {
        return (plan_parse_double(entry->value, &network->dropout) && network->dropout >= 0 &&
                network->dropout < 1) ||
               plan_ini_refuse(ini, entry, error,
                               "dropout must be a number from 0 to below 1, not '%s'",
                               entry->value);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (g_str_equal(numbers[i].key, entry->key)) {
            return read_number(network, ini, entry, i, error);
        }
    }
    g_assert_not_reached();
}

static bool is_word_of(const char *word, const char *words) {
    g_auto(GStrv) list = g_strsplit_set(words, " |", -1);
    return g_strv_contains((const char *const *)list, word);
}

static bool find_family(ModelNetwork *network, const PlanIni *ini, GError **error) {
    const PlanIniEntry *entry = plan_ini_find(ini, "network", "family");
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(families); i++) {
        g_string_append_printf(known, "%s%s", i ? ", " : "", families[i]->name);
        if (entry && g_str_equal(entry->value, families[i]->name)) {
            network->family = i;
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

uint64_t model_rotary_part(const ModelNetwork *network, uint64_t head_dim) {
    return (uint64_t)((double)head_dim * network->rotary_share);
}

/* Rotary embedding turns pairs of numbers. */
static bool head_is_even(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    uint64_t head_dim =
        network->head_dim ? network->head_dim : network->width / MAX(network->heads, 1);
    bool turns = is_word_of("rope_base", families[network->family]->keys);
    uint64_t turned = model_rotary_part(network, head_dim);
    if (!turns || (turned > 0 && turned % 2 == 0)) {
        return true;
    }
    if (turned < head_dim) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "rotary_share"), error,
                               "of a head's %" G_GUINT64_FORMAT " numbers %" G_GUINT64_FORMAT
                               " would be turned, and rotary embedding turns pairs; make them an "
                               "even number",
                               head_dim, turned);
    }
    const char *key = network->head_dim ? "head_dim" : "heads";
    return plan_ini_refuse(ini, plan_ini_find(ini, "network", key), error,
                           "a head of family %s has %" G_GUINT64_FORMAT
                           " numbers, and rotary embedding turns pairs; make them an even number",
                           families[network->family]->name, head_dim);
}

/* A block has one hidden layer or experts. */
static bool hidden_layer_is_sound(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    bool is_llama = families[network->family] == &model_llama;
    const PlanIniEntry *first = plan_ini_first(ini, "network");
    const PlanIniEntry *experts = plan_ini_find(ini, "network", "experts");
    const PlanIniEntry *ffn = plan_ini_find(ini, "network", "ffn");
    if (is_llama && !network->experts) {
        static const char *const theirs[] = {"experts_per_token", "expert_ffn", "shared_ffn",
                                             "route_norm"};
        for (unsigned i = 0; i < G_N_ELEMENTS(theirs); i++) {
            const PlanIniEntry *entry = plan_ini_find(ini, "network", theirs[i]);
            if (entry) {
                return plan_ini_refuse(ini, entry, error,
                                       "%s is of a network with experts; add experts, or remove it",
                                       theirs[i]);
            }
        }
        return ffn || plan_ini_refuse(ini, first, error,
                                      "[network] lacks 'ffn', the width of a block's hidden layer; "
                                      "add it, or experts, experts_per_token and expert_ffn");
    }
    if (!network->experts) {
        return true;
    }
    if (ffn) {
        return plan_ini_refuse(
            ini, ffn, error, "a block has experts or a hidden layer of ffn, not both; remove one");
    }
    if (!network->experts_per_token || !network->expert_ffn) {
        return plan_ini_refuse(ini, experts, error,
                               "a network with experts needs experts_per_token and expert_ffn");
    }
    if (network->experts_per_token > network->experts) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "experts_per_token"), error,
                               "a token goes to %" G_GUINT64_FORMAT
                               " experts, and there are %" G_GUINT64_FORMAT "; lower it",
                               network->experts_per_token, network->experts);
    }
    if (network->width % 8 || network->expert_ffn % 8) {
        const char *key = network->width % 8 ? "width" : "expert_ffn";
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", key), error,
                               "PyTorch's grouped product takes rows of 16 bytes or a multiple; "
                               "make %s a multiple of 8",
                               key);
    }
    return true;
}

static const char *eager_alone(const ModelNetwork *network);

static bool shape_is_sound(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    if (!hidden_layer_is_sound(network, ini, error)) {
        return false;
    }
    if (network->kv_heads && network->heads % network->kv_heads) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "kv_heads"), error,
                               "heads %" G_GUINT64_FORMAT " do not divide by %" G_GUINT64_FORMAT
                               " kv_heads; change one",
                               network->heads, network->kv_heads);
    }
    if (network->heads && !network->head_dim && network->width % network->heads) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "heads"), error,
                               "width %" G_GUINT64_FORMAT " does not divide by %" G_GUINT64_FORMAT
                               " heads; change one",
                               network->width, network->heads);
    }
    if (network->wide_softmax && !g_str_equal(families[network->family]->name, "llama")) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "attention"), error,
                               "attention = math-fp32 is of family llama; set attention = math");
    }
    if (network->rope != MODEL_ROPE_REAL && network->scores_in_memory) {
        const PlanIniEntry *rope = plan_ini_find(ini, "network", "rope");
        return plan_ini_refuse(ini, rope, error,
                               "rope = %s is known with attention's kernel alone; set "
                               "attention = kernel, or rope = real",
                               rope->value);
    }
    if (network->qkv != MODEL_QKV_APART && network->rope == MODEL_ROPE_COMPLEX) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "rope"), error,
                               "rope = complex is known of layers apart; set qkv = apart, or "
                               "rope = real");
    }
    if (network->qkv != MODEL_QKV_APART && network->qk_norm != MODEL_QK_NORM_NONE) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "qk_norm"), error,
                               "q and k are normalized behind layers of their own; set qkv = "
                               "apart, or qk_norm = none");
    }
    if (!network->global_every != !network->local_rope_base) {
        const char *key = network->global_every ? "global_every" : "local_rope_base";
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", key), error,
                               "global_every and local_rope_base go together; give both");
    }
    if (network->global_every && (network->rope != MODEL_ROPE_REAL || network->unturned_every)) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "global_every"), error,
                               "global_every is known with rope = real, of blocks that all turn");
    }
    if (network->experts && network->gate != MODEL_GATE_SILU) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "gate"), error,
                               "experts are opened by SiLU; set gate = silu");
    }
    if (network->residual_scale && network->norm_at != MODEL_NORM_BEFORE) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "residual_scale"), error,
                               "residual_scale is known of a block with its norms before; set "
                               "norm_at = before");
    }
    if (network->qk_norm == MODEL_QK_NORM_HEAD && network->scores_in_memory) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "qk_norm"), error,
                               "qk_norm = head is known with attention's kernel alone; set "
                               "attention = kernel");
    }
    if (network->rotary_share < 1 && network->scores_in_memory) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "rotary_share"), error,
                               "rotary_share below 1 is known with attention's kernel alone; set "
                               "attention = kernel");
    }
    bool is_recorded = !network->experts && network->qkv == MODEL_QKV_APART &&
                       !network->kv_repeated && network->rope == MODEL_ROPE_REAL &&
                       network->norm_at == MODEL_NORM_BEFORE && !eager_alone(network) &&
                       network->qk_norm != MODEL_QK_NORM_WIDTH && !network->scores_in_memory;
    if (network->code == MODEL_CODE_TRANSFORMERS && !is_recorded) {
        return plan_ini_refuse(
            ini, plan_ini_find(ini, "network", "code"), error,
            "code = transformers is known of a network without experts, with q, k "
            "and v by layers apart, groups of heads, attention's kernel, real "
            "rotary embedding, norms before and nothing of Granite, SmolLM3, Phi-3 or Gemma; set "
            "code = own");
    }
    if (network->loss == MODEL_LOSS_METERED && network->loss_at != MODEL_LOSS_IN_MODEL) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "loss_at"), error,
                               "loss = metered holds the logits anyhow; set loss_at = model");
    }
    if (network->alibi && network->scores_in_memory) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "positions"), error,
                               "positions = alibi belongs to attention's kernel; set attention = "
                               "kernel, or positions = learned");
    }
    return true;
}

ModelNetwork *model_network_read(const char *text, gsize length, const char *file_name,
                                 GError **error) {
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, file_name, error);
    if (!ini) {
        return NULL;
    }
    g_autoptr(ModelNetwork) network = g_new0(ModelNetwork, 1);
    g_autofree char *base = g_path_get_basename(file_name);
    network->name =
        g_str_has_suffix(base, ".ini") ? g_strndup(base, strlen(base) - 4) : g_strdup(base);
    network->text = g_strndup(text, length);
    network->rope_base = 10000;
    network->rotary_share = 1;
    if (!find_family(network, ini, error)) {
        return NULL;
    }
    const ModelFamily *family = families[network->family];
    bool is_tanh = is_word_of("gelu", family->keys) && family != &model_neox;
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
        if (!is_word_of(entry->key, family->keys)) {
            plan_ini_refuse(ini, entry, error, "family %s has no key '%s'; it has %s", family->name,
                            entry->key, family->keys);
            return NULL;
        }
        if (!read_entry(network, ini, entry, error)) {
            return NULL;
        }
    }
    if (!has_all_keys(ini, family, error) || !shape_is_sound(network, ini, error) ||
        !head_is_even(network, ini, error)) {
        return NULL;
    }
    return g_steal_pointer(&network);
}

static bool is_json(const char *text, const char *path) {
    return text[strspn(text, " \t\r\n")] == '{' || g_str_has_suffix(path, ".json");
}

/* A config.json is named after the folder it lies in. */
static char *name_of_config(const char *path) {
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    g_autofree char *folder = g_path_get_dirname(absolute);
    return g_str_equal(base, "config.json") ? g_path_get_basename(folder) : g_strdup(base);
}

/* The reader names a line of the text that was made; whoever wrote the JSON knows its fields. */
static void name_field(GError *error, const char *path, const char *ini) {
    g_autofree char *prefix = g_strconcat(path, ":", NULL);
    if (!g_str_has_prefix(error->message, prefix)) {
        return;
    }
    char *rest;
    guint64 line = g_ascii_strtoull(error->message + strlen(prefix), &rest, 10);
    g_auto(GStrv) lines = g_strsplit(ini, "\n", -1);
    const char *field =
        line > 0 && line <= g_strv_length(lines) ? strstr(lines[line - 1], " # ") : NULL;
    char *message = field ? g_strdup_printf("%s: field '%s'%s", path, field + strlen(" # "), rest)
                          : g_strdup_printf("%s%s", path, rest);
    g_free(error->message);
    error->message = message;
}

static bool sets_key(const char *line, const char *key) {
    gsize n = strlen(key);
    line += strspn(line, " \t");
    return strncmp(line, key, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

/* In the line that has the key, so that other lines keep their numbers, or in one more. */
static char *with_changes(const char *text, const char *const *changes) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *more = g_string_new(NULL);
    for (; *changes; changes++) {
        g_auto(GStrv) pair = g_strsplit(*changes, "=", 2);
        bool found = false;
        for (char **line = lines; *line; line++) {
            if (sets_key(*line, pair[0])) {
                g_free(*line);
                *line = g_strdup_printf("%s = %s", pair[0], pair[1]);
                found = true;
            }
        }
        if (!found) {
            g_string_append_printf(more, "%s = %s\n", pair[0], pair[1]);
        }
    }
    g_autofree char *changed = g_strjoinv("\n", lines);
    bool ends = *changed == 0 || g_str_has_suffix(changed, "\n") || more->len == 0;
    g_string_prepend(more, ends ? "" : "\n");
    g_string_prepend(more, changed);
    return g_string_free(more, FALSE);
}

static ModelNetwork *read_ini(const char *ini, gsize length, const char *path,
                              const char *const *changes, GError **error) {
    if (!changes || !*changes) {
        return model_network_read(ini, length, path, error);
    }
    g_autofree char *changed = with_changes(ini, changes);
    return model_network_read(changed, strlen(changed), path, error);
}

ModelNetwork *model_network_read_file(const char *path, GError **error) {
    return model_network_read_file_with(path, NULL, error);
}

static ModelNetwork *read_config(const char *text, gsize length, const char *path,
                                 const char *const *changes, GError **error) {
    g_autofree char *dropouts = NULL;
    g_autofree char *ini = model_config_json_to_ini(text, length, path, &dropouts, error);
    if (!ini) {
        return NULL;
    }
    g_autoptr(GError) cause = NULL;
    ModelNetwork *network = read_ini(ini, strlen(ini), path, changes, &cause);
    if (!network) {
        name_field(cause, path, ini);
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    g_free(network->name);
    network->name = name_of_config(path);
    network->dropouts = g_steal_pointer(&dropouts);
    network->from_config = true;
    return network;
}

ModelNetwork *model_network_read_file_with(const char *path, const char *const *changes,
                                           GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    if (!text) {
        return NULL;
    }
    ModelNetwork *network = is_json(text, path) ? read_config(text, length, path, changes, error)
                                                : read_ini(text, length, path, changes, error);
    if (!changes || !*changes) {
        return network;
    }
    g_autofree char *all = g_strjoinv(" ", (char **)changes);
    if (!network) {
        g_prefix_error(error, "with %s: ", all);
        return NULL;
    }
    char *name = g_strdup_printf("%s (%s)", network->name, all);
    g_free(network->name);
    network->name = name;
    return network;
}

/* The most elements that a tensor may have: a plan's file can say its bytes, and sums of many stay
 * inside 64 bits. */
#define MOST_ELEMENTS (UINT64_C(1) << 54)

static bool is_beyond(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t product;
    return !(g_uint64_checked_mul(&product, a, b) && g_uint64_checked_mul(&product, product, c) &&
             g_uint64_checked_mul(&product, product, d)) ||
           product > MOST_ELEMENTS;
}

static bool tensors_are_countable(const ModelNetwork *network, uint64_t batch, uint64_t seq,
                                  GError **error) {
    uint64_t heads = MAX(network->heads, 1), inner = heads * MAX(network->head_dim, 1);
    uint64_t of_pairs = network->experts_per_token * MAX(network->width, network->expert_ffn);
    uint64_t widest = MAX(MAX(MAX(network->vocab, network->ffn), network->shared_ffn),
                          MAX(MAX(4 * network->width, inner), of_pairs));
    if (is_beyond(batch, seq, widest, 1) || is_beyond(batch, heads, seq, seq)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "micro_batch %" G_GUINT64_FORMAT " and seq %" G_GUINT64_FORMAT
                    " make tensors of network %s that no memory holds; lower one of them",
                    batch, seq, network->name);
        return false;
    }
    return true;
}

PlanGraph *model_network_emit(const ModelNetwork *network, const ModelPass *pass, GError **error) {
    uint64_t tokens_per_sequence = pass->seq ? pass->seq : network->seq;
    if (network->vocab && tokens_per_sequence > network->seq) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "seq %" G_GUINT64_FORMAT " is longer than the %" G_GUINT64_FORMAT
                    " positions of network %s; lower seq, or edit the network",
                    tokens_per_sequence, network->seq, network->name);
        return NULL;
    }
    if (!tensors_are_countable(network, pass->batch, tokens_per_sequence, error)) {
        return NULL;
    }
    PlanGraph *graph = plan_graph_new(pass->dtype);
    graph->fused = pass->kernels == PLAN_KERNELS_FUSED;
    graph->compiled = pass->kernels == PLAN_KERNELS_COMPILED;
    graph->joins_blocks = graph->fused && !pass->is_checkpointed;
    graph->float8 = (PlanGraphFloat8)pass->float8;
    graph->compiled_norm = pass->compiled_norm;
    graph->compiled_loss = pass->compiled_loss;
    graph->autocasts = pass->autocast != PLAN_AUTOCAST_NONE;
    graph->lower = pass->autocast == PLAN_AUTOCAST_FP16 ? PLAN_FP16 : PLAN_BF16;
    graph->keeps_copies = pass->keeps_copies;
    graph->rms_norm_of_ops = pass->rms_norm_of_ops;
    graph->before_2_1 = pass->before_2_1;
    graph->trained = pass->trained;
    graph->tensor = MAX(pass->tensor, 1);
    graph->whole_ends = pass->whole_ends;
    graph->samples = pass->batch;
    graph->tokens = pass->batch * tokens_per_sequence;
    families[network->family]->emit(network, pass->batch, tokens_per_sequence, graph);
    return graph;
}

/* T5's scores are not scaled; before 2.1 PyTorch's kernel always scaled them. */
static bool pytorch_has_kernel(const ModelNetwork *network, const PlanStrategy *strategy,
                               GError **error) {
    bool is_old = strategy->pytorch == PLAN_PYTORCH_2_0 || strategy->pytorch == PLAN_PYTORCH_1_13;
    bool asks = families[network->family] == &model_t5 && !network->scores_in_memory;
    if (is_old && asks) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: scaled_dot_product_attention takes no scale before PyTorch 2.1, and T5 "
                    "has none; set attention = math in the network, or pytorch = 2.4",
                    network->name);
    }
    return !is_old || !asks;
}

/* What of a Llama only its eager kernels were recorded with; NULL: nothing. */
static const char *eager_alone(const ModelNetwork *network) {
    bool is_scaled = network->embed_scale || network->attention_scale || network->residual_scale ||
                     network->logits_scale;
    return is_scaled ? "embed_scale, attention_scale, residual_scale and logits_scale"
           : network->unturned_every             ? "unturned_every"
           : network->gate_up_joined             ? "gate_up = joined"
           : network->norms_from_one             ? "norm_weight = from-one"
           : network->gate != MODEL_GATE_SILU    ? "gate = gelu"
           : network->norm_at == MODEL_NORM_BOTH ? "norm_at = both"
           : network->global_every               ? "global_every"
                                                 : NULL;
}

static bool is_eager_alone(const ModelNetwork *network, GError **error) {
    const char *why = eager_alone(network);
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: only eager kernels are known of a network with %s; set kernels = eager",
                    network->name, why);
    }
    return why;
}

/* What a compiler makes of a block was recorded of GPT's and Llama's, with attention in one kernel
 * and without dropout. */
static bool can_be_compiled(const ModelNetwork *network, GError **error) {
    const ModelFamily *family = families[network->family];
    const char *why = NULL;
    if (family != &model_gpt && family != &model_mpt && family != &model_llama) {
        why = "a family other than gpt, mpt and llama; set kernels = eager";
    } else if (network->experts) {
        why = "experts; set kernels = eager";
    } else if (network->scores_in_memory) {
        why = "attention with its scores in memory; set attention = kernel in the network, or "
              "kernels = eager";
    } else if (network->dropout > 0) {
        why = "dropout; set dropout = 0 in the network, or kernels = eager";
    }
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: kernels = compiled does not know %s",
                    network->name, why);
    }
    return !why;
}

/* What was recorded of layers in float8: a Llama's, without biases. */
static bool can_be_in_float8(const ModelNetwork *network, GError **error) {
    const char *why = families[network->family] != &model_llama ? "a family other than llama"
                      : network->qkv_bias ? "biases of q, k and v; set qkv_bias = no"
                      : network->norm_at != MODEL_NORM_BEFORE
                          ? "norms behind the layers; set norm_at = before"
                          : eager_alone(network);
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: float8 does not know %s, or float8 = none", network->name, why);
    }
    return !why;
}

/* A tuned stack turns a part of each head by another kernel than the one that is modelled, and has
 * experts' rows gathered and scored inside of their products. */
static bool can_be_fused(const ModelNetwork *network, GError **error) {
    const char *why = network->experts            ? "experts"
                      : network->rotary_share < 1 ? "rotary_share below 1"
                                                  : NULL;
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: kernels = fused does not know %s; set kernels = eager", network->name,
                    why);
    }
    return !why;
}

static bool loss_is_known(const ModelNetwork *network, const PlanStrategy *strategy,
                          GError **error) {
    const ModelFamily *family = families[network->family];
    bool known = family == &model_gpt || family == &model_mpt || family == &model_llama;
    return network->loss != MODEL_LOSS_CHUNKED ||
           model_loss_can_be_chunked(network, strategy, known, error);
}

/* What was recorded of them, and of no older PyTorch than that which has the grouped product. */
static bool can_have_experts(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    const char *why = s->autocast != PLAN_AUTOCAST_NONE
                          ? "under autocast; set autocast = none, and param_dtype = bf16"
                      : s->pytorch != PLAN_PYTORCH_CURRENT
                          ? "of a PyTorch before 2.8, which lacks their grouped product; set "
                            "pytorch = current"
                      : plan_strategy_param_dtype(s) == PLAN_FP16
                          ? "in fp16, which PyTorch's grouped product does not take; set "
                            "param_dtype = bf16"
                      : s->lora_rank ? "with adapters; leave lora_rank at 0"
                      : s->freeze.choice == PLAN_FREEZE_MODULE
                          ? "with parameters that are frozen; set freeze = none"
                          : NULL;
    if (network->experts && why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: experts are not known %s",
                    network->name, why);
        return false;
    }
    return true;
}

/* ---- what is trained ------------------------------------------------------------------------ */

static const char *lora_pattern(const PlanVariant *on) {
    switch ((PlanLoraOn)on->choice) {
    case PLAN_LORA_ON_QV:
        return ".*\\.(q|v|qkv|Wqkv|q_proj|v_proj)";
    case PLAN_LORA_ON_ALL_LINEAR:
        return ".*";
    case PLAN_LORA_ON_MODULE:
        return on->text;
    }
    g_assert_not_reached();
}

static PlanGraphTrained trained_of(const PlanStrategy *s, GRegex *frozen, GRegex *lora_on) {
    return (PlanGraphTrained){.frozen = frozen,
                              .lora_rank = s->lora_rank,
                              .lora_scale = s->lora_alpha / (double)MAX(s->lora_rank, 1),
                              .lora_on = lora_on,
                              .lora_wide = s->lora_rank && s->lora_dtype == PLAN_LORA_FP32};
}

/* Else a slip of the pen would be planned as a run that trains everything, or nothing. */
static bool trains_as_asked(const PlanGraph *graph, const PlanStrategy *s, GError **error) {
    unsigned n_trained = 0, n_adapters = 0, n_named = 0;
    for (guint i = 0; i < graph->parameters->len; i++) {
        const PlanGraphParameter *p = plan_graph_at(graph->parameters, PlanGraphParameter, i);
        n_trained += !p->frozen;
        n_named +=
            graph->trained.frozen && plan_graph_is_in(graph, p->module, graph->trained.frozen);
        n_adapters += g_str_has_suffix(p->name, ".lora_A.weight");
    }
    const char *hint = "`foreshard units NETWORK --tree` lists the modules";
    if (s->lora_rank && !n_adapters) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "lora_on=%s names no linear layer of a block that takes an adapter (of family "
                    "mlp none does); %s",
                    lora_pattern(&s->lora_on), hint);
        return false;
    }
    if (graph->trained.frozen && !n_named) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "freeze=module=%s is the whole name or class of no module that has "
                    "parameters; %s",
                    s->freeze.text, hint);
        return false;
    }
    if (!n_trained) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "freeze=module=%s leaves nothing to train; %s", s->freeze.text, hint);
    }
    return n_trained > 0;
}

/* Matrices one behind the other want an adapter whose product leaves them so. */
static bool takes_adapters(const ModelNetwork *network, GError **error) {
    bool is_neox = families[network->family] == &model_neox;
    if (is_neox || network->gate_up_joined) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: lora_rank does not know %s; leave lora_rank at 0", network->name,
                    is_neox ? "a layer that gives q, k and v at once, as family neox has it"
                            : "gate_up = joined");
        return false;
    }
    return true;
}

/* How ranks share layers is recorded of torchtitan's plan for a Llama. */
static bool can_be_shared(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    uint64_t kv_heads = n->kv_heads ? n->kv_heads : n->heads, seq = s->seq ? s->seq : n->seq;
    const struct {
        const char *name;
        uint64_t number;
    } parts[] = {{"heads", n->heads},
                 {"kv_heads", kv_heads},
                 {"ffn", n->ffn},
                 {"vocab", n->vocab},
                 {"seq", seq}};
    const char *why = NULL;
    if (families[n->family] != &model_llama) {
        why = "a family other than llama";
    } else if (n->experts) {
        why = "a hidden layer of experts";
    } else if (eager_alone(n)) {
        why = eager_alone(n);
    } else if (n->tied) {
        why = "a head that is the embedding; set tied = no";
    } else if (n->qkv != MODEL_QKV_APART || n->qkv_bias) {
        why = "q, k and v of one layer, or with biases; set qkv = apart and qkv_bias = no";
    } else if (n->qk_norm != MODEL_QK_NORM_NONE || n->norm_at != MODEL_NORM_BEFORE) {
        why = "norms of q and k, or norms behind the layers; set qk_norm = none and norm_at = "
              "before";
    } else if (n->loss == MODEL_LOSS_METERED || n->loss == MODEL_LOSS_KERNEL ||
               n->loss == MODEL_LOSS_CHUNKED) {
        why = "a loss but PyTorch's own; set loss = ops or fp32";
    }
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: tensor=%" G_GUINT64_FORMAT " does not know %s, or tensor=1", n->name,
                    s->tensor, why);
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i].number % s->tensor) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s: tensor=%" G_GUINT64_FORMAT " does not divide %s (%" G_GUINT64_FORMAT
                        "); set a tensor that does",
                        n->name, s->tensor, parts[i].name, parts[i].number);
            return false;
        }
    }
    return true;
}

PlanGraph *model_network_emit_for(const ModelNetwork *network, const PlanStrategy *strategy,
                                  GError **error) {
    if (!pytorch_has_kernel(network, strategy, error) ||
        !can_have_experts(network, strategy, error) || !loss_is_known(network, strategy, error) ||
        (strategy->kernels != PLAN_KERNELS_EAGER && is_eager_alone(network, error)) ||
        (strategy->kernels == PLAN_KERNELS_COMPILED && !can_be_compiled(network, error)) ||
        (strategy->kernels == PLAN_KERNELS_FUSED && !can_be_fused(network, error)) ||
        (strategy->float8 && !can_be_in_float8(network, error)) ||
        (strategy->lora_rank && !takes_adapters(network, error)) ||
        (strategy->tensor > 1 && !can_be_shared(network, strategy, error))) {
        return NULL;
    }
    g_autoptr(GRegex) frozen = NULL, lora_on = NULL;
    if (strategy->freeze.choice == PLAN_FREEZE_MODULE) {
        frozen = plan_graph_whole_regex(strategy->freeze.text);
    }
    if (strategy->lora_rank) {
        lora_on = plan_graph_whole_regex(lora_pattern(&strategy->lora_on));
    }
    ModelPass pass = {.batch = strategy->micro_batch,
                      .seq = strategy->seq,
                      .tensor = strategy->tensor,
                      .whole_ends = strategy->tensor_plan == PLAN_TENSOR_KEMPNERFORGE,
                      .dtype = plan_strategy_param_dtype(strategy),
                      .autocast = strategy->autocast,
                      .keeps_copies = strategy->flavour != PLAN_FLAVOUR_FSDP1,
                      .kernels = (PlanKernels)strategy->kernels,
                      .float8 = (PlanFloat8)strategy->float8,
                      .compiled_norm = strategy->compile != PLAN_COMPILE_BLOCK,
                      .compiled_loss = plan_strategy_is_one_program(strategy),
                      .rms_norm_of_ops = strategy->rms_norm == PLAN_RMS_NORM_OPS,
                      .before_2_1 = strategy->pytorch >= PLAN_PYTORCH_2_0,
                      .trained = trained_of(strategy, frozen, lora_on),
                      .is_checkpointed = strategy->checkpointing.choice != PLAN_CHECKPOINTING_NONE};
    g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, error);
    if (!graph || !trains_as_asked(graph, strategy, error) ||
        !model_loss_is_chunked_as_known(graph, network->name, error)) {
        return NULL;
    }
    g_autofree bool *joined =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 ? plan_units_joined(graph, strategy) : NULL;
    if (joined) { /* walked again: what autograd keeps hangs on which units are trained */
        pass.trained.joined = joined;
        plan_graph_free(graph);
        graph = model_network_emit(network, &pass, error);
        g_assert(graph);
    }
    graph->trained.joined = NULL;
    graph->trained.frozen = graph->trained.lora_on = NULL; /* nothing more is declared */
    return g_steal_pointer(&graph);
}
