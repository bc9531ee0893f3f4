#include "cli/source/plan-source.h"

#include <string.h>

#include "cli/options/command.h"
#include "cli/options/setting.h"
#include "cli/options/strategy-themes.h"
#include "cli/source/data-dir.h"
#include "cli/source/idle-keys.h"
#include "cli/source/trace-file.h"
#include "memory/options.h"
#include "models/network.h"
#include "plan/check/check.h"
#include "plan/files/ini.h"
#include "plan/files/stream.h"
#include "plan/strategy/strategy.h"
#include "plan/text/text.h"
#include "trace/text.h"

typedef struct {
    const char *key;
    char *value;
    bool is_tried; /* by the command; else it was typed */
} Setting;

struct _CliPlanSource {
    char *strategy_file;
    GArray *settings;        /* Setting, in the order given */
    char **option_names;     /* of the strategy's keys, "micro-batch" */
    bool has_said;           /* what of the network is left out, or taken for granted */
    CliPlanSource *original; /* which says it for a copy; NULL: this is none */
};

/* Typed twice. A knob's values are tried by the command itself, one after the other. */
static void refuse_second(const char *key, const char *first, const char *second, GError **error) {
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s is given twice, as %s and as %s; give one (choose, plot and diagnose try "
                "both: --knob %s=%s,%s)",
                key, first, second, key, first, second);
}

static bool set(CliPlanSource *source, const char *key, const char *value, bool is_tried,
                GError **error) {
    PlanStrategy trial;
    plan_strategy_init(&trial);
    bool is_strategys = cli_setting_of_network(key) == NULL; /* else its family knows it, or not */
    if (is_strategys && !plan_strategy_set(&trial, key, value, error)) {
        return false;
    }
    for (unsigned i = 0; i < source->settings->len; i++) {
        Setting *setting = &g_array_index(source->settings, Setting, i);
        if (g_str_equal(setting->key, key)) {
            if (!is_tried && !g_str_equal(setting->value, value)) {
                refuse_second(key, setting->value, value, error);
                return false;
            }
            g_free(setting->value);
            setting->value = g_strdup(value);
            setting->is_tried = is_tried;
            return true;
        }
    }
    Setting setting = {g_intern_string(key), g_strdup(value), is_tried};
    g_array_append_val(source->settings, setting);
    return true;
}

bool cli_plan_source_set(CliPlanSource *source, const char *key, const char *value,
                         GError **error) {
    return set(source, key, value, true, error);
}

static gboolean take_network_key(const char *option, const char *value, gpointer data,
                                 GError **error) {
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || equals[1] == '\0') {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s %s: give a key of the network and its value, as in %s loss=chunked", option,
                    value, option);
        return FALSE;
    }
    g_autofree char *key = g_strdup_printf("network.%.*s", (int)(equals - value), value);
    return set(data, key, equals + 1, false, error);
}

/* "key=value" of each of the network's. */
static char **network_changes(const CliPlanSource *source) {
    GPtrArray *changes = g_ptr_array_new();
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        const char *key = cli_setting_of_network(setting->key);
        if (key) {
            g_ptr_array_add(changes, g_strconcat(key, "=", setting->value, NULL));
        }
    }
    g_ptr_array_add(changes, NULL);
    return (char **)g_ptr_array_free(changes, FALSE);
}

bool cli_plan_source_is_given(const CliPlanSource *source, const char *key) {
    for (unsigned i = 0; i < source->settings->len; i++) {
        if (g_str_equal(g_array_index(source->settings, Setting, i).key, key)) {
            return true;
        }
    }
    return false;
}

bool cli_plan_source_is_set(const CliPlanSource *source) {
    return source->settings->len > 0 || source->strategy_file;
}

bool cli_plan_source_spares(const CliPlanSource *source, const char *output,
                            const char *const *inputs, unsigned n, GError **error) {
    const char *const own[] = {source->strategy_file};
    return cli_spares_inputs(output, own, G_N_ELEMENTS(own), error) &&
           cli_spares_inputs(output, inputs, n, error);
}

