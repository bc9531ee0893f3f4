/* cli/explain/setting.c - what a setting of the strategy does, what it is here, and what each other
 * value would change.
 */
#include <string.h>

#include "cli/explain/private.h"
#include "cli/options/setting.h"
#include "cli/what-if/what-if.h"
#include "plan/strategy/strategy.h"
#include "trace/scale.h"

/* Of numbers whose halves and doubles tell little. */
static const struct {
    const char *key, *values;
} numbers[] = {
    {"limit_all_gathers", "0 1 2 4"}, {"clip", "0 1"},
    {"lora_rank", "0 8 16 64"},       {"bucket_mb", "5 25 100"},
    {"lora_dropout", "0 0.05"},       {"eval_batches", "0 1"},
};

/* Half, and twice, where it is a whole number; nothing of a rate. */
static char *values_of_number(const char *key, const char *here) {
    guint64 n;
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (g_str_equal(numbers[i].key, key)) {
            return g_strdup(numbers[i].values);
        }
    }
    if (!g_ascii_string_to_unsigned(here, 10, 1, 1 << 20, &n, NULL)) {
        return g_strdup("");
    }
    return n % 2 == 0
               ? g_strdup_printf("%" G_GUINT64_FORMAT " %s %" G_GUINT64_FORMAT, n / 2, here, 2 * n)
               : g_strdup_printf("%s %" G_GUINT64_FORMAT, here, 2 * n);
}

/* Those without an argument, and "every=2" for "every=K". */
static char *values_of_choice(const char *choices) {
    g_auto(GStrv) names = g_strsplit(choices, " ", -1);
    GString *values = g_string_new(NULL);
    for (char **name = names; *name != NULL; name++) {
        bool is_every = g_str_equal(*name, "every=K");
        if (is_every || (strchr(*name, '=') == NULL && !g_str_equal(*name, "N"))) {
            g_string_append_printf(values, "%s%s", values->len > 0 ? " " : "",
                                   is_every ? "every=2" : *name);
        }
    }
    return g_string_free(values, FALSE);
}

/* "+0.0" of what is below it. */
static void append_change(GString *text, double now, double before) {
    double percent = before > 0 ? 100 * (now / before - 1) : 0;
    g_string_append_printf(text, " %+7.1f %%", percent > -0.05 && percent < 0 ? 0 : percent);
}

/* The rate tells values of other batches apart, whose steps have more to do. */
static void append_prediction(GString *text, const SimPrediction *with, const SimPrediction *base) {
    static const double GIB = 1 << 30;
    bool is_here = with == base;
    double step_ns = (double)with->median_step_ns, reserved = (double)with->peak_reserved_bytes;
    TraceScale scale = trace_scale_time((double)base->median_step_ns);
    g_string_append_printf(text, "step %9.3f %s", step_ns / scale.per_unit, scale.unit);
    if (is_here) {
        g_string_append(text, "      here");
    } else {
        append_change(text, step_ns, (double)base->median_step_ns);
    }
    g_string_append_printf(text, "  %7.1f TFLOP/s/GPU  %7.2f GiB reserved",
                           step_ns > 0 ? with->flops / step_ns / 1e3 : 0, reserved / GIB);
    if (!is_here) {
        append_change(text, reserved, (double)base->peak_reserved_bytes);
    }
    if (!with->fits) {
        g_string_append(text, ", does not fit");
    } else if (with->alloc_retries > 0) {
        g_autofree char *retries = trace_retries_text(with->alloc_retries, with->n_steps);
        g_string_append_printf(text, ", %s", retries);
    }
}

/* What a flavour and a sharding need of each other. */
static const char *beside(const char *key, const char *value) {
    bool shards_none = g_str_equal(value, "ddp") || g_str_equal(value, "plain");
    if (g_str_equal(key, "flavour")) {
        return shards_none                   ? "sharding=none"
               : g_str_equal(value, "zero1") ? "sharding=optimizer-only"
                                             : "";
    }
    bool is_tied = g_str_equal(value, "none") || g_str_equal(value, "optimizer-only");
    return g_str_equal(key, "sharding") && is_tied ? "flavour=auto" : "";
}

static bool is_possible(const SimPrediction *prediction) {
    return prediction != NULL && prediction->unsupported_dtype == NULL;
}

#define UNMIXED " param_dtype=model reduce_dtype=param"

/* What else is set where a value does not go with what there is, the least first. Transfer full. */
static char **repairs_of(CliWhatIf *what_if) {
    const char *dtype = cli_what_if_get(what_if, "param_dtype");
    g_autoptr(GStrvBuilder) repairs = g_strv_builder_new();
    g_autofree char *cast = g_strdup_printf("autocast=%s" UNMIXED, dtype);
    g_autofree char *all_in = g_strdup_printf("model_dtype=%s" UNMIXED, dtype);
    g_autofree char *cast_whole = g_strconcat(cast, " tensor=1", NULL);
    g_autofree char *all_in_whole = g_strconcat(all_in, " tensor=1", NULL);
    bool is_mixed = !g_str_equal(dtype, "model"); /* DDP has no mixed precision of its own */
    g_strv_builder_add_many(repairs, "tensor=1", "flavour=fsdp2 sharding=full",
                            is_mixed ? cast : NULL, all_in, cast_whole, all_in_whole, NULL);
    return g_strv_builder_end(repairs);
}

