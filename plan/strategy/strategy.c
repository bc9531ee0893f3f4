#include "plan/strategy/strategy.h"

#include <string.h>

#include "plan/files/file.h"
#include "plan/files/ini.h"
#include "plan/files/nearest.h"
#include "plan/plan.h"
#include "plan/strategy/pytorch.h"

typedef enum {
    KIND_INT,
    KIND_REAL,
    KIND_CHOICE,
    KIND_VARIANT
} KeyKind;

enum {
    MAX_ARGUMENT = 1000000000
};

typedef struct {
    KeyKind kind;
    gsize offset;
    double start, min, max;
} KeyRow;

static const PlanStrategyKey keys[] = {
#define INT(field, name, start, min, max, text)  {name, text, NULL},
#define REAL(field, name, start, min, max, text) {name, text, NULL},
#define CHOICE(field, name, start, names, text)  {name, text, names},
#define VARIANT(field, name, start, names, text) {name, text, names},
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
};

static const KeyRow rows[G_N_ELEMENTS(keys)] = {
#define INT(field, name, start, min, max, text)                                                    \
    {KIND_INT, offsetof(PlanStrategy, field), start, min, max},
#define REAL(field, name, start, min, max, text)                                                   \
    {KIND_REAL, offsetof(PlanStrategy, field), start, min, max},
#define CHOICE(field, name, start, names, text)                                                    \
    {KIND_CHOICE, offsetof(PlanStrategy, field), start, 0, 0},
#define VARIANT(field, name, start, names, text)                                                   \
    {KIND_VARIANT, offsetof(PlanStrategy, field), start, 0, 0},
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
};

const PlanStrategyKey *plan_strategy_keys(unsigned *ret_n) {
    *ret_n = G_N_ELEMENTS(keys);
    return keys;
}

static gpointer field_of(const PlanStrategy *strategy, unsigned row) {
    return (char *)strategy + rows[row].offset;
}

void plan_strategy_init(PlanStrategy *strategy) {
    memset(strategy->given, 0, sizeof strategy->given);
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        switch (rows[i].kind) {
        case KIND_INT:
            *(uint64_t *)field_of(strategy, i) = (uint64_t)rows[i].start;
            break;
        case KIND_REAL:
            *(double *)field_of(strategy, i) = rows[i].start;
            break;
        case KIND_CHOICE:
            *(unsigned *)field_of(strategy, i) = (unsigned)rows[i].start;
            break;
        case KIND_VARIANT:
            *(PlanVariant *)field_of(strategy, i) =
                (PlanVariant){.choice = (unsigned)rows[i].start};
            break;
        }
    }
}

enum {
    WHOLE = 17 /* digits, so that a bound is shown as the numbers that are read: without exponent */
};

static bool set_number(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    uint64_t whole = 0;
    double real = 0;
    bool is_int = rows[row].kind == KIND_INT;
    bool read = is_int ? plan_parse_u64(value, &whole) : plan_parse_double(value, &real);
    double number = is_int ? (double)whole : real;
    if (!read || number < rows[row].min || number > rows[row].max) {
        g_autofree char *written_out = is_int && !read ? plan_written_out(value) : g_strdup("");
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s must be %s from %.*g to %.*g, not '%s'%s", keys[row].key,
                    is_int ? "a whole number" : "a number", is_int ? WHOLE : 6, rows[row].min,
                    is_int ? WHOLE : 6, rows[row].max, value, written_out);
        return false;
    }
    if (is_int) {
        *(uint64_t *)field_of(strategy, row) = whole;
    } else {
        *(double *)field_of(strategy, row) = real;
    }
    return true;
}

/* What PyTorch and others call it; in lower case, '-' for '_'. */
static const struct {
    const char *ours, *theirs;
} values[] = {
    {"full", "full-shard zero3 zero-3 fsdp fsdp2 yes true on all"},
    {"grad-op", "shard-grad-op zero2 zero-2"},
    {"optimizer-only", "zero1 zero-1"},
    {"none", "no-shard ddp no false off"},
    {"hybrid", "hybrid-shard hsdp"},
    {"hybrid-grad-op", "hybrid-shard-zero2"},
    {"bf16", "bfloat16 torch.bfloat16"},
    {"fp16", "float16 half torch.float16"},
    {"fp32", "float32 float torch.float32"},
    {"selective-op", "selective"},
    {"pre", "backward-pre"},
    {"post", "backward-post"},
    {"params", "cpu host yes true on"},
    {"whole", "model network"},
    {"yes", "true on 1"},
    {"no", "false off 0"},
};