char *cli_plan_source_text(const CliPlanSource *source) {
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        g_string_append_printf(text, "%s%s=%s", i > 0 ? ", " : "", setting->key, setting->value);
    }
    return g_string_free(text, FALSE);
}

char *cli_plan_network_of(const char *title) {
    const char *comma = strstr(title, ", "), *keys = strstr(title, " (");
    const char *end = keys != NULL && (comma == NULL || keys < comma) ? keys : comma;
    return end != NULL ? g_strndup(title, (gsize)(end - title)) : g_strdup(title);
}

char *cli_plan_source_network_keys(const CliPlanSource *source) {
    g_auto(GStrv) changes = network_changes(source);
    GString *text = g_string_new(NULL);
    for (char **change = changes; *change != NULL; change++) {
        g_string_append_printf(text, " --network-key %s", *change);
    }
    return g_string_free(text, FALSE);
}

static gboolean take_option(const char *option, const char *value, gpointer data, GError **error) {
    const char *name = g_str_equal(option, "-n") ? "ranks" : option + 2;
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    g_autoptr(GError) cause = NULL;
    if (!set(data, key, value, false, &cause)) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "option %s: %s", option,
                    cause->message);
        return false;
    }
    return true;
}

static gboolean take_strategy_file(const char *option, const char *path, gpointer data,
                                   GError **error) {
    CliPlanSource *source = data;
    return cli_take_once(&source->strategy_file, option, path, " (options given beside it win)",
                         error);
}

static char *describe(const PlanStrategyKey *key) {
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    g_autofree char *value = plan_strategy_value(&strategy, key->key);
    return key->choices ? g_strdup_printf("%s (%s; default %s)", key->help, key->choices, value)
                        : g_strdup_printf("%s (default %s)", key->help, value);
}

static void add_theme(CliPlanSource *source, const CliStrategyTheme *theme, GOptionGroup *group) {
    unsigned n, i = 0;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    g_auto(GStrv) words = g_strsplit(theme->keys, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        if (!plan_strategy_find_key(*word, &i)) {
            g_error("theme '%s' names no key: %s", theme->title, *word);
        }
        g_autofree char *help = describe(&keys[i]);
        GOptionEntry entry[] = {{source->option_names[i],
                                 g_str_equal(keys[i].key, "ranks") ? 'n' : 0, 0,
                                 G_OPTION_ARG_CALLBACK, (gpointer)take_option,
                                 g_intern_string(help), keys[i].choices ? "CHOICE" : "NUMBER"},
                                {0}};
        g_option_group_add_entries(group, entry);
    }
}

CliPlanSource *cli_plan_source_new(GOptionContext *context) {
    CliPlanSource *source = g_new0(CliPlanSource, 1);
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    source->settings = g_array_new(FALSE, FALSE, sizeof(Setting));
    source->option_names = g_new0(char *, n + 1);
    GOptionGroup *group =
        g_option_group_new("strategy", CLI_STRATEGY_HEADING,
                           "Show strategy options: ranks (-n), sharding, batch, dtypes (fp32 as in "
                           "PyTorch where none is given; choose takes bf16), checkpointing, ...",
                           source, NULL);
    for (unsigned i = 0; i < n; i++) {
        source->option_names[i] = g_strdelimit(g_strdup(keys[i].key), "_", '-');
    }
    for (unsigned theme = 0; theme < cli_n_strategy_themes; theme++) {
        add_theme(source, &cli_strategy_themes[theme], group);
    }
    GOptionEntry file[] = {{"strategy", 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK,
                            (gpointer)take_strategy_file,
                            "an ini file with [strategy]; options given beside it win", "FILE"},
                           {"network-key", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take_network_key,
                            "a key of the network as if its file said so, as loss=chunked; may be "
                            "given for several. A knob has it as network.loss",
                            "KEY=VALUE"},
                           {0}};
    g_option_group_add_entries(group, file);
    g_option_context_add_group(context, group);
    return source;
}

