#include "models/sound.h"

#include "models/known.h"

/* What two keys must not say beside each other. */
typedef struct {
    bool is_wrong;
    const char *key, *why; /* whose line is named; what to set */
} Rule;

/* The first that is wrong is told. */
static bool are_kept(const Rule *rules, unsigned n, const PlanIni *ini, GError **error) {
    for (unsigned i = 0; i < n; i++) {
        if (rules[i].is_wrong) {
            const PlanIniEntry *entry = plan_ini_find(ini, "network", rules[i].key);
            return plan_ini_refuse(ini, entry, error, "%s", rules[i].why);
        }
    }
    return true;
}

static uint64_t width_of_head(const ModelNetwork *n) {
    return n->head_dim ? n->head_dim : n->width / MAX(n->heads, 1);
}

/* Rotary embedding rotates pairs of numbers. */
static bool head_is_even(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    uint64_t head_dim = width_of_head(network);
    bool turns = model_family_has_key(network->family, "rope_base") && !network->kv_lora_rank;
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
                           network->family->name, head_dim);
}

/* The first of these keys that stands in the file; NULL: none does. */
static const PlanIniEntry *first_of(const PlanIni *ini, const char *const *keys) {
    const PlanIniEntry *entry = NULL;
    for (; *keys && !entry; keys++) {
        entry = plan_ini_find(ini, "network", *keys);
    }
    return entry;
}

static bool dense_is_sound(const PlanIni *ini, GError **error) {
    static const char *const of_experts[] = {"experts_per_token", "expert_ffn", "shared_ffn",
                                             "dense_layers",      "score",      "expert_groups",
                                             "route_scale",       "route_bias", "route_norm",
                                             "groups_per_token",  "routing",    NULL};
    const PlanIniEntry *entry = first_of(ini, of_experts);
    if (entry) {
        return plan_ini_refuse(ini, entry, error,
                               "%s is of a network with experts; add experts, or remove it",
                               entry->key);
    }
    return plan_ini_find(ini, "network", "ffn") ||
           plan_ini_refuse(ini, plan_ini_first(ini, "network"), error,
                           "[network] lacks 'ffn', the width of a block's hidden layer; add it, or "
                           "experts, experts_per_token and expert_ffn");
}