/* Of several of ours the first that is a name here. */
static char *meant_by(char **names, const char *value) {
    g_autofree char *lower = g_strdelimit(g_ascii_strdown(value, -1), "_", '-');
    const char *plain = lower + strspn(lower, "-");
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        g_auto(GStrv) theirs = g_strsplit(values[i].theirs, " ", -1);
        bool is_meant = g_str_equal(values[i].ours, plain) ||
                        g_strv_contains((const char *const *)theirs, plain);
        if (is_meant && g_strv_contains((const char *const *)names, values[i].ours)) {
            return g_strdup_printf("; did you mean %s?", values[i].ours);
        }
    }
    return plan_did_you_mean(value, (const char *const *)names);
}

/* What the capital letters among the names stand for. */
static const char *letters_of(char **names) {
    bool is_whole = false, is_share = false;
    for (char **name = names; *name; name++) {
        const char *equals = strchr(*name, '=');
        const char *kind = equals ? equals + 1 : *name;
        is_whole |= g_str_equal(kind, "K") || g_str_equal(kind, "N");
        is_share |= g_str_equal(kind, "P");
    }
    return is_whole && is_share ? " (K and N are whole numbers from 1, P a number from 0 to 1)"
           : is_whole           ? " (K and N are whole numbers from 1)"
           : is_share           ? " (P is a number from 0 to 1)"
                                : "";
}

static bool refuse_choice(unsigned row, char **names, const char *value, GError **error) {
    g_autofree char *list = g_strjoinv(", ", names);
    g_autofree char *near = meant_by(names, value);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s must be one of %s, not '%s'%s%s",
                keys[row].key, list, value, letters_of(names), near);
    return false;
}

static bool set_choice(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
    for (unsigned i = 0; names[i]; i++) {
        if (g_str_equal(names[i], value)) {
            *(unsigned *)field_of(strategy, row) = i;
            return true;
        }
    }
    return refuse_choice(row, names, value, error);
}

GRegex *plan_strategy_whole_regex(const char *pattern, GError **error) {
    g_autoptr(GRegex) alone = g_regex_new(pattern, 0, 0, error); /* a)|(?:b is none */
    g_autofree char *whole = g_strdup_printf("^(?:%s)$", pattern);
    return alone ? g_regex_new(whole, G_REGEX_OPTIMIZE, 0, error) : NULL;
}

/* The argument of "N", "every=K" (whole numbers), "ratio=P" (a share) or "module=REGEX"; what it is
 * stands at the end of the name. */
static bool read_argument(const char *kind, const char *value, PlanVariant *ret) {
    uint64_t whole = 0;
    if (g_str_equal(kind, "REGEX")) {
        g_autoptr(GRegex) regex = plan_strategy_whole_regex(value, NULL);
        ret->text = g_intern_string(value);
        return regex != NULL && *value;
    }
    if (g_str_equal(kind, "TEXT")) {
        ret->text = g_intern_string(value);
        return *value != 0;
    }
    if (g_str_equal(kind, "P")) {
        return plan_parse_double(value, &ret->number) && ret->number >= 0 && ret->number <= 1;
    }
    bool read = plan_parse_u64(value, &whole) && whole >= 1 && whole <= MAX_ARGUMENT;
    ret->number = (double)whole;
    return read;
}

static bool is_variant(const char *name, const char *value, PlanVariant *ret) {
    const char *kind = strchr(name, '=');
    if (kind) {
        gsize n = (gsize)(++kind - name);
        return !strncmp(value, name, n) && read_argument(kind, value + n, ret);
    }
    return g_str_equal(name, "N") ? read_argument(name, value, ret) : g_str_equal(name, value);
}

