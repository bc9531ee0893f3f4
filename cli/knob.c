#include "cli/knob.h"

#include <string.h>

bool cli_knob_read(const char *text, CliKnob *ret, GError **error) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--knob %s: give a strategy key and its values, as in --knob wrap=block,whole",
                    text);
        return false;
    }
    *ret = (CliKnob){g_strndup(text, (gsize)(equals - text)), g_strsplit(equals + 1, ",", -1)};
    g_strdelimit(ret->key, "-", '_');
    return true;
}

const char *cli_knob_of_cluster(const char *key) {
    static const char PREFIX[] = "cluster.";
    return g_str_has_prefix(key, PREFIX) ? key + strlen(PREFIX) : NULL;
}

static void clear_knob(gpointer data) {
    CliKnob *knob = data;
    g_free(knob->key);
    g_strfreev(knob->values);
}

GArray *cli_knobs_new(void) {
    GArray *knobs = g_array_new(FALSE, FALSE, sizeof(CliKnob));
    g_array_set_clear_func(knobs, clear_knob);
    return knobs;
}
