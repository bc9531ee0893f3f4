#include "cli/help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

static void print_fit(const char *help) {
    g_autofree char *fit = cli_help_fit(help, columns_of_terminal());
    fputs(fit, stdout);
}

void cli_help_fit_terminal(void) {
    if (isatty(STDOUT_FILENO)) {
        g_set_print_handler(print_fit);
    }
}
