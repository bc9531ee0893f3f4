#include "cli/published/train/row.h"

#include <math.h>
#include <string.h>

#include "cli/published/train/recomputed.h"
#include "cli/published/train/words.h"
#include "plan/files/ini.h"

/* ---- filling -------------------------------------------------------------------------------- */

typedef struct {
    const CliCsv *csv;
    CliCsvRow row;
    GString *said;
} Filler;

static const char *text(const Filler *f, const char *column) {
    return cli_csv_text(f->csv, &f->row, column);
}

static double number(const Filler *f, const char *column) {
    return cli_csv_known(f->csv, &f->row, column);
}

static bool is_open(const Filler *f, const char *column) {
    return cli_csv_has(f->csv, column) && !*text(f, column);
}

static void set(Filler *f, const char *column, const char *value) {
    for (unsigned i = 0; f->csv->columns[i]; i++) {
        if (g_str_equal(f->csv->columns[i], column)) {
            g_free(f->row.fields[i]);
            f->row.fields[i] = g_strdup(value);
        }
    }
}

static void fill(Filler *f, const char *column, const char *value, const char *why) {
    if (cli_csv_has(f->csv, column)) {
        set(f, column, value);
        g_string_append_printf(f->said, "%s%s=%s (%s)", f->said->len ? " " : "", column, value,
                               why);
    }
}

/* Whole numbers of at least 1 alone: others fix nothing. */
static void fill_count(Filler *f, const char *column, double value, const char *why) {
    if (is_open(f, column) && value >= 1 && value < 1e15 && value == floor(value)) {
        g_autofree char *digits = g_strdup_printf("%.0f", value);
        fill(f, column, digits, why);
    }
}

/* ---- in the rules' words -------------------------------------------------------------------- */

static void say_plainly(Filler *f, const char *column, const char *plain) {
    if (*plain && !g_str_equal(plain, text(f, column))) {
        fill(f, column, plain, "our word for it");
    } else if (!*plain && *text(f, column)) {
        set(f, column, ""); /* what is not said */
    }
}

static void say_all_plainly(Filler *f) {
    static const struct {
        const char *name;
        bool is_number;
    } columns[] = {
#define COLUMN(name) {#name, false},
#define NUMBER(name) {#name, true},
#include "cli/published/train/columns.def"
#undef COLUMN
#undef NUMBER
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        const char *name = columns[i].name, *given = text(f, name);
        g_autofree char *plain = columns[i].is_number ? cli_train_words_number(name, given)
                                                      : cli_train_words_plain(name, given);
        say_plainly(f, name, plain);
    }
}

/* A card's memory tells its machine apart where its name does not. */
static void say_memory(Filler *f) {
    static const struct {
        const char *gpu, *gigabytes;
    } kinds[] = {{"a100", "40"}, {"a100", "64"}, {"h100", "64"}, {"v100", "16"}};
    const char *hardware = text(f, "hardware");
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (cli_train_words_has(hardware, kinds[i].gpu) &&
            !cli_train_words_has(hardware, kinds[i].gigabytes) &&
            number(f, "gpu_mem_gb") == g_ascii_strtod(kinds[i].gigabytes, NULL)) {
            g_autofree char *whole = g_strdup_printf("%s-%sGB", hardware, kinds[i].gigabytes);
            fill(f, "hardware", whole, "of gpu_mem_gb");
            return;
        }
    }
}

/* ---- batch and ranks ------------------------------------------------------------------------ */

