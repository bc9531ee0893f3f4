#include "cli/options.h"

#include <string.h>

#include "cli/nearest.h"

/* Every "--name" of the help: GLib tells an option's name in no other way. */
static GPtrArray *known_options(GOptionContext *context) {
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *help = g_option_context_get_help(context, FALSE, NULL);
    g_autoptr(GRegex) regex = g_regex_new("^  (?:-., )?(--[a-z0-9-]+)", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    for (g_regex_match(regex, help, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_ptr_array_add(names, g_match_info_fetch(match, 1));
    }
    g_ptr_array_add(names, NULL);
    return names;
}

/* GLib's words for it end with the option, in whatever language. */
static const char *unknown_option(const GError *error) {
    const char *dash = strstr(error->message, "--");
    return g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) ? dash : NULL;
}

bool cli_options_parse(GOptionContext *context, int *argc, char ***argv, GError **error) {
    g_autoptr(GError) cause = NULL;
    if (g_option_context_parse(context, argc, argv, &cause)) {
        return true;
    }
    const char *unknown = unknown_option(cause);
    if (unknown != NULL) {
        g_autofree char *word = g_strndup(unknown, strcspn(unknown, "= "));
        g_autoptr(GPtrArray) names = known_options(context);
        g_autofree char *near = cli_did_you_mean(word, (const char *const *)names->pdata);
        g_set_error(error, cause->domain, cause->code, "%s%s", cause->message, near);
        return false;
    }
    g_propagate_error(error, g_steal_pointer(&cause));
    return false;
}