/* A regular expression that is none is told with what is wrong with it. */
static bool refuse_variant(unsigned row, char **names, const char *value, GError **error) {
    for (unsigned i = 0; names[i]; i++) {
        gsize n = g_str_has_suffix(names[i], "=REGEX") ? strlen(names[i]) - strlen("REGEX") : 0;
        g_autoptr(GError) why = NULL;
        if (n > 0 && !strncmp(value, names[i], n) && value[n]) {
            g_autoptr(GRegex) regex = plan_strategy_whole_regex(value + n, &why);
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s=%s needs a regular expression that can be matched against a whole "
                        "name: %s",
                        keys[row].key, value, why->message);
            return false;
        }
    }
    return refuse_choice(row, names, value, error);
}

static bool set_variant(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
    for (unsigned i = 0; names[i]; i++) {
        PlanVariant variant = {.choice = i};
        if (is_variant(names[i], value, &variant)) {
            *(PlanVariant *)field_of(strategy, row) = variant;
            return true;
        }
    }
    return refuse_variant(row, names, value, error);
}

bool plan_strategy_is_after(const PlanStrategy *strategy, PlanPytorch version) {
    return plan_pytorch_is_after((PlanPytorch)strategy->pytorch, version);
}

/* The FSDP paper's time: PyTorch had the limiter off and recomputed checkpoints to their end (early
 * stop is 2.1's, pytorch #96866), kept gradients and stepped over one tensor after the other (until
 * 2.0). */
static void take_defaults(PlanStrategy *strategy) {
    bool old = !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0);
    strategy->checkpoint_early_stop = old ? PLAN_NO : PLAN_YES;
    strategy->limit_all_gathers = old ? 0 : 2;
    bool oldest = strategy->pytorch == PLAN_PYTORCH_1_13;
    strategy->zero_grad = oldest ? PLAN_ZERO_KEEP : PLAN_ZERO_DROP;
    strategy->optimizer_kernel = oldest ? PLAN_KERNEL_LOOP : PLAN_KERNEL_FOREACH;
}

G_STATIC_ASSERT(G_N_ELEMENTS(keys) <= PLAN_MOST_KEYS);

static void copy_value(PlanStrategy *strategy, const PlanStrategy *from, unsigned row) {
    static const gsize sizes[] = {[KIND_INT] = sizeof(uint64_t),
                                  [KIND_REAL] = sizeof(double),
                                  [KIND_CHOICE] = sizeof(unsigned),
                                  [KIND_VARIANT] = sizeof(PlanVariant)};
    memcpy(field_of(strategy, row), field_of(from, row), sizes[rows[row].kind]);
}

/* A version's defaults are for what was not given. */
static bool set_pytorch(PlanStrategy *strategy, const char *value, GError **error) {
    PlanPytorchVersion version;
    if (!plan_pytorch_read(value, &version, error)) {
        return false;
    }
    PlanStrategy like = *strategy;
    like.pytorch = version.like;
    like.rms_norm = version.norms_are_kernels ? PLAN_RMS_NORM_KERNEL : PLAN_RMS_NORM_OPS;
    like.reshard_root = version.reshards_root ? PLAN_YES : PLAN_NO;
    like.hold_reduced = version.holds_reduced ? PLAN_YES : PLAN_NO;
    like.attention_kernel =
        version.prefers_cudnn ? PLAN_ATTENTION_KERNEL_CUDNN : PLAN_ATTENTION_KERNEL_FLASH;
    take_defaults(&like);
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!strategy->given[i]) {
            copy_value(strategy, &like, i);
        }
    }
    strategy->pytorch = like.pytorch;
    return true;
}

static bool set_row(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    return rows[row].kind == KIND_VARIANT  ? set_variant(strategy, row, value, error)
           : rows[row].kind == KIND_CHOICE ? set_choice(strategy, row, value, error)
                                           : set_number(strategy, row, value, error);
}

bool plan_strategy_find_key(const char *key, unsigned *ret_row) {
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (g_str_equal(keys[i].key, key)) {
            *ret_row = i;
            return true;
        }
    }
    return false;
}

static bool refuse_key(const char *key, GError **error) {
    const char *names[G_N_ELEMENTS(keys) + 1] = {NULL};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        names[i] = keys[i].key;
    }
    g_autofree char *near = plan_did_you_mean(key, names);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "'%s' is no key of a strategy%s", key,
                *near ? near : "; `man foreshard-strategy` and --help-strategy list them");
    return false;
}