CliPlanSource *cli_plan_source_copy(CliPlanSource *source) {
    CliPlanSource *copy = g_new0(CliPlanSource, 1);
    copy->strategy_file = g_strdup(source->strategy_file);
    copy->settings = g_array_new(FALSE, FALSE, sizeof(Setting));
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        Setting same = {setting->key, g_strdup(setting->value), setting->is_tried};
        g_array_append_val(copy->settings, same);
    }
    copy->original = source->original != NULL ? source->original : source;
    return copy;
}

void cli_plan_source_free(CliPlanSource *source) {
    if (!source) {
        return;
    }
    for (unsigned i = 0; i < source->settings->len; i++) {
        g_free(g_array_index(source->settings, Setting, i).value);
    }
    g_array_unref(source->settings);
    g_strfreev(source->option_names);
    g_free(source->strategy_file);
    g_free(source);
}

static Plan *load_plan(const CliPlanSource *source, const char *path, GError **error) {
    const char *file = plan_stream_name(path);
    g_autoptr(Plan) plan = plan_read_file(path, error);
    if (!plan) {
        return NULL;
    }
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        if (!g_str_equal(setting->key, "ranks")) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s is a plan, whose %s is settled; build another from its network to "
                        "change it",
                        file, setting->key);
            return NULL;
        }
        if (g_ascii_strtoull(setting->value, NULL, 10) != plan->world) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s is a plan for %u rank%s, not %s; leave -n away, or build a plan for "
                        "%s",
                        file, plan->world, plan->world == 1 ? "" : "s", setting->value,
                        setting->value);
            return NULL;
        }
    }
    if (source->strategy_file) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s is a plan, whose strategy is settled; leave --strategy away", file);
        return NULL;
    }
    return g_steal_pointer(&plan);
}

static bool begins_with_key(const char *message, const char *key) {
    gsize n = strlen(key);
    return strncmp(message, key, n) == 0 && (message[n] == '=' || message[n] == ' ');
}

/* Keys that do not go together are refused by the name of one of them: if it is in the file and no
 * option overrides it, that is the place. */
static void say_which_line(const CliPlanSource *source, GError **error) {
    g_autoptr(PlanIni) ini =
        source->strategy_file ? plan_ini_read_file(source->strategy_file, NULL) : NULL;
    for (unsigned i = 0; i < source->settings->len; i++) {
        if (begins_with_key((*error)->message, g_array_index(source->settings, Setting, i).key)) {
            return;
        }
    }
    for (unsigned i = 0; ini && i < ini->n_entries; i++) {
        if (begins_with_key((*error)->message, ini->entries[i].key)) {
            g_prefix_error(error, "%s:%u: ", source->strategy_file, ini->entries[i].line);
            return;
        }
    }
}

/* "--strategy ddp" is meant as another program's: what stands there is the name of a file. */
static bool read_strategy_file(PlanStrategy *strategy, const char *path, GError **error) {
    GError *refusal = NULL;
    bool good = plan_strategy_read_file(strategy, path, &refusal);
    if (!good) {
        g_propagate_error(error, refusal);
    }
    if (!good && !g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_prefix_error(error, "--strategy takes a file of settings, as choose -o writes one (by "
                              "name they are given as --sharding none, --flavour fsdp1, ...); ");
    }
    return good;
}

bool cli_plan_source_strategy(const CliPlanSource *source, PlanStrategy *strategy, GError **error) {
    plan_strategy_init(strategy);
    if (source->strategy_file && !read_strategy_file(strategy, source->strategy_file, error)) {
        return false;
    }
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        if (!cli_setting_of_network(setting->key) &&
            !plan_strategy_set(strategy, setting->key, setting->value, error)) {
            return false;
        }
    }
    return true;
}

static bool settle(const CliPlanSource *source, PlanStrategy *strategy, GError **error) {
    if (!cli_plan_source_strategy(source, strategy, error)) {
        return false;
    }
    GError *refusal = NULL;
    MemoryOptions memory;
    if (!plan_strategy_settle(strategy, &refusal) ||
        (strategy->allocator.choice == PLAN_ALLOCATOR_CONF &&
         !memory_options_parse(strategy->allocator.text, &memory, &refusal))) {
        say_which_line(source, &refusal);
        g_propagate_error(error, refusal);
        return false;
    }
    return true;
}

