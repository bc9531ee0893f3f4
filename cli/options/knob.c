#include "cli/options/knob.h"

#include <string.h>

#include "cli/options/other-words.h"

/* A key by which other programs know one of ours. */
static char *of_others(const char *key) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    g_auto(GStrv) options = g_new0(char *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        options[i] = g_strdelimit(g_strconcat("--", keys[i].key, NULL), "_", '-');
    }
    return cli_other_word(key, (const char *const *)options);
}

/* "nic_gb_per_s" or "inter_node.nic_gb_per_s", of a cluster's file; "" is none. */
static char *of_clusters(const char *key) {
    static const char *const names[] = {
#define COUNT(section, key, ...) #section "." #key,
#define REAL(section, key, ...)  #section "." #key,
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(names[i], key) || g_str_equal(strchr(names[i], '.') + 1, key)) {
            return g_strdup_printf("; of a cluster it is cluster.%s", names[i]);
        }
    }
    return g_strdup("");
}

/* Whoever sets it knows whether it is a key; here only what is meant by another word. */
static bool check_word(const char *text, const char *key, GError **error) {
    unsigned row;
    if (plan_strategy_find_key(key, &row)) {
        return true;
    }
    g_autofree char *of_cluster = of_clusters(key);
    g_autofree char *other = *of_cluster != '\0' ? g_strdup(of_cluster) : of_others(key);
    if (*other == '\0') {
        return true;
    }
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--knob %s: '%s' is no key of a strategy%s", text, key, other);
    return false;
}

static void clear_knob(gpointer data) {
    CliKnob *knob = data;
    g_free(knob->key);
    g_strfreev(knob->values);
}

bool cli_knob_read(const char *text, CliKnob *ret, GError **error) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--knob %s: give a strategy key and its values, as in --knob wrap=block,whole",
                    text);
        return false;
    }
    g_autofree char *key = g_strdelimit(g_strndup(text, (gsize)(equals - text)), "-", '_');
    if (!check_word(text, key, error)) {
        return false;
    }
    *ret = (CliKnob){g_steal_pointer(&key), g_strsplit(equals + 1, ",", -1)};
    for (char **value = ret->values; *value != NULL; value++) {
        g_strstrip(*value); /* "1, 2" */
        if (**value == '\0') {
            clear_knob(ret);
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--knob %s: one of its values is empty; leave a comma away", text);
            return false;
        }
    }
    return true;
}

const char *cli_knob_of_cluster(const char *key) {
    static const char PREFIX[] = "cluster.";
    return g_str_has_prefix(key, PREFIX) ? key + strlen(PREFIX) : NULL;
}

GArray *cli_knobs_new(void) {
    GArray *knobs = g_array_new(FALSE, FALSE, sizeof(CliKnob));
    g_array_set_clear_func(knobs, clear_knob);
    return knobs;
}

const CliKnob *cli_knobs_find(const GArray *knobs, const char *key) {
    for (guint i = 0; i < knobs->len; i++) {
        const CliKnob *knob = &g_array_index(knobs, CliKnob, i);
        if (g_str_equal(knob->key, key)) {
            return knob;
        }
    }
    return NULL;
}

bool cli_knobs_have_stages(const GArray *knobs, const PlanStrategy *given) {
    const CliKnob *stages = cli_knobs_find(knobs, "pipeline");
    bool any = given->pipeline > 1;
    for (guint i = 0; stages != NULL && stages->values[i] != NULL; i++) {
        any |= g_ascii_strtoull(stages->values[i], NULL, 10) > 1;
    }
    return any;
}

bool cli_knobs_add(GArray *knobs, CliKnob knob, GError **error) {
    bool is_new = cli_knobs_find(knobs, knob.key) == NULL;
    if (is_new) {
        g_array_append_val(knobs, knob);
    } else {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--knob %s is given twice; give all its values at once", knob.key);
        clear_knob(&knob);
    }
    return is_new;
}

bool cli_knob_is_free(const CliKnob *knob, bool is_given, GError **error) {
    if (is_given) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s is given as a setting and as a knob; leave one of them away", knob->key);
    }
    return !is_given;
}