static bool experts_are_sound(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    const PlanIniEntry *ffn = plan_ini_find(ini, "network", "ffn");
    const Rule rules[] = {
        {ffn && !network->dense_layers, "ffn",
         "a block has experts or a hidden layer of ffn, not both; remove one, or say how many "
         "blocks have the latter (dense_layers)"},
        {network->dense_layers && !ffn, "dense_layers",
         "dense_layers blocks have a hidden layer; give its width, ffn"},
        {!network->experts_per_token || !network->expert_ffn, "experts",
         "a network with experts needs experts_per_token and expert_ffn"},
    };
    if (!are_kept(rules, G_N_ELEMENTS(rules), ini, error)) {
        return false;
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

/* A block has one hidden layer or experts. */
static bool hidden_layer_is_sound(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    return network->experts                  ? experts_are_sound(network, ini, error)
           : network->family == &model_llama ? dense_is_sound(ini, error)
                                             : true;
}

static bool routing_is_sound(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    uint64_t groups = n->expert_groups, each = groups ? n->experts / groups : 0;
    const Rule rules[] = {
        {n->dense_layers && n->dense_layers >= n->layers, "dense_layers",
         "dense_layers leaves no block to have experts; lower it"},
        {!groups != !n->groups_per_token, groups ? "expert_groups" : "groups_per_token",
         "expert_groups and groups_per_token are of each other; give both"},
        {groups && (n->experts % groups || each < 2), "expert_groups",
         "groups are scored by their two best experts; set expert_groups so that each has as many "
         "as the next, two or more"},
        {groups &&
             (n->groups_per_token > groups || n->groups_per_token * each < n->experts_per_token),
         "groups_per_token",
         "a token's experts are of groups_per_token of all groups; set it so that these are as "
         "many, and no more than there are"},
    };
    return are_kept(rules, G_N_ELEMENTS(rules), ini, error);
}

/* Latent attention was recorded with torchtitan's modules only, which have none of these. */
static const char *not_known_with_latent(const ModelNetwork *n) {
    return n->qkv_bias                        ? "qkv_bias"
           : n->qkv != MODEL_QKV_APART        ? "qkv"
           : n->kv_repeated                   ? "kv"
           : n->qk_norm != MODEL_QK_NORM_NONE ? "qk_norm"
           : n->window                        ? "window"
           : n->global_every                  ? "global_every"
           : n->no_rope_every                 ? "no_rope_every"
           : n->norm_at != MODEL_NORM_BEFORE  ? "norm_at"
           : n->norms_from_one                ? "norm_weight"
           : n->code != MODEL_CODE_OWN        ? "code"
           : n->scores_in_memory              ? "attention"
           : n->embed_scale                   ? "embed_scale"
           : n->residual_scale                ? "residual_scale"
           : n->logits_scale                  ? "logits_scale"
           : n->gate_up_joined                ? "gate_up"
           : n->gate != MODEL_GATE_SILU       ? "gate"
                                              : NULL;
}

static bool latent_is_sound(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    static const char *const key = "kv_lora_rank";
    uint64_t of_q = n->qk_nope_head_dim + n->qk_rope_head_dim;
    const Rule rules[] = {
        {!n->qk_nope_head_dim || !n->qk_rope_head_dim || !n->v_head_dim, key,
         "latent attention needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim"},
        {n->head_dim || n->kv_heads, key,
         "latent attention has heads of qk_nope_head_dim and qk_rope_head_dim, as many of keys as "
         "of queries; remove head_dim and kv_heads"},
        {n->rope != MODEL_ROPE_COMPLEX, key,
         "latent attention turns pairs as complex numbers; set rope = complex"},
        {n->qk_rope_head_dim % 2, key, "pairs are turned; make qk_rope_head_dim an even number"},
        {of_q % 8 || n->v_head_dim % 8, key,
         "attention's kernel takes heads of 16 bytes or a multiple; make qk_nope_head_dim + "
         "qk_rope_head_dim and v_head_dim multiples of 8"},
        {of_q == n->v_head_dim, key,
         "heads of v as long as those of q take another kernel, which is not known here; change "
         "v_head_dim"},
    };
    if (!are_kept(rules, G_N_ELEMENTS(rules), ini, error)) {
        return false;
    }
    const char *other = not_known_with_latent(n);
    return !other || plan_ini_refuse(ini, plan_ini_find(ini, "network", other), error,
                                     "latent attention is known of a plain Llama otherwise, not "
                                     "with this %s; leave it out",
                                     other);
}

static bool has_nothing_latent(const PlanIni *ini, GError **error) {
    static const char *const of_latent[] = {"q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                            "v_head_dim", NULL};
    const PlanIniEntry *entry = first_of(ini, of_latent);
    return !entry ||
           plan_ini_refuse(ini, entry, error,
                           "%s is of latent attention; add kv_lora_rank, or remove it", entry->key);
}

/* All of what makes one: caps, its scores in memory, and every other block with a window. */
static bool is_gemma2(const ModelNetwork *n) {
    return n->attention_cap > 0 && n->logits_cap > 0 && n->scores_in_memory && n->wide_softmax &&
           n->norms_from_one && n->norm_at == MODEL_NORM_BOTH && n->embed_scale > 0 &&
           n->qk_norm == MODEL_QK_NORM_NONE && !n->experts && n->window && n->global_every &&
           !n->local_rope_base && !n->cache && n->window_by == MODEL_WINDOW_BY_MASK;
}

/* A Llama otherwise. */
static bool is_first_olmo(const ModelNetwork *n) {
    return n->norms_bare && n->code == MODEL_CODE_TRANSFORMERS && n->norm_at == MODEL_NORM_BEFORE &&
           n->qk_norm == MODEL_QK_NORM_NONE && n->gate == MODEL_GATE_SILU && !n->experts &&
           !n->window && !n->global_every && !n->no_rope_every && !n->residual_scale &&
           !n->embed_scale && !n->logits_scale && !n->gate_up_joined && !n->qkv_bias &&
           !n->scores_in_memory;
}

/* What all that turn pairs have in common. */
static bool turns_plain_pairs(const ModelNetwork *n) {
    return n->rope == MODEL_ROPE_PAIRS && n->code == MODEL_CODE_TRANSFORMERS &&
           n->qkv == MODEL_QKV_APART && n->qk_norm == MODEL_QK_NORM_NONE &&
           n->gate == MODEL_GATE_SILU && !n->residual_scale && !n->embed_scale && !n->experts &&
           !n->cache && !n->kv_repeated && !n->scores_in_memory;
}

/* And all but Cohere: every block looks back all the way and turns, and nothing is scaled. */
static bool is_plain_beside_pairs(const ModelNetwork *n) {
    return turns_plain_pairs(n) && !n->norms_from_one && !n->norms_bare && !n->norms_centred &&
           !n->logits_scale && !n->window && !n->global_every && !n->no_rope_every;
}

/* GLM, or GLM-4 with its norms at both ends. */
static bool is_glm(const ModelNetwork *n) {
    return is_plain_beside_pairs(n) && n->gate_up_joined &&
           (n->norm_at == MODEL_NORM_BEFORE || n->norm_at == MODEL_NORM_BOTH);
}

/* Cohere, or with a window Cohere 2, whose blocks that look back all the way turn nothing. */
static bool is_cohere(const ModelNetwork *n) {
    bool are_places_theirs = n->no_rope_every == n->global_every && !n->local_rope_base &&
                             !n->window == !n->global_every && !n->global_first;
    return turns_plain_pairs(n) && n->norm_at == MODEL_NORM_ONCE && n->norms_centred &&
           n->logits_scale > 0 && !n->qkv_bias && !n->gate_up_joined && n->rotary_share >= 1 &&
           are_places_theirs;
}

/* ERNIE 4.5, or with other norms Helium; Llamas otherwise. */
static bool is_ernie_or_helium(const ModelNetwork *n) {
    return is_plain_beside_pairs(n) && n->norm_at == MODEL_NORM_BEFORE && !n->qkv_bias &&
           !n->gate_up_joined && n->rotary_share >= 1;
}

static bool turns_recorded_pairs(const ModelNetwork *n) {
    return is_glm(n) || is_cohere(n) || is_ernie_or_helium(n);
}

/* All of what makes one, whose experts and attention are not to be had without each other. */
static bool is_gpt_oss(const ModelNetwork *n) {
    bool in_groups = n->kv_heads > 1 && n->kv_heads < n->heads;
    bool is_plain = n->norm_at == MODEL_NORM_BEFORE && n->qk_norm == MODEL_QK_NORM_NONE &&
                    n->gate == MODEL_GATE_SILU && !n->norms_from_one && !n->residual_scale &&
                    !n->embed_scale && !n->logits_scale && !n->logits_cap && !n->attention_cap;
    bool are_experts_theirs = n->experts && !n->shared_ffn && !n->dense_layers &&
                              !n->keeps_scores && !n->routes_in_turn && !n->scores_apart &&
                              !n->route_bias && !n->route_scale && !n->expert_groups;
    bool are_places_theirs = n->window && n->global_every && !n->global_first &&
                             !n->local_rope_base && !n->no_rope_every &&
                             n->window_by == MODEL_WINDOW_BY_MASK && n->rope == MODEL_ROPE_REAL;
    return n->sinks && n->code == MODEL_CODE_TRANSFORMERS && n->scores_in_memory &&
           !n->wide_softmax && n->qkv_bias && n->qkv == MODEL_QKV_APART && !n->kv_repeated &&
           !n->cache && in_groups && is_plain && are_experts_theirs && are_places_theirs;
}

/* Norms before attention and the hidden layer, as most have them, or behind and of each head, as
 * EXAONE 4; or Gemma's, whose other ways come with its norms. */
static bool has_recorded_norms(const ModelNetwork *n) {
    bool of_head = n->qk_norm == MODEL_QK_NORM_HEAD;
    bool is_exaone = n->norm_at == MODEL_NORM_AFTER && of_head && !n->experts &&
                     n->gate == MODEL_GATE_SILU && n->no_rope_every == n->global_every &&
                     !n->window == !n->global_every && !n->global_first;
    bool is_arcee = n->gate == MODEL_GATE_NONE && n->qk_norm == MODEL_QK_NORM_NONE && !n->experts &&
                    !n->window && !n->no_rope_every && !n->residual_scale && !n->gate_up_joined &&
                    !n->qkv_bias;
    bool is_olmo = n->norm_at == MODEL_NORM_AFTER && n->qk_norm == MODEL_QK_NORM_WIDTH &&
                   !n->experts && !n->no_rope_every && n->gate == MODEL_GATE_SILU &&
                   !n->norms_from_one && !n->window == !n->global_every;
    bool is_plain = (is_exaone || n->norm_at == MODEL_NORM_BEFORE) &&
                    n->qk_norm != MODEL_QK_NORM_WIDTH && (is_arcee || n->gate == MODEL_GATE_SILU) &&
                    n->local_rope_base == 0;
    bool is_gemma = n->norms_from_one && !n->experts && n->embed_scale > 0 && !n->attention_cap &&
                    (of_head ? n->norm_at == MODEL_NORM_BOTH && n->local_rope_base > 0
                             : n->norm_at == MODEL_NORM_BEFORE && !n->local_rope_base);
    bool is_olmoe = n->norm_at == MODEL_NORM_BEFORE && n->qk_norm == MODEL_QK_NORM_WIDTH &&
                    n->experts && !n->window && !n->no_rope_every && !n->residual_scale &&
                    !n->embed_scale && !n->logits_scale;
    return is_gemma2(n) || (n->norms_from_one ? is_gemma : is_olmo || is_olmoe || is_plain);
}

/* Whether transformers' modules of this kind were recorded. Phi-3 has one layer for q, k and v, one
 * for gate and up, and joins an empty rest to what it rotates. */
static bool is_recorded_of_transformers(const ModelNetwork *network) {
    if (network->sinks || network->rope == MODEL_ROPE_PAIRS) {
        return is_gpt_oss(network) || turns_recorded_pairs(network);
    }
    bool is_mixtral = network->experts && network->qk_norm == MODEL_QK_NORM_NONE;
    bool are_experts_theirs =
        !network->experts ||
        (!network->shared_ffn && !network->qkv_bias && !network->routes_in_turn &&
         !network->dense_layers && !network->scores_apart && !network->route_bias &&
         !network->route_scale && !network->expert_groups &&
         !(is_mixtral && network->keeps_scores));
    bool is_phi3 = network->gate_up_joined && network->qkv == MODEL_QKV_SLICED &&
                   network->rope == MODEL_ROPE_PARTIAL;
    bool is_apart = !network->gate_up_joined && network->qkv == MODEL_QKV_APART &&
                    network->rope == MODEL_ROPE_REAL;
    return are_experts_theirs && (is_phi3 || is_apart) && has_recorded_norms(network) &&
           !network->kv_repeated && (!network->scores_in_memory || is_gemma2(network));
}

static bool heads_divide(const ModelNetwork *network, const PlanIni *ini, GError **error) {
    if (network->kv_heads && network->heads % network->kv_heads) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "kv_heads"), error,
                               "heads %" G_GUINT64_FORMAT " do not divide by %" G_GUINT64_FORMAT
                               " kv_heads; change one",
                               network->heads, network->kv_heads);
    }
    if (network->heads && !network->head_dim && !network->kv_lora_rank &&
        network->width % network->heads) {
        return plan_ini_refuse(ini, plan_ini_find(ini, "network", "heads"), error,
                               "width %" G_GUINT64_FORMAT " does not divide by %" G_GUINT64_FORMAT
                               " heads; change one",
                               network->width, network->heads);
    }
    return true;
}

