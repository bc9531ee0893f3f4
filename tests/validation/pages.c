#include "tests/validation/pages.h"

#include <glib.h>
#include <string.h>

static const char INDENT[] = "    ", LEFT_OUT[] = "...";

/* Where lines[at] or the first one behind it is `text`; where they end, if none is. */
static guint find(char **lines, guint at, const char *text) {
    while (lines[at] && !g_str_equal(lines[at], text)) {
        at++;
    }
    return at;
}

static char **stripped_lines(const char *text) {
    char **lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        g_strchomp(lines[i]);
    }
    return lines;
}

void validation_page_says(const char *page, const char *command, const char *printed) {
    g_autofree char *text = NULL, *line = g_strconcat(INDENT, "$ ", command, NULL);
    g_assert_true(g_file_get_contents(page, &text, NULL, NULL));
    g_auto(GStrv) lines = stripped_lines(text);
    g_auto(GStrv) all = stripped_lines(printed);
    guint of_page = find(lines, 0, line), at = 0;
    gboolean left_out = TRUE;
    g_assert_nonnull(lines[of_page]);
    g_assert_true(g_str_has_prefix(lines[of_page + 1], INDENT));
    for (char **said = lines + of_page + 1; g_str_has_prefix(*said, INDENT); said++) {
        const char *expected = *said + strlen(INDENT);
        if (g_str_equal(expected, LEFT_OUT)) {
            left_out = TRUE;
            continue;
        }
        if (left_out) {
            at = find(all, at, expected);
        }
        g_test_message("%s: %s", page, expected);
        g_assert_cmpstr(all[at], ==, expected);
        at++;
        left_out = FALSE;
    }
    g_assert_true(left_out || !all[at] || !*all[at]);
}