bool plan_strategy_set(PlanStrategy *strategy, const char *key, const char *value, GError **error) {
    if (!plan_ini_can_hold(value)) { /* a plan has its strategy as such lines */
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s must be one line without a comment (from '#' or ';' after a blank on), or "
                    "blanks around it, not '%s'",
                    key, value);
        return false;
    }
    unsigned row;
    if (!plan_strategy_find_key(key, &row)) {
        return refuse_key(key, error);
    }
    bool good = g_str_equal(key, "pytorch") ? set_pytorch(strategy, value, error)
                                            : set_row(strategy, row, value, error);
    strategy->given[row] |= good;
    return good;
}

bool plan_strategy_is_given(const PlanStrategy *strategy, const char *key) {
    unsigned row;
    return plan_strategy_find_key(key, &row) && strategy->given[row];
}

bool plan_strategy_read(PlanStrategy *strategy, const char *text, gsize length,
                        const char *file_name, GError **error) {
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, file_name, error);
    if (!ini) {
        return false;
    }
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        if (!g_str_equal(entry->section, "strategy")) {
            return plan_ini_refuse(ini, entry, error,
                                   "'%s' stands outside [strategy]; move it there", entry->key);
        }
        g_autoptr(GError) cause = NULL;
        if (!plan_strategy_set(strategy, entry->key, entry->value, &cause)) {
            return plan_ini_refuse(ini, entry, error, "%s", cause->message);
        }
    }
    return true;
}

bool plan_strategy_of_text(PlanStrategy *ret, const char *text, GError **error) {
    plan_strategy_init(ret);
    return plan_strategy_read(ret, text, strlen(text), "strategy", error);
}

bool plan_strategy_read_file(PlanStrategy *strategy, const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    if (!text || !plan_strategy_read(strategy, text, length, path, error)) {
        return false;
    }
    bool has_section = strstr(text, "[strategy]"); /* none: it was emptied, or is another file */
    if (!has_section) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE,
                    "%s: this holds no strategy: it has no section [strategy], with lines "
                    "'key = value'",
                    path);
    }
    return has_section;
}

static void append_variant(const PlanVariant *variant, const char *name, GString *text) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    const char *kind = strchr(name, '=');
    bool bare = g_str_equal(name, "N");
    g_string_append_len(text, name, bare ? 0 : kind ? kind + 1 - name : (gssize)strlen(name));
    if (bare || kind) {
        g_string_append(text,
                        variant->text ? variant->text : plan_double_text(number, variant->number));
    }
}

static void append_value(const PlanStrategy *strategy, unsigned row, GString *text) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    switch (rows[row].kind) {
    case KIND_INT:
        g_string_append_printf(text, "%" G_GUINT64_FORMAT, *(uint64_t *)field_of(strategy, row));
        break;
    case KIND_REAL:
        g_string_append(text, plan_double_text(number, *(double *)field_of(strategy, row)));
        break;
    case KIND_CHOICE: {
        g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
        g_string_append(text, names[*(unsigned *)field_of(strategy, row)]);
        break;
    }
    case KIND_VARIANT: {
        g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
        const PlanVariant *variant = field_of(strategy, row);
        append_variant(variant, names[variant->choice], text);
        break;
    }
    }
}

char *plan_strategy_value(const PlanStrategy *strategy, const char *key) {
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (g_str_equal(keys[i].key, key)) {
            GString *text = g_string_new(NULL);
            append_value(strategy, i, text);
            return g_string_free(text, FALSE);
        }
    }
    return NULL;
}

/* which: by key; NULL: all. */
static char *text_of(const PlanStrategy *strategy, const bool *which) {
    GString *text = g_string_new("[strategy]\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!which || which[i]) {
            g_string_append_printf(text, "%s = ", keys[i].key);
            append_value(strategy, i, text);
            g_string_append_c(text, '\n');
        }
    }
    return g_string_free(text, FALSE);
}

char *plan_strategy_text(const PlanStrategy *strategy) {
    return text_of(strategy, NULL);
}

char *plan_strategy_given_text(const PlanStrategy *strategy) {
    return text_of(strategy, strategy->given);
}