/* Attention in plain tensors was recorded of few networks. */
static bool scores_fit(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    bool in_memory = n->scores_in_memory;
    const Rule rules[] = {
        {in_memory && n->heads > 1 && width_of_head(n) == 1, "heads",
         "heads of one number are not planned with their scores in memory, for PyTorch sees their "
         "rows as columns; set attention = kernel, or fewer or wider heads"},
        {n->wide_softmax && n->family != &model_llama && n->family != &model_t5, "attention",
         "attention = math-fp32 is of families llama and t5; set attention = math"},
        {n->rope == MODEL_ROPE_COMPLEX && in_memory, "rope",
         "rope = complex is known with attention's kernel alone; set attention = kernel, or rope = "
         "real"},
        {n->rope == MODEL_ROPE_PARTIAL && in_memory, "rope",
         "rope = partial is known with attention's kernel alone; set attention = kernel, or rope = "
         "real"},
        {(n->attention_cap || n->logits_cap) &&
             (n->code != MODEL_CODE_TRANSFORMERS || !is_gemma2(n)),
         n->attention_cap ? "attention_cap" : "logits_cap",
         "attention_cap and logits_cap are known of transformers' own Gemma 2 alone, all of it; "
         "leave them out"},
        {n->norms_bare && !is_first_olmo(n), "norm_weight",
         "norm_weight = none is known of transformers' own OLMo alone, a Llama otherwise; set "
         "norm_weight = plain"},
        {n->sinks && !is_gpt_oss(n), "sinks",
         "sinks are known of transformers' own gpt-oss alone, all of it; set sinks = no"},
        {n->window && in_memory && !n->attention_cap && !n->sinks, "window",
         "a window is known with attention's kernel alone; set attention = kernel"},
        {n->qk_norm == MODEL_QK_NORM_HEAD && in_memory, "qk_norm",
         "qk_norm = head is known with attention's kernel alone; set attention = kernel"},
        {n->rotary_share < 1 && in_memory, "rotary_share",
         "rotary_share below 1 is known with attention's kernel alone; set attention = kernel"},
        {n->target_seq && !in_memory, "target_seq",
         "targets of a length of their own are known with scores in memory; set attention = math"},
        {n->alibi && in_memory, "positions",
         "positions = alibi belongs to attention's kernel; set attention = kernel, or positions = "
         "learned"},
    };
    return are_kept(rules, G_N_ELEMENTS(rules), ini, error);
}

