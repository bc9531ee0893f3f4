#include "cli/published/train/words.h"

#include <glib.h>
#include <stdbool.h>

/* ---- words ---------------------------------------------------------------------------------- */

/* What `pattern` matches, in any case, becomes `plain`; each sees what those before it left. */
static const struct {
    const char *column, *pattern, *plain;
} words[] = {
    /* "meta-llama/Llama-2-7b-hf": what it is called, not whose it is; but "ViT-L/16" */
    {"model", "^[[:alpha:]][\\w.-]*/(?=[[:alnum:]])(?![0-9]+(?:$| ))", ""},

    {"framework", "fsdp(?:[ _-]+v?-?|v)([12])(?![0-9x.])|fsdp ?[(]v?([12])[)]", "FSDP\\1\\2"},
    {"framework", "distributed[ _-]?data[ _-]?parallel", "DDP"},
    {"framework", "^llama[ _-]?factory", "LLaMA-Factory"},
    {"framework", "^(fms-hf-tuning|fastchat|(?:stanford[ _-])?alpaca)\\b", "HF Trainer (\\1)"},

    {"sharding_strategy", "fsdp(?:[ _-]+v?-?|v)([12])(?![0-9x.])|fsdp ?[(]v?([12])[)]",
     "FSDP\\1\\2"},
    {"sharding_strategy",
     "^(?:torch[.]nn[.]parallel[.])?distributed[ _-]?data[ _-]?parallel(?: [(]ddp[)])?$", "DDP"},
    {"sharding_strategy", "^(?:(?:py)?torch |native )?ddp(?: ?[(][^)]*[)])?$", "DDP"},
    {"sharding_strategy", "^(?:replicas?|replicate|full(?:y)? replicated)$", "replicated"},
    {"sharding_strategy", "^(?:no[ _-]sharding|unsharded|not sharded)$", "none"},
    {"sharding_strategy", "(?:no|never|without)[ _-]reshard(?:ing)?(?:[ _-]after[ _-]forward)?",
     "reshard_after_forward=False"},

    {"tied_embeddings", "^(?:true|tied|1|y)$", "yes"},
    {"tied_embeddings", "^(?:false|untied|0|n|-+)$", "no"},

    {"measured_date", "^(20[0-9]{2})[/.]([0-9]{2})\\b", "\\1-\\2"},
    {"measured_date", "^(20[0-9]{2})[/.-]([0-9])(?![0-9])", "\\1-0\\2"},
    {"measured_date", "^([0-9]{2})[/.](20[0-9]{2})$", "\\2-\\1"},

    {"precision", "^torch[.]", ""},
    {"precision", "^(?:32(?:-true)?|(?:full|single)(?: precision)?)$", "fp32"},
    {"reduce_dtype", "^torch[.]", ""},
    {"reduce_dtype", "^(?:same|params?)\\b.*", "param"},

    {"activation_checkpointing", "^-+$", ""},
    {"activation_checkpointing",
     "^(?:gc|ckpt|ac[ ,:-]+full|(?:transformer ?|decoder ?)(?:block|layer)s?)$", "full"},
    {"activation_checkpointing",
     "^(?:grad|act)\\w*[ ._-]*(?:ckpt|checkpoint)\\w*(?:[ :=]+(?:yes|true|on|enabled|full))?$",
     "full"},
    {"activation_checkpointing", "^(?:every|each) (?:layer|block)s?$", "full"},
    {"activation_checkpointing", "^use_reentrant.*", "full"},

    {"compile", "^compiled?$", "yes"},
    {"compile",
     "^(?:yes|true|on|compiled?|torch[.]compile)?[ ,:(]*(?:per|each|every)[ _-](?:layer|block|"
     "transformer ?block)s?[)]?$",
     "per-block"},

    {"attention_impl", "^(?:fa|flash[ _-]?att(?:entio)?n)[ _-]*v?[ .-]?3\\b", "FlashAttention-3"},
    {"attention_impl", "^(?:fa|flash[ _-]?attention)[ _-]*v?[ .-]?2\\b", "FlashAttention-2"},
    {"attention_impl", "^flex(?:[ _-]?attention)?\\b", "FlexAttention"},

    {"peak_mem_kind", "nvidia[ _-]?smi|^smi$", "nvidia-smi"},
    {"peak_mem_kind", "^(?:device|used|device memory|memory used|total gpu memory)$",
     "device used"},

    {"offload", "^(?:-+|no|off|disabled|false|not used)$", "none"},
    {"offload", "^cpu[ _-]?offload(?:ing)?$", "cpu"},
};

