#include "cli/say/prose.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
    NARROWEST = 60, /* columns of a terminal; in fewer nothing fits anyway */
    FARTHEST = 40,  /* columns: a gap behind these is none between a name and what it is */
    FURTHER_IN = 2
};

gsize cli_prose_width(const char *text, gsize bytes) {
    return (gsize)g_utf8_strlen(text, (gssize)bytes);
}

gsize cli_prose_columns(int terminal) {
    struct winsize size;
    bool known = ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? CLAMP(size.ws_col, NARROWEST, CLI_COLUMNS) : CLI_COLUMNS;
}

/* "8", "(80", "+1.25", "12,345". */
static bool is_figure(const char *word) {
    word += strspn(word, "(+-");
    return *word != '\0' && strspn(word, "0123456789.,:") == strlen(word) &&
           g_ascii_isdigit(word[strlen(word) - 1]);
}

/* "--spread", "-n", "--network-key"; one with its value behind "=" or that ends a part of the
 * sentence has all it needs. */
static bool is_option(const char *word) {
    word += strspn(word, "(");
    return word[0] == '-' && strpbrk(word, "=,;:.)") == NULL && strlen(word) > 1;
}

/* What a number behind it belongs to: "instruction 432)", "step 22.298 s". */
static bool is_counted(const char *word) {
    static const char *const names[] = {"instruction", "micro-batch", "rank", "step", NULL};
    word += strspn(word, "(");
    return g_strv_contains(names, word);
}

/* Stays on a line with the word behind it. */
static bool is_tied(const char *word, const char *next) {
    bool is_of = is_counted(word) && g_ascii_isdigit(next[strspn(next, "+-")]);
    return is_of || is_figure(word) || (is_option(word) && next[0] != '-') ||
           g_str_equal(next, "%");
}

/* The bytes up to the next place where a line may end. */
static gsize piece_of(const char *text) {
    const char *end = text;
    for (;;) {
        gsize length = strcspn(end, " ");
        g_autofree char *word = g_strndup(end, length);
        end += length;
        if (*end == '\0') {
            break;
        }
        g_autofree char *next = g_strndup(end + 1, strcspn(end + 1, " "));
        if (!is_tied(word, next)) {
            break;
        }
        end++;
    }
    return (gsize)(end - text);
}

void cli_prose_break(GString *fit, const char *line, gsize kept, gsize from, gsize columns) {
    gsize at = cli_prose_width(line, kept);
    const char *text = line + kept;
    g_string_append_len(fit, line, (gssize)kept);
    for (bool is_first = true; *text != '\0'; is_first = false) {
        gsize length = piece_of(text), width = cli_prose_width(text, length);
        if (!is_first && at + 1 + width > columns) {
            while (g_str_has_suffix(fit->str, " ")) {
                g_string_truncate(fit, fit->len - 1);
            }
            g_string_append_printf(fit, "\n%*s", (int)from, "");
            at = from;
        } else if (!is_first) {
            g_string_append_c(fit, ' ');
            at++;
        }
        g_string_append_len(fit, text, (gssize)length);
        at += width;
        text += length + (text[length] == ' ');
    }
}

/* The bytes before what stands behind the last gap that is near; 0: there is none. */
static gsize behind_gap(const char *line, gsize margin) {
    gsize behind = 0;
    for (const char *gap = strstr(line + margin, "  "); gap != NULL;) {
        gsize end = (gsize)(gap - line) + strspn(gap, " ");
        if (end > FARTHEST) {
            break;
        }
        behind = end;
        gap = strstr(line + end, "  ");
    }
    return behind;
}

/* A table's: broken it would stand in other columns than its head. */
static bool is_row(const char *line) {
    const char *gap = strstr(line + strspn(line, " "), "  ");
    return gap != NULL && strstr(gap + strspn(gap, " "), "  ") != NULL;
}

static void append_line(GString *fit, const char *line, gsize most) {
    gsize columns = is_row(line) ? CLI_COLUMNS : most;
    if (cli_prose_width(line, strlen(line)) <= columns) {
        g_string_append(fit, line);
        return;
    }
    gsize margin = strspn(line, " "), behind = behind_gap(line, margin);
    gsize from = behind > 0 ? cli_prose_width(line, behind) : margin + FURTHER_IN;
    cli_prose_break(fit, line, behind > 0 ? behind : margin, from, columns);
}

static char *fit_to(const char *text, gsize columns) {
    GString *fit = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_string_append(fit, line != lines ? "\n" : "");
        append_line(fit, *line, columns);
    }
    return g_string_free(fit, FALSE);
}

char *cli_prose_fit(const char *text) {
    return fit_to(text, CLI_COLUMNS);
}

void cli_prose_print_to(FILE *to, const char *text) {
    g_autofree char *fit = fit_to(text, cli_prose_columns(fileno(to)));
    fputs(fit, to);
}

void cli_prose_print(const char *text) {
    cli_prose_print_to(stdout, text);
}

void cli_say(const char *format, ...) {
    va_list values;
    va_start(values, format);
    g_autofree char *text = g_strdup_vprintf(format, values);
    va_end(values);
    cli_prose_print(text);
}