static void say_what_is_idle(const CliPlanSource *source, const PlanStrategy *strategy) {
    g_autoptr(GPtrArray) tried = g_ptr_array_new();
    for (unsigned i = 0; i < source->settings->len; i++) {
        const Setting *setting = &g_array_index(source->settings, Setting, i);
        if (setting->is_tried) {
            g_ptr_array_add(tried, (gpointer)setting->key);
        }
    }
    g_ptr_array_add(tried, NULL);
    cli_idle_keys_note(strategy, (const char *const *)tried->pdata);
}

/* What a config.json does not settle, and which keys change nothing; and where a network reads far
 * more tokens than most train it on, that this is what is planned. Once, however often the network
 * is planned. */
static void say_what_is_taken(CliPlanSource *source, const ModelNetwork *network,
                              const PlanStrategy *strategy, const char *path) {
    const uint64_t usual_sequence = 8192; /* tokens; Llama 3's was trained on so many */
    const char *what = network->from_config ? path : network->name;
    CliPlanSource *asked = source;
    source = source->original != NULL ? source->original : source;
    if (source->has_said) { /* threads that plan ahead read it, and begin only then */
        return;
    }
    if (network->dropouts) {
        cli_complain(
            CLI_OK,
            "note: %s: dropout is left out (%s), so its masks are not in memory; a file as "
            "in models/networks can have it (dropout = P)",
            what, network->dropouts);
    }
    if (network->quantized && strategy->lora_base == PLAN_LORA_BASE_MODEL) {
        cli_complain(CLI_OK,
                     "note: %s: quantization_config (%s) is left out; weights are planned in "
                     "--model-dtype (--lora-base nf4 plans adapters over 4-bit ones)",
                     what, network->quantized);
    }
    bool is_long = network->from_config || network->seq > usual_sequence;
    if (is_long && strategy->seq == 0) {
        cli_complain(CLI_OK,
                     "note: %s: sequences have %" G_GUINT64_FORMAT
                     " tokens, the most it allows; --seq N plans shorter ones",
                     what, (guint64)network->seq);
    }
    say_what_is_idle(asked, strategy);
    source->has_said = true;
}

bool cli_plan_source_finds(const char *name, GError **error) {
    bool is_plan = plan_is_file(name) || g_str_equal(name, "-") || plan_stream_is(name);
    g_autofree char *path = is_plan ? NULL : cli_data_find(CLI_DATA_NETWORKS, name, error);
    return is_plan || path;
}

Plan *cli_plan_source_load(CliPlanSource *source, const char *name, PlanForm form, GError **error) {
    if (trace_is_file(name)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s is a trace; give the plan or the network that it is of",
                    plan_stream_name(name));
        return NULL;
    }
    if (plan_is_file(name) || g_str_equal(name, "-") || plan_stream_is(name)) {
        return load_plan(source, name, error);
    }
    if (!cli_trace_is_no_snapshot(name, error)) {
        return NULL;
    } /* anything else is taken for a network */
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, name, error);
    if (!path) {
        return NULL;
    }
    if (plan_is_file(path)) {
        return load_plan(source, path, error);
    }
    PlanStrategy strategy;
    if (!settle(source, &strategy, error)) {
        return NULL;
    }
    g_auto(GStrv) changes = network_changes(source);
    g_autoptr(ModelNetwork) network =
        model_network_read_file_with(path, (const char *const *)changes, error);
    if (!network) {
        return NULL;
    }
    say_what_is_taken(source, network, &strategy, path);
    return model_network_plan(network, &strategy, form, error);
}

Plan *cli_plan_source_load_to_hand_on(CliPlanSource *source, const char *name, GError **error) {
    g_autoptr(Plan) plan = cli_plan_source_load(source, name, PLAN_FORM_WHOLE, error);
    return plan && plan_check(plan, error) ? g_steal_pointer(&plan) : NULL;
}