static void fill_batch(Filler *f) {
    double tensor = number(f, "tp"), share = tensor >= 1 ? tensor : 1; /* GPUs of one batch */
    fill_count(f, "gpus", number(f, "shard_degree") * number(f, "dp_replicate") * share,
               "shard_degree x dp_replicate");
    double context = number(f, "cp");
    share *= context >= 1 ? context : 1; /* which FSDP's group has in it */
    double gpus = number(f, "gpus") / share, all = number(f, "global_batch_seqs");
    fill_count(f, "seq_len", number(f, "global_batch_tokens") / all, "tokens over sequences");
    if (isnan(all)) {
        all = number(f, "global_batch_tokens") / number(f, "seq_len");
    }
    fill_count(f, "grad_accum", all / gpus / number(f, "micro_batch"), "of the global batch");
    double passes = number(f, "grad_accum");
    fill_count(f, "micro_batch", all / gpus / (isnan(passes) ? 1 : passes), "of the global batch");
    const char *sharding = text(f, "sharding_strategy");
    bool is_hybrid =
        cli_train_words_has(sharding, "hsdp") || cli_train_words_has(sharding, "hybrid");
    double stages = number(f, "pp"), sharers = gpus / (stages >= 1 ? stages : 1);
    double group = number(f, "shard_degree"), node = number(f, "gpus_per_node");
    bool is_by_degree = cli_train_words_has(sharding, "fsdp") && !(number(f, "ep") > 1) &&
                        group > 1 && group < sharers;
    if (is_hybrid || is_by_degree) {
        fill_count(f, "dp_replicate", sharers / group, "gpus over shard_degree");
    }
    if (is_hybrid) {
        fill_count(f, "dp_replicate", sharers / (isnan(node) ? 8 : node), "assumed: a node a copy");
    }
}

/* ---- shape ---------------------------------------------------------------------------------- */

/* Decoders since Llama have gates; GPT-2's kind has none. By name, for want of a column. */
static const char *const gated[] = {"llama",  "mistral", "qwen",   "granite", "yi-",     "olmo",
                                    "smollm", "gemma",   "vicuna", "phi-3",   "deepseek"};
static const char *const plain[] = {"gpt", "opt", "mpt", "pythia", "bloom", "neox", "cerebras"};

/* How sources call a block's hidden layer, in any case, and what may follow ("SwiGLU, fused"). The
 * rules of models/published/train.ini know the words on the right. */
static const struct {
    const char *begins, *kind;
} mlps[] = {
    {"swiglu", "swiglu"}, {"geglu", "swiglu"}, {"reglu", "swiglu"}, {"glu", "swiglu"},
    {"silu", "swiglu"},   {"swish", "swiglu"}, {"gated", "swiglu"}, {"gelu", "gelu"},
    {"relu", "relu"},     {"mlp", "gelu"},     {"dense", "gelu"},   {"plain", "gelu"},
    {"ungated", "gelu"},
};

static bool says_experts(const char *mlp_type) {
    static const char *const words[] = {"moe", "mixture", "expert"};
    return cli_train_words_any(mlp_type, words, G_N_ELEMENTS(words));
}

/* Networks that have experts, by name: "8x7b", "30b-a3b". */
static bool is_named_for_experts(const char *model) {
    static const char *const names[] = {"moe", "mixtral", "dbrx", "gpt-oss", "llama-4", "llama4"};
    g_autoptr(GRegex) sizes = g_regex_new("[0-9]+x[0-9.]+b|[0-9.]+b-a[0-9.]+b|deepseek.*v[23]",
                                          G_REGEX_CASELESS, 0, NULL);
    return cli_train_words_any(model, names, G_N_ELEMENTS(names)) ||
           g_regex_match(sizes, model, 0, NULL);
}

static void fill_number_of(Filler *f, const char *column, const char *from, const char *pattern) {
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_CASELESS | G_REGEX_DUPNAMES, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (g_regex_match(regex, text(f, from), 0, &match)) {
        g_autofree char *digits = g_match_info_fetch_named(match, "n");
        g_autofree char *why = g_strdup_printf("of %s", from);
        fill_count(f, column, g_ascii_strtod(digits, NULL), why);
    }
}

/* "FSDP2 + TP2 + AC", "full_shard offload", "FSDP=8, DP=2": what has columns of its own, where
 * those are empty. */
