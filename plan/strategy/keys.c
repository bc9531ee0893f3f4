/* plan/strategy/keys.c - the keys of a strategy, and one key's value: read, bounded, written. */
#include <string.h>

#include "plan/files/ini.h"
#include "plan/files/nearest.h"
#include "plan/plan.h"
#include "plan/strategy/private.h"

typedef enum {
    KIND_INT,
    KIND_REAL,
    KIND_CHOICE,
    KIND_VARIANT
} KeyKind;

enum {
    MAX_ARGUMENT = 1000000000,
    WHOLE = 17 /* digits, so that a bound is shown as the numbers that are read: without exponent */
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

bool plan_strategy_find_key(const char *key, unsigned *ret_row) {
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (keys[i].key[0] == key[0] && g_str_equal(keys[i].key, key)) { /* seldom a call */
            *ret_row = i;
            return true;
        }
    }
    return false;
}

static char **names_of(unsigned row) {
    return g_strsplit(keys[row].choices, " ", -1);
}

void plan_key_init(PlanStrategy *strategy, unsigned row) {
    double start = rows[row].start;
    switch (rows[row].kind) {
    case KIND_INT:
        *(uint64_t *)field_of(strategy, row) = (uint64_t)start;
        break;
    case KIND_REAL:
        *(double *)field_of(strategy, row) = start;
        break;
    case KIND_CHOICE:
        *(unsigned *)field_of(strategy, row) = (unsigned)start;
        break;
    case KIND_VARIANT:
        *(PlanVariant *)field_of(strategy, row) = (PlanVariant){.choice = (unsigned)start};
        break;
    }
}

static bool set_number(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    uint64_t whole = 0;
    double real = 0;
    bool is_int = rows[row].kind == KIND_INT;
    bool read = is_int ? plan_parse_u64(value, &whole) : plan_parse_double(value, &real);
    double number = is_int ? (double)whole : real;
    if (!read || number < rows[row].min || number > rows[row].max) {
        g_autofree char *written_out =
            is_int ? plan_written_out(value, rows[row].min, rows[row].max) : g_strdup("");
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
    const char *instead; /* what is said where ours does not stand for theirs; NULL: it does */
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
    {"block", "layer transformer-block decoder-layer"},
    {"adamw", "adamw-torch adamw-torch-fused adamw-hf"},
    {"yes", "true on 1"},
    {"no", "false off 0"},
    {"fsdp2", "deepspeed", "; DeepSpeed's ZeRO 3 is planned as fsdp2 with sharding=full"},
    {"bf16", "fp8 float8 e4m3", "; linear layers in float8 are asked for by float8"},
    {"mxfp8", "mx mxfp8-rceil mxfp8-cublas microscaling"},
    {"delayed", "te transformer-engine delayed-scaling amp-fp8 fp8-te hybrid"},
    {"adamw-torch-8bit", "adamw8bit torchao torchao-adamw8bit"},
    {"adamw",
     "adamw-8bit adam-8bit adam8bit paged-adamw-8bit paged-adamw8bit adamw-bnb-8bit "
     "paged-adamw-32bit paged-adamw",
     "; adamw-torch-8bit is torchao's AdamW8bit; bitsandbytes' optimizers, in 8 bits or paged, are "
     "not planned"},
};

/* Whether the value begins as one of the names does and only what stands behind '=' is wrong. */
static bool is_named(char **names, const char *value) {
    const char *equals = strchr(value, '=');
    gsize n = equals ? (gsize)(equals + 1 - value) : 0;
    for (char **name = names; n > 0 && *name; name++) {
        if (!strncmp(*name, value, n)) {
            return true;
        }
    }
    return false;
}

/* A class, or a module's path, where a regular expression over those is one of the choices. */
static char *as_module(char **names, const char *value) {
    bool is_one = g_ascii_isupper(*value) || strchr(value, '.');
    for (char **name = names; *name && is_one && !strchr(value, '='); name++) {
        if (g_str_equal(*name, "module=REGEX")) {
            return g_strdup_printf("; did you mean module=%s?", value);
        }
    }
    return NULL;
}

/* What a word of another program means here: the first of our values for it that this key has. */
static char *meant_by(char **names, const char *value) {
    g_autofree char *lower = g_strdelimit(g_ascii_strdown(value, -1), "_", '-');
    const char *plain = lower + strspn(lower, "-");
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        g_auto(GStrv) theirs = g_strsplit(values[i].theirs, " ", -1);
        bool is_meant = g_str_equal(values[i].ours, plain) ||
                        g_strv_contains((const char *const *)theirs, plain);
        if (is_meant && g_strv_contains((const char *const *)names, values[i].ours)) {
            return values[i].instead ? g_strdup(values[i].instead)
                                     : g_strdup_printf("; did you mean %s?", values[i].ours);
        }
    }
    char *module = as_module(names, value);
    return module                   ? module
           : is_named(names, value) ? g_strdup("")
                                    : plan_did_you_mean(value, (const char *const *)names);
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
    gsize n = strlen(value);
    const char *name = keys[row].choices;
    for (unsigned i = 0; *name; i++) { /* in place: a plan's strategy has a hundred of them */
        gsize length = strcspn(name, " ");
        if (length == n && memcmp(name, value, n) == 0) {
            *(unsigned *)field_of(strategy, row) = i;
            return true;
        }
        name += length + (name[length] == ' ');
    }
    g_auto(GStrv) names = names_of(row);
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
    g_auto(GStrv) names = names_of(row);
    for (unsigned i = 0; names[i]; i++) {
        PlanVariant variant = {.choice = i};
        if (is_variant(names[i], value, &variant)) {
            *(PlanVariant *)field_of(strategy, row) = variant;
            return true;
        }
    }
    return refuse_variant(row, names, value, error);
}

bool plan_key_set(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    switch (rows[row].kind) {
    case KIND_INT:
    case KIND_REAL:
        return set_number(strategy, row, value, error);
    case KIND_CHOICE:
        return set_choice(strategy, row, value, error);
    case KIND_VARIANT:
        return set_variant(strategy, row, value, error);
    }
    g_assert_not_reached();
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

void plan_key_append_value(const PlanStrategy *strategy, unsigned row, GString *text) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    switch (rows[row].kind) {
    case KIND_INT:
        g_string_append_printf(text, "%" G_GUINT64_FORMAT, *(uint64_t *)field_of(strategy, row));
        break;
    case KIND_REAL:
        g_string_append(text, plan_double_text(number, *(double *)field_of(strategy, row)));
        break;
    case KIND_CHOICE: {
        g_auto(GStrv) names = names_of(row);
        g_string_append(text, names[*(unsigned *)field_of(strategy, row)]);
        break;
    }
    case KIND_VARIANT: {
        g_auto(GStrv) names = names_of(row);
        const PlanVariant *variant = field_of(strategy, row);
        append_variant(variant, names[variant->choice], text);
        break;
    }
    }
}

bool plan_strategy_is_given(const PlanStrategy *strategy, const char *key) {
    unsigned row;
    return plan_strategy_find_key(key, &row) && strategy->given[row];
}