/* Rotary embedding and windows: keys that do not go together. */
static bool places_fit(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    bool is_joined = n->qkv != MODEL_QKV_APART;
    const Rule rules[] = {
        {(n->norms_centred || n->norm_at == MODEL_NORM_ONCE) && !is_cohere(n),
         n->norms_centred ? "norm_weight" : "norm_at",
         "norm_weight = centred and norm_at = once are known of transformers' own Cohere alone, "
         "all of it; leave them out"},
        {n->norms_widened && !is_ernie_or_helium(n), "norm_weight",
         "norm_weight = widened is known of transformers' own Helium alone, a Llama that turns "
         "pairs otherwise; set norm_weight = plain"},
        {n->rope == MODEL_ROPE_PAIRS && !turns_recorded_pairs(n), "rope",
         "rope = pairs is known of transformers' own GLM, GLM-4, Cohere, ERNIE 4.5 and Helium "
         "alone, all of it; set rope = real"},
        {n->rotary_share < 1 && n->family == &model_llama && n->rope != MODEL_ROPE_PAIRS,
         "rotary_share",
         "family llama turns a part of each head with rope = pairs alone; leave rotary_share out"},
        {n->rope == MODEL_ROPE_COMPLEX && is_joined, "rope",
         "rope = complex is known of layers apart; set qkv = apart, or rope = real"},
        {n->qk_norm != MODEL_QK_NORM_NONE && is_joined, "qk_norm",
         "q and k are normalized behind layers of their own; set qkv = apart, or qk_norm = none"},
        {n->local_rope_base && !n->global_every, "local_rope_base",
         "local_rope_base is of the blocks between those that global_every counts; give it too"},
        {n->global_every && !n->local_rope_base && !n->window, "global_every",
         "global_every says which blocks have no window and no local_rope_base; give one of them"},
        {n->global_first && !n->global_every, "global_at",
         "global_at says which of so many blocks looks back all the way; give global_every too"},
        {n->window == 1, "window", "window must be at least 2, or 0 for none"},
        {n->global_every && ((n->rope != MODEL_ROPE_REAL && n->rope != MODEL_ROPE_PAIRS) ||
                             (n->no_rope_every && (n->no_rope_every != n->global_every ||
                                                   n->code != MODEL_CODE_TRANSFORMERS))),
         "global_every",
         "global_every is known with rope = real, of blocks that all turn, or of transformers' own "
         "modules of which those that look back all the way do not (no_rope_every)"},
    };
    return are_kept(rules, G_N_ELEMENTS(rules), ini, error);
}