/* Those of a repair that are not so already. Transfer full. */
static char *what_changes(const CliWhatIf *what_if, const char *repair) {
    g_auto(GStrv) pairs = g_strsplit(repair, " ", -1);
    GString *changes = g_string_new(NULL);
    for (char **pair = pairs; *pair != NULL; pair++) {
        if (cli_what_if_changes(what_if, *pair)) {
            g_string_append_printf(changes, " %s", *pair);
        }
    }
    return g_string_free(changes, FALSE);
}

/* The nearest that is possible, and what it takes beside the value; NULL: none is known. */
static SimPrediction *predict_repaired(CliWhatIf *what_if, const char *key, const char *changes,
                                       char **ret_beside) {
    g_auto(GStrv) repairs = repairs_of(what_if);
    for (char **repair = repairs; *repair != NULL; repair++) {
        g_auto(GStrv) pairs = cli_settings_split(*repair);
        g_autofree char *beside = what_changes(what_if, *repair);
        if (*beside == '\0' || cli_settings_value(pairs, key) != NULL) {
            continue;
        }
        g_autofree char *all = g_strconcat(changes, beside, NULL);
        g_autoptr(SimPrediction) with = cli_what_if(what_if, all, NULL, NULL);
        if (is_possible(with)) {
            *ret_beside = cli_settings_as_options(beside);
            return g_steal_pointer(&with);
        }
    }
    return NULL;
}

static void append_value(GString *text, CliWhatIf *what_if, const CliSubject *subject,
                         const char *key, const char *value) {
    g_autoptr(GError) refusal = NULL;
    g_autofree char *beside_it = NULL;
    bool is_here = g_strcmp0(cli_what_if_get(what_if, key), value) == 0;
    g_autofree char *changes = g_strconcat(beside(key, value), " ", key, "=", value, NULL);
    g_autoptr(SimPrediction) with = is_here ? NULL : cli_what_if(what_if, changes, NULL, &refusal);
    g_autoptr(SimPrediction) repaired =
        refusal != NULL ? predict_repaired(what_if, key, changes, &beside_it) : NULL;
    g_string_append_printf(text, "  %-16s ", value);
    if (is_here || is_possible(with)) {
        append_prediction(text, is_here ? subject->prediction : with, subject->prediction);
    } else if (repaired != NULL) {
        append_prediction(text, repaired, subject->prediction);
        g_string_append_printf(text, ", with %s", beside_it);
    } else {
        g_string_append_printf(text, "not possible: %s",
                               with != NULL ? "the GPU cannot compute so" : refusal->message);
    }
    g_string_append_c(text, '\n');
}

/* Each value's step and memory, beside those of the plan as it is. */
static void append_values(GString *text, const CliSubject *subject, const char *key,
                          const char *values) {
    g_autoptr(CliWhatIf) what_if =
        subject->prediction != NULL && subject->prediction->unsupported_dtype == NULL
            ? cli_what_if_on(subject->trace, subject->cluster, NULL)
            : NULL;
    if (what_if == NULL || *values == '\0') {
        return;
    }
    const char *decided_by;
    const char *idle = plan_strategy_why_idle(&what_if->strategy, key, &decided_by);
    if (idle != NULL) {
        g_string_append_printf(text, "it changes nothing here: it %s\n", idle);
        return;
    }
    g_string_append_printf(text, "what it changes of %s, on %s\n",
                           trace_get(subject->trace, "title"), subject->cluster->name);
    g_auto(GStrv) each = g_strsplit(values, " ", -1);
    for (char **value = each; *value != NULL; value++) {
        append_value(text, what_if, subject, key, *value);
    }
}

bool explain_setting(GString *text, const CliSubject *subject, const char *name) {
    unsigned n, row;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    if (!plan_strategy_find_key(key, &row)) {
        return false;
    }
    g_auto(GStrv) settings = cli_settings_split(trace_get(subject->trace, "strategy"));
    const char *here = cli_settings_value(settings, key);
    g_autofree char *option = g_strdelimit(g_strdup(key), "_", '-');
    g_string_append_printf(text, "%s is a setting (--%s), here %s: %s\n", key, option,
                           here != NULL ? here : "not told", keys[row].help);
    if (keys[row].choices != NULL) {
        g_auto(GStrv) choices = g_strsplit(keys[row].choices, " ", -1);
        g_autofree char *list = g_strjoinv(", ", choices);
        g_string_append_printf(text, "it is one of %s\n", list);
    }
    g_autofree char *values = keys[row].choices != NULL
                                  ? values_of_choice(keys[row].choices)
                                  : values_of_number(key, here != NULL ? here : "");
    append_values(text, subject, key, values);
    g_string_append_printf(text,
                           "other values: foreshard plot NETWORK --knob %s=A,B; "
                           "foreshard diagnose tries one setting at a time\n",
                           key);
    return true;
}