static void fill_from_sharding(Filler *f) {
    static const struct {
        const char *column, *pattern, *value;
    } told[] = {
        {"offload", "\\boff-?load|fsdp[ _-]cpu\\b", "cpu"},
        {"activation_checkpointing", "\\bsac\\b|\\bselective", "selective"},
        {"activation_checkpointing", "(?<!no )(?<!without )\\b(?:ac|checkpointing)\\b", "full"},
    };
    const char *sharding = text(f, "sharding_strategy");
    fill_number_of(f, "shard_degree", "sharding_strategy",
                   "\\b(?:fsdp|dp_shard|shard(?:[ _]degree)?) ?[=:] ?(?<n>[0-9]+)");
    fill_number_of(f, "tp", "sharding_strategy", "\\b(?:tp|tensor[ -]parallel)[ =:-]*(?<n>[0-9]+)");
    fill_number_of(f, "pp", "sharding_strategy", "\\b(?:pp|pipeline)[ =:-]*(?<n>[0-9]+)");
    fill_number_of(f, "cp", "sharding_strategy", "\\b(?:cp|context)[ =:-]*(?<n>[0-9]+)");
    for (unsigned i = 0; i < G_N_ELEMENTS(told); i++) {
        g_autoptr(GRegex) regex = g_regex_new(told[i].pattern, G_REGEX_CASELESS, 0, NULL);
        if (is_open(f, told[i].column) && g_regex_match(regex, sharding, 0, NULL)) {
            fill(f, told[i].column, told[i].value, "of sharding_strategy");
        }
    }
}

/* "swiglu MoE 8 experts top-2", "64 experts, 8 active": how many, and the kind in the rules' words,
 * "swiglu moe" or "mixture of experts". */
static void say_experts(Filler *f) {
    bool is_said = says_experts(text(f, "mlp_type")) || number(f, "experts") >= 1;
    if (!is_said && !is_named_for_experts(text(f, "model"))) {
        return;
    }
    static const char *const gates[] = {"glu", "silu", "swish", "gated"};
    bool has_gate = !*text(f, "mlp_type") ||
                    cli_train_words_any(text(f, "mlp_type"), gates, G_N_ELEMENTS(gates));
    const char *kind = has_gate ? "swiglu moe" : "mixture of experts";
    fill_number_of(f, "experts", "mlp_type", "(?<n>[0-9]+) *(?:routed |local )?experts");
    fill_number_of(f, "experts_per_token", "mlp_type",
                   "top[- ]?(?<n>[0-9]+)|(?<n>[0-9]+) (?:active|activated|per token)");
    if (!g_str_equal(text(f, "mlp_type"), kind)) {
        fill(f, "mlp_type", kind, is_said ? "our word for it" : "by its name");
    }
}

/* "llama2-7b LoRA r=16", "bf16, LoRA (rank 8)"; in notes, which may speak of others, nearer by. */
static void fill_adapters(Filler *f) {
    static const char *const columns[] = {"model", "framework", "precision", "sharding_strategy",
                                          "optimizer"};
    static const char rank[] = "\\b(?:rank|r) *[=:]? *(?<n>[0-9]+)\\b";
    bool are_there = false;
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        if (cli_train_words_has(text(f, columns[i]), "lora")) {
            fill_number_of(f, "lora_rank", columns[i], rank);
            are_there = true;
        }
    }
    fill_number_of(f, "lora_rank", "notes",
                   are_there ? rank
                             : "\\blora(?: with| of|,)? *[(]?(?:rank|r) *[=:]? *(?<n>[0-9]+)\\b");
}

/* "the decoder gets 114 tokens", "targets of 128 tokens", "max_target_length=64". */
static void fill_targets(Filler *f) {
    fill_number_of(f, "target_seq", "notes",
                   "\\b(?:decoder gets|(?:targets?|labels|answers|summaries) of|"
                   "(?:max_)?target[ _](?:len(?:gth)?|seq(?:_len|uence length)?)[ =:]*) *"
                   "(?<n>[0-9]+)\\b(?![.,][0-9])");
}

