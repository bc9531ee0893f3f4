#include "plan/strategy.h"

#include <string.h>

#include "plan/ini.h"
#include "plan/plan.h"

typedef enum {
    KIND_INT,
    KIND_REAL,
    KIND_CHOICE
} KeyKind;

typedef struct {
    KeyKind kind;
    gsize offset;
    double start, min, max;
} KeyRow;

static const PlanStrategyKey keys[] = {
#define INT(field, name, start, min, max, text)  {name, text, NULL},
#define REAL(field, name, start, min, max, text) {name, text, NULL},
#define CHOICE(field, name, start, names, text)  {name, text, names},
#include "plan/strategy-keys.def"
#undef INT
#undef REAL
#undef CHOICE
};

static const KeyRow rows[G_N_ELEMENTS(keys)] = {
#define INT(field, name, start, min, max, text)                                                    \
    {KIND_INT, offsetof(PlanStrategy, field), start, min, max},
#define REAL(field, name, start, min, max, text)                                                   \
    {KIND_REAL, offsetof(PlanStrategy, field), start, min, max},
#define CHOICE(field, name, start, names, text)                                                    \
    {KIND_CHOICE, offsetof(PlanStrategy, field), start, 0, 0},
#include "plan/strategy-keys.def"
#undef INT
#undef REAL
#undef CHOICE
};

const PlanStrategyKey *plan_strategy_keys(unsigned *ret_n) {
    *ret_n = G_N_ELEMENTS(keys);
    return keys;
}

static gpointer field_of(const PlanStrategy *strategy, unsigned row) {
    return (char *)strategy + rows[row].offset;
}

void plan_strategy_init(PlanStrategy *strategy) {
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
        }
    }
}

static bool set_number(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    uint64_t whole = 0;
    double real = 0;
    bool is_int = rows[row].kind == KIND_INT;
    bool read = is_int ? plan_parse_u64(value, &whole) : plan_parse_double(value, &real);
    double number = is_int ? (double)whole : real;
    if (!read || number < rows[row].min || number > rows[row].max) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s must be %s from %g to %g, not '%s'",
                    keys[row].key, is_int ? "a whole number" : "a number", rows[row].min,
                    rows[row].max, value);
        return false;
    }
    if (is_int) {
        *(uint64_t *)field_of(strategy, row) = whole;
    } else {
        *(double *)field_of(strategy, row) = real;
    }
    return true;
}

static bool set_choice(PlanStrategy *strategy, unsigned row, const char *value, GError **error) {
    g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
    for (unsigned i = 0; names[i]; i++) {
        if (g_str_equal(names[i], value)) {
            *(unsigned *)field_of(strategy, row) = i;
            return true;
        }
    }
    g_autofree char *list = g_strjoinv(", ", names);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s must be one of %s, not '%s'",
                keys[row].key, list, value);
    return false;
}

bool plan_strategy_set(PlanStrategy *strategy, const char *key, const char *value, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (g_str_equal(keys[i].key, key)) {
            return rows[i].kind == KIND_CHOICE ? set_choice(strategy, i, value, error)
                                               : set_number(strategy, i, value, error);
        }
    }
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_string_append_printf(known, "%s%s", i ? ", " : "", keys[i].key);
    }
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "'%s' is no key of a strategy; the keys are %s", key, known->str);
    return false;
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

bool plan_strategy_read_file(PlanStrategy *strategy, const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    return text && plan_strategy_read(strategy, text, length, path, error);
}

static bool refuse(GError **error, const char *message) {
    g_set_error_literal(error, PLAN_ERROR, PLAN_ERROR_VALUE, message);
    return false;
}

PlanDtype plan_strategy_param_dtype(const PlanStrategy *strategy) {
    return (PlanDtype)strategy->param_dtype;
}

PlanDtype plan_strategy_reduce_dtype(const PlanStrategy *strategy) {
    return strategy->reduce_dtype == PLAN_REDUCE_PARAM ? plan_strategy_param_dtype(strategy)
                                                       : (PlanDtype)(strategy->reduce_dtype - 1);
}

static bool precision_is_fsdp(const PlanStrategy *strategy, GError **error) {
    bool is_fsdp =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
    if (!is_fsdp && (plan_strategy_param_dtype(strategy) != PLAN_FP32 ||
                     plan_strategy_reduce_dtype(strategy) != PLAN_FP32)) {
        return refuse(error, "param_dtype and reduce_dtype are FSDP's mixed precision; without it "
                             "set both to fp32, or flavour=fsdp1 or fsdp2");
    }
    return true;
}

/* Keys that only FSDP1 has. */
static bool keys_are_fsdp1s(const PlanStrategy *strategy, GError **error) {
    if (strategy->flavour == PLAN_FLAVOUR_FSDP1) {
        return true;
    }
    if (strategy->backward_prefetch == PLAN_PREFETCH_POST) {
        return refuse(error,
                      "backward_prefetch=post is FSDP1's; set flavour=fsdp1, or pre or none");
    }
    if (strategy->forward_prefetch == PLAN_YES) {
        return refuse(error,
                      "forward_prefetch is FSDP1's; set flavour=fsdp1, or forward_prefetch=no");
    }
    return true;
}

