#include "cli/command.h"

#include <stdio.h>
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

static int complain_of_option(GOptionContext *context, const GError *error) {
    const char *unknown = unknown_option(error);
    if (unknown == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autofree char *word = g_strndup(unknown, strcspn(unknown, "= "));
    g_autoptr(GPtrArray) names = known_options(context);
    g_autofree char *near = cli_did_you_mean(word, (const char *const *)names->pdata);
    return cli_complain(CLI_BAD_INPUT, "%s%s", error->message,
                        *near != '\0' ? near : "; --help lists those there are");
}

GOptionContext *cli_command_context(const CliCommand *command, const GOptionEntry *entries) {
    GOptionContext *context = g_option_context_new(command->words);
    g_option_context_set_summary(context, command->summary);
    g_option_context_set_description(context, command->examples);
    g_option_context_add_main_entries(context, entries, NULL);
    return context;
}

bool cli_command_read(const CliCommand *command, GOptionContext *context, int *argc, char ***argv) {
    g_autoptr(GError) error = NULL;
    if (!g_option_context_parse(context, argc, argv, &error)) {
        complain_of_option(context, error);
        return false;
    }
    int n_words = *argc - 1;
    if (n_words < command->least || n_words > command->most) {
        cli_complain(CLI_BAD_INPUT, "give %s; --help says more", command->give);
        return false;
    }
    return true;
}

int cli_complain(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", g_get_prgname(), text);
    return status;
}