static bool modules_fit(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    bool is_copied = n->cache == MODEL_CACHE_COPIED;
    const Rule rules[] = {
        {n->gate == MODEL_GATE_NONE && n->code != MODEL_CODE_TRANSFORMERS, "gate",
         "gate = none is known of transformers' own modules; set code = transformers"},
        {n->family == &model_t5 && !n->gated && n->gelu != MODEL_GELU_TANH, "gelu",
         "T5's hidden layer has a GELU where it is gated; set gated = yes"},
        {n->experts && n->gate != MODEL_GATE_SILU, "gate",
         "experts are opened by SiLU; set gate = silu"},
        {n->residual_scale && n->norm_at != MODEL_NORM_BEFORE, "residual_scale",
         "residual_scale is known of a block with its norms before; set norm_at = before"},
        {n->code == MODEL_CODE_TRANSFORMERS && !is_recorded_of_transformers(n), "code",
         "code = transformers is known of a network without experts, or with Mixtral's, Qwen "
         "3's or OLMoE's (no shared one), with groups of heads, attention's kernel, real rotary "
         "embedding and norms before (or EXAONE 4's or OLMo's behind), of Phi-3's joined layers "
         "all three, and of what makes a Gemma, a Gemma 2 or a Gemma 3 all of it; set code = own"},
        {is_copied && (n->window || n->qkv != MODEL_QKV_APART), "use_cache",
         "use_cache = copied is known of layers for q, k and v each, and without a window; set "
         "use_cache = no"},
        {is_copied && n->code != MODEL_CODE_TRANSFORMERS, "use_cache",
         "use_cache = copied is of transformers' own modules; set code = transformers, or "
         "use_cache = yes"},
    };
    return are_kept(rules, G_N_ELEMENTS(rules), ini, error);
}

