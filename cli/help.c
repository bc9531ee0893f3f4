#include "cli/help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/strategy-themes.h"

enum {
    WIDEST = 100, /* columns: a longer line is hard to read, on however wide a terminal */
    NARROWEST = 60
};

/* Where what an option does begins: behind two spaces that follow its words. */
static gsize indent_of(const char *line) {
    gsize margin = strspn(line, " ");
    const char *gap = margin > 0 && line[margin] == '-' ? strstr(line + margin, "  ") : NULL;
    return gap != NULL ? (gsize)(gap - line) + strspn(gap, " ") : margin;
}

/* An ASCII letter or the first byte of another is one column. */
static gsize width_of(const char *text, gsize bytes) {
    return (gsize)g_utf8_strlen(text, (gssize)bytes);
}

static void append_broken(GString *fit, const char *line, gsize columns) {
    gsize indent = indent_of(line), from = indent < columns / 2 ? indent : 4;
    gsize at = indent;
    g_auto(GStrv) words = g_strsplit(line + indent, " ", -1);
    g_string_append_len(fit, line, (gssize)indent);
    for (char **word = words; *word != NULL; word++) {
        gsize width = width_of(*word, strlen(*word));
        if (word != words && at + 1 + width > columns) {
            g_string_append_printf(fit, "\n%*s", (int)from, "");
            at = from;
        } else if (word != words) {
            g_string_append_c(fit, ' ');
            at++;
        }
        g_string_append(fit, *word);
        at += width;
    }
}

char *cli_help_fit(const char *help, gsize columns) {
    GString *fit = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_string_append(fit, line != lines ? "\n" : "");
        if (width_of(*line, strlen(*line)) <= columns) {
            g_string_append(fit, *line);
        } else {
            append_broken(fit, *line, columns);
        }
    }
    return g_string_free(fit, FALSE);
}

static gsize columns_of_terminal(void) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? CLAMP(size.ws_col, NARROWEST, WIDEST) : WIDEST;
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

char *cli_help_with_headings(const char *help) {
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
    g_autofree char *text = cli_help_with_headings(help);
    g_autofree char *fit =
        isatty(STDOUT_FILENO) ? cli_help_fit(text, columns_of_terminal()) : g_strdup(text);
    fputs(fit, stdout);
}

void cli_help_begin(void) {
    g_set_print_handler(print_help);
}