/* "May 2024", "12 May 2024", "May 12th, 2024". */
static char *date_plainly(const char *text) {
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
    g_autoptr(GRegex) regex =
        g_regex_new("^(?:[0-9]{1,2}[a-z.]* +)?([a-z]{3})[a-z]*[ .,]+(?:[0-9]{1,2}[a-z]*,? +)?"
                    "(20[0-9]{2})$",
                    G_REGEX_CASELESS, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(regex, text, 0, &match)) {
        return g_strdup(text);
    }
    g_autofree char *month = g_match_info_fetch(match, 1), *year = g_match_info_fetch(match, 2);
    for (unsigned i = 0; i < G_N_ELEMENTS(months); i++) {
        if (!g_ascii_strcasecmp(month, months[i])) {
            return g_strdup_printf("%s-%02u", year, i + 1);
        }
    }
    return g_strdup(text);
}

/* ---- layers --------------------------------------------------------------------------------- */

/* A block's linear layers, as plans call them, and others' names for each and for several. */
static const struct {
    const char *name, *also; /* whole words between blanks */
    const char *ungated;     /* in a hidden layer of two layers, fc1 and fc2, and beside it */
} layers[] = {{"q", " q wq query qv qkv qkvo attn self_attn attention ", "q_proj"},
              {"k", " k wk key qkv qkvo attn self_attn attention ", "k_proj"},
              {"v", " v wv value qv qkv qkvo attn self_attn attention ", "v_proj"},
              {"o", " o wo out output dense qkvo attn self_attn attention ", "out_proj|dense"},
              {"gate", " gate mlp ffn ", NULL},
              {"up", " up fc1 mlp ffn ", "fc1"},
              {"down", " down fc2 mlp ffn ", "fc2"}};

static bool find_layers(const char *word, bool found[G_N_ELEMENTS(layers)]) {
    g_autofree char *whole = g_strdup_printf(" %s ", word);
    bool is_known = false;
    for (unsigned i = 0; i < G_N_ELEMENTS(layers); i++) {
        if (cli_train_words_has(layers[i].also, whole)) {
            is_known = found[i] = true;
        }
    }
    return is_known;
}

static char *expression_for(const bool found[G_N_ELEMENTS(layers)], bool is_gated) {
    g_autoptr(GString) names = g_string_new("");
    for (unsigned i = 0; i < G_N_ELEMENTS(layers); i++) {
        if (found[i]) {
            g_string_append_printf(names, "%s%s", names->len ? "|" : "",
                                   is_gated ? layers[i].name : layers[i].ungated);
        }
    }
    if (g_str_equal(names->str, "q|v")) {
        return g_strdup("q,v"); /* the custom */
    }
    static const char *const all[] = {"q|k|v|o|gate|up|down",
                                      "q_proj|k_proj|v_proj|out_proj|dense|fc1|fc2", NULL};
    return g_strv_contains(all, names->str) ? g_strdup("all linear")
                                            : g_strdup_printf("module=.*\\.(%s)", names->str);
}

/* "q_proj, k_proj and mlp"; NULL where a word is no layer that we know, or there is none. */
static char *layers_plainly(const char *text) {
    bool found[G_N_ELEMENTS(layers)] = {false}, is_any = false;
    g_autofree char *lower = g_ascii_strdown(text, -1);
    g_auto(GStrv) parts = g_regex_split_simple(
        "(?:_?proj(?:ection)?\\b)?(?:[^a-z0-9_]|$)+(?:and\\b[^a-z0-9_]*)?", lower, 0, 0);
    for (unsigned i = 0; parts[i]; i++) {
        if (*parts[i] && !find_layers(parts[i], found)) {
            return NULL;
        }
        is_any |= *parts[i] != '\0';
    }
    bool is_gated = !strstr(lower, "fc1") && !strstr(lower, "fc2");
    return !is_any || (!is_gated && found[4]) ? NULL : expression_for(found, is_gated);
}