/* A whole table of shares has none of a percent. */
static void say_percents(Filler *f, const char *column) {
    double largest = 0, value = number(f, column);
    for (unsigned i = 0; i < f->csv->n_rows; i++) {
        double other = cli_csv_known(f->csv, &f->csv->rows[i], column);
        largest = other > largest ? other : largest;
    }
    if (value > 0 && value <= 1 && largest <= 1) {
        g_autofree char *percents = g_strdup_printf("%.15g", 100 * value);
        fill(f, column, percents, "assumed: a share");
    }
}

static void say_kind_plainly(Filler *f) {
    g_autofree char *given = g_ascii_strdown(text(f, "mlp_type"), -1);
    g_strstrip(given);
    for (unsigned i = 0; i < G_N_ELEMENTS(mlps) && !says_experts(given); i++) {
        if (g_str_has_prefix(given, mlps[i].begins) &&
            !g_str_equal(text(f, "mlp_type"), mlps[i].kind)) {
            fill(f, "mlp_type", mlps[i].kind, "our word for it");
            return;
        }
    }
}

static void fill_kind_by_name(Filler *f) {
    const char *model = text(f, "model");
    say_experts(f);
    say_kind_plainly(f);
    if (is_open(f, "mlp_type") && cli_train_words_any(model, gated, G_N_ELEMENTS(gated))) {
        fill(f, "mlp_type", "swiglu", "by its name");
    } else if (is_open(f, "mlp_type") && cli_train_words_any(model, plain, G_N_ELEMENTS(plain))) {
        fill(f, "mlp_type", "gelu", "by its name");
    }
}

static void fill_kind(Filler *f) {
    fill_kind_by_name(f);
    if (is_open(f, "mlp_type") && number(f, "d_ff") < 3.5 * number(f, "d_model")) {
        fill(f, "mlp_type", "swiglu", "by its d_ff");
    } else if (is_open(f, "mlp_type")) {
        fill(f, "mlp_type", "gelu", "assumed");
    }
}

/* What `params` leaves for d_ff when attention and both tables are taken off; else the custom: four
 * times the width, or with a gate two thirds of that up to a multiple of 256. */
static void fill_ffn(Filler *f, double layers, double width, bool gate) {
    double params = number(f, "params"), tables = 2 * number(f, "vocab") * width;
    double share = number(f, "kv_heads") / number(f, "heads");
    double rest = (params - tables) / layers - (2 + 2 * share) * width * width;
    double by_params = round(rest / ((gate ? 3 : 2) * width) / 64) * 64;
    if (gate && by_params > width) {
        fill_count(f, "d_ff", by_params, "of params");
    }
    fill_count(f, "d_ff", gate ? ceil(8 * width / 3 / 256) * 256 : 4 * width, "assumed");
}

static void fill_shape(Filler *f) {
    double layers = number(f, "layers"), width = number(f, "d_model");
    if (!(layers >= 1 && width >= 1)) {
        fill_kind_by_name(f);
        return;
    }
    fill_kind(f);
    bool gate = g_str_has_prefix(text(f, "mlp_type"), "swiglu");
    fill_count(f, "heads", width / (width >= 1536 ? 128 : 64), "assumed");
    fill_count(f, "kv_heads", number(f, "heads"), "assumed");
    fill_count(f, "vocab", gate ? 32000 : 50304, "assumed");
    if (!says_experts(text(f, "mlp_type"))) { /* whose width nothing else fixes */
        fill_ffn(f, layers, width, gate);
    }
}

/* "bfloat16" is one word for what "float16" stands for elsewhere: the rules know the short ones. */
static void say_dtype_plainly(Filler *f, const char *column) {
    static const char *const words[][2] = {
        {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}};
    g_autofree char *given = g_ascii_strdown(text(f, column), -1);
    g_autoptr(GString) short_words = g_string_new(given);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_string_replace(short_words, words[i][0], words[i][1], 0);
    }
    if (!g_str_equal(short_words->str, given)) {
        fill(f, column, short_words->str, "our word for it");
    }
}

