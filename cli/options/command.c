#include "cli/options/command.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/help.h"
#include "cli/options/other-words.h"
#include "cli/say/prose.h"
#include "plan/files/nearest.h"
#include "plan/strategy/strategy.h"

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

/* GLib's words for it end with the option, in whatever language. With one dash only ("-cluster")
 * two are meant. Transfer full. */
static char *unknown_option(const GError *error) {
    if (!g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)) {
        return NULL;
    }
    const char *two = strstr(error->message, "--"), *one = strrchr(error->message, ' ');
    const char *from = two ? two : one && one[1] == '-' ? one + 1 : "";
    g_autofree char *word = g_strndup(from, strcspn(from, "= "));
    return two ? g_steal_pointer(&word) : g_strconcat("-", word, NULL);
}

/* "; it is one of none, full" behind an option without its value, as the end of a sentence. */
static char *values_of(const GError *error) {
    const char *option = strstr(error->message, " --");
    g_autofree char *key = g_strdelimit(g_strdup(option ? option + strlen(" --") : ""), "-", '_');
    unsigned n, row;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    bool is_value = g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE);
    if (!is_value || !plan_strategy_find_key(key, &row) || !keys[row].choices) {
        return g_strdup("");
    }
    g_auto(GStrv) names = g_strsplit(keys[row].choices, " ", -1);
    g_autofree char *list = g_strjoinv(", ", names);
    return g_strdup_printf("; it is one of %s", list);
}

static int complain_of_option(GOptionContext *context, const GError *error) {
    g_autofree char *word = unknown_option(error);
    if (word == NULL) { /* of numbers GLib says what they are not */
        bool is_number = g_str_has_prefix(error->message, "Cannot parse ");
        bool is_whole = is_number && strstr(error->message, " integer ") != NULL;
        g_autofree char *values = values_of(error);
        return cli_complain(CLI_BAD_INPUT, "%s%s", error->message,
                            is_whole    ? "; give a whole number, without a unit"
                            : is_number ? "; give a number without a unit"
                                        : values);
    }
    g_autoptr(GPtrArray) names = known_options(context);
    const char *const *known = (const char *const *)names->pdata;
    g_autofree char *other = cli_other_word(word, known);
    bool is_letter = strlen(word) == strlen("--k"); /* which many names begin with */
    g_autofree char *near =
        *other != '\0' || is_letter ? g_strdup(other) : plan_did_you_mean(word, known);
    return cli_complain(CLI_BAD_INPUT, "%s%s", error->message,
                        *near != '\0' ? near : "; --help lists those there are");
}

static void free_values(gpointer entries) {
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
        if (entry->arg == G_OPTION_ARG_STRING || entry->arg == G_OPTION_ARG_FILENAME) {
            g_free(*(char **)entry->arg_data);
        } else if (entry->arg == G_OPTION_ARG_STRING_ARRAY) {
            g_strfreev(*(char ***)entry->arg_data);
        }
    }
}

GOptionContext *cli_command_context(const CliCommand *command, const GOptionEntry *entries) {
    GOptionContext *context = g_option_context_new(command->words);
    GOptionGroup *own = g_option_group_new(NULL, NULL, NULL, (gpointer)entries, free_values);
    g_option_context_set_summary(context, command->summary);
    g_option_context_set_description(context, command->examples);
    g_option_group_add_entries(own, entries);
    g_option_context_set_main_group(context, own);
    return context;
}

/* An empty word is a shell's variable that is not set; no option takes one. */
static bool words_are_full(char **argv) {
    for (char **word = argv + 1; *word; word++) {
        const char *value = g_str_has_prefix(*word, "--") ? strchr(*word, '=') : NULL;
        if (**word == '\0') {
            cli_complain(CLI_BAD_INPUT, "the word behind '%s' is empty; give one, or leave it out",
                         word == argv + 1 ? g_get_prgname() : word[-1]);
            return false;
        }
        if (value && value[1] == '\0') {
            cli_complain(CLI_BAD_INPUT, "%s has no value; give one, or leave it out", *word);
            return false;
        }
    }
    return true;
}

static bool is_flag(const GOptionEntry *entries, char letter) {
    while (entries->long_name != NULL && entries->short_name != letter) {
        entries++;
    }
    return entries->long_name != NULL && entries->arg == G_OPTION_ARG_NONE;
}

/* The value that *word gives to the entry ("--name V", "--name=V", "-n V", "-nV", behind flags
 * "-jn V"), or NULL. */
static const char *value_given(const GOptionEntry *entries, const GOptionEntry *entry,
                               char *const *word) {
    const char *text = *word, *end;
    if (g_str_has_prefix(text, "--")) {
        bool is_this = g_str_has_prefix(text + 2, entry->long_name);
        end = text + 2 + (is_this ? strlen(entry->long_name) : 0);
        return !is_this ? NULL : *end == '=' ? end + 1 : *end == '\0' ? word[1] : NULL;
    }
    const char *letter = text + 1;
    while (text[0] == '-' && *letter != '\0' && is_flag(entries, *letter)) {
        letter++;
    }
    if (text[0] != '-' || *letter == '\0' || *letter != entry->short_name) {
        return NULL;
    }
    return letter[1] != '\0' ? letter + 1 : word[1];
}