static bool settle_optimizer(PlanStrategy *strategy, GError **error) {
    bool sgd =
        strategy->optimizer == PLAN_OPTIMIZER_SGD || strategy->optimizer == PLAN_OPTIMIZER_MOMENTUM;
    if (strategy->weight_decay == -1) {
        strategy->weight_decay = strategy->optimizer == PLAN_OPTIMIZER_ADAMW ? 0.01 : 0;
    }
    if (strategy->weight_decay < 0) {
        return refuse(error, "weight_decay is 0 or more, or -1 for PyTorch's own");
    }
    if (sgd && strategy->flavour == PLAN_FLAVOUR_FSDP2 &&
        strategy->optimizer_kernel == PLAN_KERNEL_FUSED) {
        return refuse(error, "fused SGD has no rule for FSDP2's DTensors in PyTorch; "
                             "set optimizer_kernel=foreach or loop");
    }
    if (strategy->clip > 0 && strategy->flavour == PLAN_FLAVOUR_FSDP1) {
        return refuse(error, "clip is not known with flavour=fsdp1; set clip=0, or flavour=fsdp2");
    }
    return true;
}

bool plan_strategy_settle(PlanStrategy *strategy, GError **error) {
    if (strategy->flavour == PLAN_FLAVOUR_AUTO) {
        strategy->flavour = strategy->sharding == PLAN_SHARDING_FULL ? PLAN_FLAVOUR_FSDP2
                            : strategy->ranks > 1                    ? PLAN_FLAVOUR_DDP
                                                                     : PLAN_FLAVOUR_PLAIN;
    }
    if (!precision_is_fsdp(strategy, error) || !keys_are_fsdp1s(strategy, error) ||
        !settle_optimizer(strategy, error)) {
        return false;
    }
    switch ((PlanFlavourId)strategy->flavour) {
    case PLAN_FLAVOUR_PLAIN:
        if (strategy->ranks > 1) {
            return refuse(error, "flavour=plain has nothing that joins ranks; "
                                 "set ranks=1, or flavour=ddp or fsdp2");
        }
        if (strategy->sharding != PLAN_SHARDING_NONE) {
            return refuse(error, "flavour=plain shards nothing; set sharding=none");
        }
        return true;
    case PLAN_FLAVOUR_DDP:
        if (strategy->sharding != PLAN_SHARDING_NONE) {
            return refuse(error, "flavour=ddp shards nothing; set sharding=none, "
                                 "or flavour=fsdp2");
        }
        return true;
    case PLAN_FLAVOUR_FSDP1:
        return true;
    case PLAN_FLAVOUR_FSDP2:
        if (strategy->sharding != PLAN_SHARDING_FULL) {
            return refuse(error, "flavour=fsdp2 shards everything; set sharding=full, "
                                 "or flavour=ddp");
        }
        return true;
    case PLAN_FLAVOUR_AUTO:
    case PLAN_N_FLAVOURS:
        break;
    }
    g_assert_not_reached();
}

static void append_value(const PlanStrategy *strategy, unsigned row, GString *text) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    switch (rows[row].kind) {
    case KIND_INT:
        g_string_append_printf(text, "%" G_GUINT64_FORMAT, *(uint64_t *)field_of(strategy, row));
        break;
    case KIND_REAL:
        g_string_append(text,
                        g_ascii_dtostr(number, sizeof number, *(double *)field_of(strategy, row)));
        break;
    case KIND_CHOICE: {
        g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
        g_string_append(text, names[*(unsigned *)field_of(strategy, row)]);
        break;
    }
    }
}

char *plan_strategy_text(const PlanStrategy *strategy) {
    GString *text = g_string_new("[strategy]\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_string_append_printf(text, "%s = ", keys[i].key);
        append_value(strategy, i, text);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

char *plan_strategy_title(const PlanStrategy *strategy) {
    static const char *const flavours[PLAN_N_FLAVOURS] = {"auto", "one rank", "DDP", "FSDP1",
                                                          "FSDP2"};
    const char *wrap = strategy->flavour < PLAN_FLAVOUR_FSDP1 ? ""
                       : strategy->wrap == PLAN_WRAP_BLOCK    ? ", unit a block"
                                                              : ", unit the whole";
    PlanDtype param = plan_strategy_param_dtype(strategy);
    return g_strdup_printf("%s%s%s%s, %" G_GUINT64_FORMAT " rank%s, micro-batch %" G_GUINT64_FORMAT,
                           flavours[strategy->flavour], wrap, param == PLAN_FP32 ? "" : ", ",
                           param == PLAN_FP32 ? "" : plan_dtype_name(param), strategy->ranks,
                           strategy->ranks == 1 ? "" : "s", strategy->micro_batch);
}