/* "every 4th layer", "every other block", "ac_freq=2": which blocks; 0 where none is said. */
static double every(const char *checkpointing) {
    static const char *const words[] = {"other", "second", "third",   "fourth",
                                        "fifth", "sixth",  "seventh", "eighth"};
    g_autoptr(GRegex) which = g_regex_new("(?:every|each)[ =_-]*([0-9]+|[a-z]+)|freq[ =:]*([0-9]+)|"
                                          "selective[^0-9a-z]*(?:layers?[^0-9a-z]*)?([0-9]+)[)]?$",
                                          G_REGEX_CASELESS, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(which, checkpointing, 0, &match)) {
        return 0;
    }
    g_autofree char *word = g_match_info_fetch(match, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (!g_ascii_strcasecmp(word, words[i])) {
            return MAX(i + 1, 2);
        }
    }
    g_autofree char *number = g_match_info_expand_references(match, "\\1\\2\\3", NULL);
    return g_ascii_strtod(number, NULL);
}

/* "full on 5 of 48 layers" is a share of the blocks. */
static void say_share(Filler *f) {
    const char *given = text(f, "activation_checkpointing");
    g_autoptr(GRegex) share = g_regex_new("([0-9]+) (?:out )?of ([0-9]+)", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (g_regex_match(share, given, 0, &match)) {
        g_autofree char *some = g_match_info_fetch(match, 1), *all = g_match_info_fetch(match, 2);
        g_autofree char *ratio =
            g_strdup_printf("ratio=%.4f", g_ascii_strtod(some, NULL) / g_ascii_strtod(all, NULL));
        fill(f, "activation_checkpointing", ratio, "so many of all blocks");
    } else if (every(given) >= 2) {
        g_autofree char *blocks = g_strdup_printf("every=%.0f", every(given));
        fill(f, "activation_checkpointing", blocks, "so many of all blocks");
    }
}

/* "selective (fraction of blocks)": a share that the source does not give. */
static void fill_share_by_flops(Filler *f) {
    double mfu = number(f, "mfu_pct"), hfu = number(f, "hfu_pct");
    if (!g_str_has_prefix(text(f, "activation_checkpointing"), "selective (fraction") ||
        !(hfu >= mfu && mfu > 0)) {
        return;
    }
    CliTrainShape shape = {
        number(f, "layers"),  number(f, "d_model"),
        number(f, "heads"),   number(f, "kv_heads"),
        number(f, "d_ff"),    number(f, "vocab"),
        number(f, "seq_len"), g_str_has_prefix(text(f, "mlp_type"), "swiglu"),
    };
    double share = cli_train_recomputed_share(&shape, mfu, hfu);
    if (share > 0) {
        g_autofree char *ratio = g_strdup_printf("ratio=%.2f", share);
        fill(f, "activation_checkpointing", ratio, "by HFU over MFU");
    }
}

CliCsvRow cli_train_row_complete(const CliCsv *csv, const CliCsvRow *row, GString *said) {
    Filler f = {csv, *row, said};
    f.row.fields = g_strdupv(row->fields);
    say_all_plainly(&f);
    say_memory(&f);
    fill_from_sharding(&f);
    fill_batch(&f);
    fill_shape(&f);
    fill_adapters(&f);
    fill_targets(&f);
    say_share(&f);
    say_percents(&f, "mfu_pct");
    say_percents(&f, "hfu_pct");
    fill_share_by_flops(&f);
    say_dtype_plainly(&f, "precision");
    say_dtype_plainly(&f, "reduce_dtype");
    return f.row;
}

void cli_train_row_fields_clear(CliCsvRow *row) {
    g_clear_pointer(&row->fields, g_strfreev);
}
