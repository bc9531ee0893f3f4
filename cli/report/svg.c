#include "cli/report/svg.h"

#include <string.h>

/* What stands before an id, wherever one is given or referred to. */
static const char *const before_ids[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};

static const char *find_id(const char *from, gsize *ret_length) {
    const char *first = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(before_ids); i++) {
        const char *at = strstr(from, before_ids[i]);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            *ret_length = strlen(before_ids[i]);
        }
    }
    return first;
}

static char *replace_title(const char *svg, const char *title) {
    const char *start = strstr(svg, "<title>"), *end = strstr(svg, "</title>");
    if (start == NULL || end == NULL) {
        return g_strdup(svg);
    }
    g_autofree char *escaped = g_markup_escape_text(title, -1);
    GString *text = g_string_new_len(svg, start - svg);
    g_string_append_printf(text, "<title>%s%s", escaped, end);
    return g_string_free(text, FALSE);
}

char *cli_svg_inline(const char *svg, const char *prefix, const char *title) {
    const char *begin = strstr(svg, "<svg");
    g_autofree char *titled = replace_title(begin != NULL ? begin : svg, title);
    GString *text = g_string_new(NULL);
    const char *from = titled, *at;
    gsize length = 0;
    while ((at = find_id(from, &length)) != NULL) {
        g_string_append_len(text, from, at + length - from);
        g_string_append_printf(text, "%s-", prefix);
        from = at + length;
    }
    g_string_append(text, from);
    return g_string_free(text, FALSE);
}
