#include "cli/options/help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/strategy-themes.h"
#include "cli/say/prose.h"

/* Where what an option does begins: behind two spaces that follow its words. */
static gsize indent_of(const char *line) {
    gsize margin = strspn(line, " ");
    const char *gap = margin > 0 && line[margin] == '-' ? strstr(line + margin, "  ") : NULL;
    return gap != NULL ? (gsize)(gap - line) + strspn(gap, " ") : margin;
}

static void append_broken(GString *fit, const char *line, gsize columns) {
    gsize indent = indent_of(line);
    cli_prose_break(fit, line, indent, indent < columns / 2 ? indent : 4, columns);
}

/* Lines no wider than so many columns, as far as words allow it. Transfer full. */
static char *fit_columns(const char *help, gsize columns) {
    GString *fit = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_string_append(fit, line != lines ? "\n" : "");
        if (cli_prose_width(*line, strlen(*line)) <= columns) {
            g_string_append(fit, *line);
        } else {
            append_broken(fit, *line, columns);
        }
    }
    return g_string_free(fit, FALSE);
}

/* Above this line; NULL: none. */
static const char *heading_above(const char *line) {
    for (unsigned i = 1; i < cli_n_strategy_themes; i++) {
        const CliStrategyTheme *theme = &cli_strategy_themes[i];
        g_autofree char *key = g_strndup(theme->keys, strcspn(theme->keys, " "));
        g_autofree char *option = g_strdup_printf("  --%s=", g_strdelimit(key, "_", '-'));
        if (g_str_has_prefix(line, option)) {
            return theme->title;
        }
    }
    return g_str_has_prefix(line, "  --strategy=FILE") ? "from a file, and of the network" : NULL;
}

/* With a heading above the first option of each theme. Transfer full. */
static char *with_headings(const char *help) {
    GString *text = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    bool in_themes = false;
    for (char **line = lines; *line != NULL; line++) {
        in_themes = g_str_equal(*line, CLI_STRATEGY_HEADING) || (in_themes && **line != '\0');
        const char *heading = in_themes ? heading_above(*line) : NULL;
        if (heading != NULL) {
            g_string_append_printf(text, "\n\nStrategy options, %s:", heading);
        }
        g_string_append_printf(text, "%s%s", line != lines ? "\n" : "", *line);
    }
    return g_string_free(text, FALSE);
}

static void print_help(const char *help) {
    g_autofree char *text = with_headings(help);
    g_autofree char *fit = fit_columns(text, cli_prose_columns(STDOUT_FILENO));
    fputs(fit, stdout);
}

void cli_help_begin(void) {
    g_set_print_handler(print_help);
}