static bool loss_fits(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    bool is_metered = n->loss == MODEL_LOSS_METERED;
    /* By PyTorch's ops, or by a kernel that takes their place. */
    bool is_of_logits = n->loss == MODEL_LOSS_MODEL || n->loss == MODEL_LOSS_OPS ||
                        n->loss == MODEL_LOSS_FP32 || n->loss == MODEL_LOSS_FP32_LOGITS;
    const Rule rules[] = {
        {is_metered && n->loss_at != MODEL_LOSS_IN_MODEL, "loss_at",
         "loss = metered is of what the network makes; set loss_at = model"},
        {is_metered && n->logits_held != PLAN_RESULTS_DROPPED, "logits_held",
         "loss = metered holds the logits anyhow; set logits_held = no"},
        {n->logits_shifted && !is_of_logits, "logits_shifted",
         "logits_shifted = yes is known of a loss of logits as they are or in fp32; set loss = "
         "ops, fp32-logits or fp32"},
        {n->loss_in_place && !is_of_logits, "loss_in_place",
         "loss_in_place = yes is known of a loss of logits as they are or in fp32; set loss = ops, "
         "fp32-logits or fp32"},
        {n->logits_shifted && n->seq == 1, "logits_shifted",
         "logits_shifted = yes leaves nothing of sequences of one token; set a longer seq"},
    };
    return are_kept(rules, G_N_ELEMENTS(rules), ini, error);
}

bool model_network_is_sound(const ModelNetwork *n, const PlanIni *ini, GError **error) {
    bool is_latent = n->kv_lora_rank > 0;
    return hidden_layer_is_sound(n, ini, error) && routing_is_sound(n, ini, error) &&
           (is_latent ? latent_is_sound(n, ini, error) : has_nothing_latent(ini, error)) &&
           heads_divide(n, ini, error) && scores_fit(n, ini, error) && places_fit(n, ini, error) &&
           modules_fit(n, ini, error) && loss_fits(n, ini, error) && head_is_even(n, ini, error);
}