static void append_sharding(const PlanStrategy *strategy, GString *title) {
    static const char *const names[] = {" not sharded",    "", " grad-op", " hybrid",
                                        " hybrid-grad-op", ""};
    if (strategy->flavour >= PLAN_FLAVOUR_FSDP1) {
        g_string_append(title, names[strategy->sharding]);
    }
    if (strategy->replicate > 1) {
        g_string_append_printf(title, " %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT,
                               strategy->replicate, plan_strategy_shard_ranks(strategy));
    }
}

static void append_wrap(const PlanStrategy *strategy, GString *title) {
    static const char *const names[] = {", a unit per block", ", one unit for the whole model",
                                        ", a unit per linear layer"};
    if (strategy->flavour < PLAN_FLAVOUR_FSDP1) {
        return;
    }
    if (strategy->wrap.choice < G_N_ELEMENTS(names)) {
        g_string_append(title, names[strategy->wrap.choice]);
        return;
    }
    g_string_append(title, ", units by ");
    g_auto(GStrv) choices = g_strsplit("block whole linear every= size= module=", " ", -1);
    append_variant(&strategy->wrap, choices[strategy->wrap.choice], title);
}

/* What pictures of a class are held side by side for. */
static void append_bargains(const PlanStrategy *strategy, GString *title) {
    static const char *const offloads[] = {"", ", activations offloaded", ", optimizer offloaded",
                                           ", parameters offloaded"};
    if (strategy->checkpointing.choice != PLAN_CHECKPOINTING_NONE) {
        g_string_append(title, ", checkpointed");
    }
    g_string_append(title, offloads[strategy->offload]);
    if (strategy->flavour >= PLAN_FLAVOUR_FSDP1 &&
        strategy->backward_prefetch != PLAN_PREFETCH_PRE) {
        g_string_append(title, strategy->backward_prefetch == PLAN_PREFETCH_NONE
                                   ? ", no backward prefetch"
                                   : ", late backward prefetch");
    }
}

char *plan_strategy_title(const PlanStrategy *strategy) {
    static const char *const flavours[PLAN_N_FLAVOURS] = {
        "auto", "one rank", "DDP", "FSDP1", "FSDP2", "optimizer sharded (ZeRO-1)"};
    bool is_shared = strategy->flavour == PLAN_FLAVOUR_PLAIN && strategy->tensor > 1;
    GString *title = g_string_new(is_shared ? "not sharded" : flavours[strategy->flavour]);
    PlanDtype param = plan_strategy_param_dtype(strategy);
    append_sharding(strategy, title);
    append_wrap(strategy, title);
    if (param != PLAN_FP32) {
        g_string_append_printf(title, ", %s", plan_dtype_name(param));
    }
    if (strategy->autocast != PLAN_AUTOCAST_NONE) {
        g_string_append_printf(title, ", autocast to %s",
                               strategy->autocast == PLAN_AUTOCAST_BF16 ? "bf16" : "fp16");
    }
    if (strategy->lora_rank) {
        g_string_append_printf(title, ", LoRA of rank %" G_GUINT64_FORMAT, strategy->lora_rank);
    }
    if (strategy->lora_base != PLAN_LORA_BASE_MODEL) {
        g_string_append(title, " beside weights in 4 bits");
    }
    if (strategy->freeze.choice != PLAN_FREEZE_NONE) {
        g_string_append(title, ", partly frozen");
    }
    append_bargains(strategy, title);
    if (strategy->tensor > 1) {
        g_string_append_printf(title, ", tensor %" G_GUINT64_FORMAT, strategy->tensor);
    }
    if (strategy->context > 1) {
        g_string_append_printf(title, ", context %" G_GUINT64_FORMAT, strategy->context);
    }
    if (strategy->pipeline > 1) {
        g_string_append_printf(title, ", pipeline %" G_GUINT64_FORMAT, strategy->pipeline);
    }
    if (strategy->pipeline_stages > 1) {
        g_string_append_printf(title, " x %" G_GUINT64_FORMAT " stages", strategy->pipeline_stages);
    }
    g_string_append_printf(title, ", %" G_GUINT64_FORMAT " rank%s, micro-batch %" G_GUINT64_FORMAT,
                           strategy->ranks, strategy->ranks == 1 ? "" : "s", strategy->micro_batch);
    if (strategy->accumulate > 1) {
        g_string_append_printf(title, " x %" G_GUINT64_FORMAT, strategy->accumulate);
    }
    return g_string_free(title, FALSE);
}
