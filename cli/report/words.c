#include <stdarg.h>

#include "cli/report/private.h"

void report_append_text(GString *page, const char *text) {
    g_autofree char *escaped = g_markup_escape_text(text, -1);
    g_string_append(page, escaped);
}

void report_append_row(GString *page, const char *cell, ...) {
    va_list cells;
    va_start(cells, cell);
    g_string_append(page, "<tr>");
    for (; cell != NULL; cell = va_arg(cells, const char *)) {
        g_string_append(page, "<td>");
        report_append_text(page, cell);
        g_string_append(page, "</td>");
    }
    g_string_append(page, "</tr>\n");
    va_end(cells);
}
