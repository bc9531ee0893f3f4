#include "cli/options/setting.h"

#include <string.h>

const char *cli_setting_of_network(const char *key) {
    static const char PREFIX[] = "network.";
    return g_str_has_prefix(key, PREFIX) ? key + strlen(PREFIX) : NULL;
}

char **cli_settings_split(const char *settings) {
    GPtrArray *pairs = g_ptr_array_new();
    g_auto(GStrv) words = g_strsplit(settings != NULL ? settings : "", " ", -1);
    for (char **word = words; *word != NULL; word++) {
        const char *equals = strchr(*word, '=');
        if (equals != NULL) {
            g_ptr_array_add(pairs, g_strndup(*word, (gsize)(equals - *word)));
            g_ptr_array_add(pairs, g_strdup(equals + 1));
        }
    }
    g_ptr_array_add(pairs, NULL);
    return (char **)g_ptr_array_free(pairs, FALSE);
}

const char *cli_settings_value(char **pairs, const char *key) {
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        if (g_str_equal(pair[0], key)) {
            return pair[1];
        }
    }
    return NULL;
}

/* "micro_batch" as an option: "--micro-batch", and what stands between it and its value. */
static void append_option(GString *text, const char *key) {
    const char *of_network = cli_setting_of_network(key);
    if (of_network != NULL) {
        g_string_append_printf(text, "--network-key %s=", of_network);
    } else if (g_str_equal(key, "ranks")) {
        g_string_append(text, "-n ");
    } else {
        g_autofree char *option = g_strdelimit(g_strdup(key), "_", '-');
        g_string_append_printf(text, "--%s ", option);
    }
}

char *cli_settings_as_options(const char *settings) {
    g_auto(GStrv) pairs = cli_settings_split(settings);
    GString *text = g_string_new(NULL);
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        g_string_append(text, text->len > 0 ? " " : "");
        append_option(text, pair[0]);
        g_string_append(text, pair[1]);
    }
    return g_string_free(text, FALSE);
}