static char *by_its_own_grammar(const char *column, const char *text) {
    char *plain = NULL;
    if (g_str_equal(column, "measured_date")) {
        plain = date_plainly(text);
    } else if (g_str_equal(column, "lora_on")) {
        plain = layers_plainly(text);
    }
    return plain ? plain : g_strdup(text);
}

char *cli_train_words_plain(const char *column, const char *text) {
    char *plain = by_its_own_grammar(column, text);
    for (unsigned i = 0; *text && i < G_N_ELEMENTS(words); i++) {
        if (!g_str_equal(words[i].column, column)) {
            continue;
        }
        g_autoptr(GRegex) regex = g_regex_new(words[i].pattern, G_REGEX_CASELESS, 0, NULL);
        g_autofree char *found = NULL;
        g_autoptr(GMatchInfo) match = NULL;
        if (g_regex_match(regex, plain, 0, &match)) {
            found = g_match_info_fetch(match, 0);
            g_autofree char *now = g_match_info_expand_references(match, words[i].plain, NULL);
            if (g_ascii_strcasecmp(found, now) != 0) { /* no more than another case */
                char *replaced = g_regex_replace(regex, plain, -1, 0, words[i].plain, 0, NULL);
                g_free(plain);
                plain = replaced;
            }
        }
    }
    return plain;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static const struct {
    const char *column, *unit; /* a regular expression */
    double times;
} units[] = {
    {"seq_len", "k", 1024},
    {"params", "b", 1e9},
    {"params", "m", 1e6},
    {"params", "t", 1e12},
    {"gpu_mem_gb", "g|gb|gib", 1},
    {"peak_mem_gib", "gib", 1},
    {"mfu_pct", "%", 1},
    {"hfu_pct", "%", 1},
    {"step_ms", "ms", 1},
    {"step_ms_derived", "ms", 1},
    {"tflops_per_gpu", "tflops?(?:/s)?", 1},
};

static bool is_unsaid(const char *text) {
    static const char *const said[] = {"-",   "--",   "?",    "n/a",    "na",
                                       "nan", "null", "none", "unknown"};
    for (unsigned i = 0; i < G_N_ELEMENTS(said); i++) {
        if (!g_ascii_strcasecmp(text, said[i])) {
            return true;
        }
    }
    return false;
}

/* Digits of `text`, thousands together, times `factor`; NULL where more than `unit` follows. */
static char *in_digits(const char *text, const char *unit, double factor) {
    g_autofree char *pattern = g_strdup_printf(
        "^(?:~|\xe2\x89\x88)?(?:r ?= ?)?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)([.][0-9]+)? ?(?:%s)$",
        unit);
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_CASELESS | G_REGEX_RAW, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(regex, text, 0, &match)) {
        return NULL;
    }
    g_autofree char *whole = g_match_info_fetch(match, 1), *rest = g_match_info_fetch(match, 2);
    g_auto(GStrv) parts = g_strsplit(whole, ",", -1);
    g_autofree char *together = g_strjoinv("", parts);
    g_autofree char *digits = g_strconcat(together, rest ? rest : "", NULL);
    if (factor == 1) {
        return g_steal_pointer(&digits);
    }
    return g_strdup_printf("%.15g", g_ascii_strtod(digits, NULL) * factor);
}

char *cli_train_words_number(const char *column, const char *text) {
    if (is_unsaid(text)) {
        return g_strdup("");
    }
    char *plain = in_digits(text, "", 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(units) && !plain; i++) {
        if (g_str_equal(units[i].column, column)) {
            plain = in_digits(text, units[i].unit, units[i].times);
        }
    }
    return plain ? plain : g_strdup(text);
}

bool cli_train_words_has(const char *text, const char *word) {
    g_autofree char *lower = g_ascii_strdown(text, -1);
    return strstr(lower, word) != NULL;
}

bool cli_train_words_any(const char *text, const char *const *any_of, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (cli_train_words_has(text, any_of[i])) {
            return true;
        }
    }
    return false;
}