static bool takes_one_value(const GOptionEntry *entry) {
    return entry->arg == G_OPTION_ARG_STRING || entry->arg == G_OPTION_ARG_FILENAME ||
           entry->arg == G_OPTION_ARG_INT || entry->arg == G_OPTION_ARG_INT64 ||
           entry->arg == G_OPTION_ARG_DOUBLE;
}

/* GLib would take the last of two values, and say nothing. */
static bool values_agree(const GOptionEntry *entries, const GOptionEntry *entry, char **argv) {
    const char *first = NULL;
    for (char **word = argv + 1; *word != NULL && !g_str_equal(*word, "--"); word++) {
        const char *value = value_given(entries, entry, word);
        if (first != NULL && value != NULL && !g_str_equal(first, value)) {
            bool is_cluster = g_str_equal(entry->long_name, "cluster");
            cli_complain(CLI_BAD_INPUT, "--%s is given twice, as '%s' and as '%s'; give one%s",
                         entry->long_name, first, value,
                         is_cluster ? ", or compare them: foreshard choose takes several" : "");
            return false;
        }
        first = value != NULL ? value : first;
    }
    return true;
}

static bool all_values_agree(const GOptionEntry *entries, char **argv) {
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
        if (takes_one_value(entry) && !values_agree(entries, entry, argv)) {
            return false;
        }
    }
    return true;
}

bool cli_take_once(char **place, const char *option, const char *value, const char *remedy,
                   GError **error) {
    if (*place != NULL && !g_str_equal(*place, value)) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s is given twice, as '%s' and as '%s'; give one%s", option, *place, value,
                    remedy);
        return false;
    }
    g_free(*place);
    *place = g_strdup(value);
    return true;
}

bool cli_command_read(const CliCommand *command, const GOptionEntry *entries,
                      GOptionContext *context, int *argc, char ***argv) {
    g_autoptr(GError) error = NULL;
    cli_help_begin();
    if (!words_are_full(*argv) || !all_values_agree(entries, *argv)) {
        return false;
    }
    if (!g_option_context_parse(context, argc, argv, &error)) {
        complain_of_option(context, error);
        return false;
    }
    int n_words = *argc - 1;
    if (n_words > command->most) {
        cli_complain(CLI_BAD_INPUT, "'%s' is one word too many; give %s; --help says more",
                     (*argv)[command->most + 1], command->give);
        return false;
    }
    if (n_words < command->least) {
        cli_complain(CLI_BAD_INPUT, "give %s; --help says more", command->give);
        return false;
    }
    return true;
}

bool cli_number_is_sound(const char *option, int *number) {
    bool given = *number != CLI_NOT_GIVEN;
    if (given && *number < 0) {
        cli_complain(CLI_BAD_INPUT, "%s takes a number from 0, not %d", option, *number);
        return false;
    }
    *number = given ? *number : -1;
    return true;
}

enum {
    FURTHER_IN = 2, /* columns: the lines of a complaint behind its first, on a terminal */
    WORD_MOST =
        200 /* bytes of a message's word, be it a path; what is longer is some file's junk */
};

/* A line that a terminal can show, whatever of a broken file it repeats. */
static char *fit_to_show(const char *text) {
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_auto(GStrv) words = g_strsplit_set(valid, " \n\r\t", -1);
    for (char **word = words; *word; word++) {
        for (char *c = *word; *c; c++) {
            *c = g_ascii_iscntrl(*c) ? '?' : *c;
        }
        if (strlen(*word) > WORD_MOST) {
            char *end = g_utf8_find_prev_char(*word, *word + WORD_MOST);
            g_autofree char *whole = *word;
            *end = '\0';
            *word = g_strconcat(whole, "...", NULL);
        }
    }
    return g_strjoinv(" ", words);
}

int cli_complain(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = fit_to_show(text);
    g_autofree char *whole = g_strdup_printf("%s: %s", g_get_prgname(), line);
    g_autoptr(GString) fit = g_string_new(NULL);
    cli_prose_break(fit, whole, 0, FURTHER_IN, cli_prose_columns(STDERR_FILENO));
    fprintf(stderr, "%s\n", isatty(STDERR_FILENO) ? fit->str : whole);
    return status;
}

bool cli_spares_inputs(const char *output, const char *const *inputs, unsigned n, GError **error) {
    GStatBuf written, read;
    bool exists = output && g_stat(output, &written) == 0 && S_ISREG(written.st_mode);
    for (unsigned i = 0; i < n && exists; i++) {
        if (inputs[i] && g_stat(inputs[i], &read) == 0 && read.st_dev == written.st_dev &&
            read.st_ino == written.st_ino) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "%s is read and would be written over; name another file to write", output);
            return false;
        }
    }
    return true;
}
