/* gnuplot itself: a folder of its own, tables and settings in it, the picture out of it. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>

#include "plots/private.h"
#include "trace/files.h"

bool plot_write(const char *folder, const char *name, const GString *text, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) cause = NULL;
    if (!g_file_set_contents(path, text->str, (gssize)text->len, &cause)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE,
                    "a temporary file (TMPDIR names their folder): %s", cause->message);
        return false;
    }
    return true;
}

void plot_set_text(GString *settings, const char *key, const char *value) {
    g_string_append_printf(settings, "%s = \"", key);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            g_string_append_c(settings, '\\');
        }
        /* A backquote would start a shell even inside double quotes. */
        g_string_append_c(settings, *c == '`' ? '\'' : g_ascii_iscntrl(*c) ? ' ' : *c);
    }
    g_string_append(settings, "\"\n");
}

/* "shape" is the height, as a share of the width; "dot" what sizes of points are multiplied by: of
 * the same size they are twice as wide in SVG. */
#define SVG                                                                                        \
    "svg size 1600,1600*shape dynamic font \"DejaVu Sans,16\" "                                    \
    "enhanced background \"white\""

/* The gnuplot terminal of a file name, NULL when its ending is not known. */
static const char *terminal_of(const char *output) {
    static const struct {
        const char *ending, *terminal;
    } known[] = {
        {".png", "pngcairo size 1600,1600*shape font \"DejaVu Sans,13\" enhanced linewidth 1.5"},
        {".svg", SVG},
        {".html", SVG}, /* which stands in a page */
        {".pdf", "pdfcairo size 16in,16*shape in font \"DejaVu Sans,16\" enhanced linewidth 2"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_str_has_suffix(output, known[i].ending)) {
            return known[i].terminal;
        }
    }
    return NULL;
}

bool plot_knows(const char *output, GError **error) {
    if (output != NULL && terminal_of(output) == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: a picture's name ends in .png, .svg, .pdf or .html", output);
        return false;
    }
    return true;
}

static char *find_gnuplot(GError **error) {
    char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_TOOL,
                    "gnuplot is not in PATH; install it (Debian: apt-get install gnuplot-nox)");
    }
    return gnuplot;
}

/* Whether it has a terminal of that name, as gnuplot 6 has "block"; it is asked. */
static bool has_terminal(const char *gnuplot, const char *name) {
    const char *argv[] = {gnuplot, "-d", "-e", "set print '-'; print GPVAL_TERMINALS", NULL};
    g_autofree char *out = NULL;
    int status;
    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                      &status, NULL) ||
        !g_spawn_check_wait_status(status, NULL)) {
        return false;
    }
    g_auto(GStrv) names = g_strsplit_set(out, " \n", -1);
    return g_strv_contains((const char *const *)names, name);
}

/* Runs gnuplot in the folder; what it says on its standard output is the picture, if text. */
static bool run_gnuplot(const char *gnuplot, const char *folder, const char *script, char **ret_out,
                        GError **error) {
    g_autofree char *absolute = g_canonicalize_filename(script, NULL);
    /* -d: no gnuplotrc of the user changes the picture. */
    const char *argv[] = {gnuplot, "-d", "settings.gp", absolute, NULL};
    g_autofree char *out = NULL, *err = NULL;
    g_autoptr(GError) cause = NULL;
    int status;
    if (!g_spawn_sync(folder, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status,
                      &cause) ||
        !g_spawn_check_wait_status(status, &cause)) {
        g_strstrip(err != NULL ? err : (err = g_strdup("")));
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_TOOL, "gnuplot failed on %s: %s%s%s", script,
                    cause->message, err[0] != '\0' ? "; it says: " : "", err);
        return false;
    }
    *ret_out = g_steal_pointer(&out);
    return true;
}

/* gnuplot does not tell that a disk is full: what it draws is then cut short. */
static bool is_whole(const char *picture, gsize length, const char *output) {
    const char *end = g_str_has_suffix(output, ".png")   ? "IEND\xae\x42\x60\x82"
                      : g_str_has_suffix(output, ".pdf") ? "%%EOF"
                                                         : "</svg>";
    gsize n = strlen(end);
    while (length > 0 && g_ascii_isspace(picture[length - 1])) {
        length--;
    }
    return length >= n && memcmp(picture + length - n, end, n) == 0;
}

/* Cairo dates a PDF, so that no two were the same bytes. The date may be missing; blanks in its
 * place leave every offset of the file as it is. */
static void drop_date(char *pdf, gsize length) {
    static const char begins[] = "/CreationDate (";
    const gsize n = sizeof begins - 1;
    for (gsize at = 0; at + n < length; at++) {
        if (memcmp(pdf + at, begins, n) == 0) {
            char *end = memchr(pdf + at, ')', length - at);
            memset(pdf + at, ' ', end != NULL ? (gsize)(end + 1 - (pdf + at)) : 0);
            return;
        }
    }
}

/* Copied beside its place and renamed into it. */
static bool put_picture(const char *folder, const char *output, GError **error) {
    g_autofree char *drawn = g_build_filename(folder, "picture", NULL);
    g_autofree char *picture = NULL;
    gsize length = 0;
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents(drawn, &picture, &length, &cause) || length == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_TOOL, "gnuplot has drawn no picture");
        return false;
    }
    if (!is_whole(picture, length, output)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE,
                    "gnuplot's picture is cut short; is the disk full that holds temporary files "
                    "(TMPDIR names their folder)?");
        return false;
    }
    if (g_str_has_suffix(output, ".pdf")) {
        drop_date(picture, length);
    }
    if (!g_str_has_suffix(output, ".html")) {
        return trace_write_bytes(output, picture, length, error);
    }
    g_autoptr(GString) page =
        g_string_new("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
                     "<title>foreshard</title>\n");
    const char *drawing = g_strstr_len(picture, (gssize)length, "<svg");
    g_string_append(page, drawing != NULL ? drawing : picture);
    g_string_append(page, "</html>\n");
    return trace_write_bytes(output, page->str, page->len, error);
}

/* gnuplot begins a page of text with a form feed, ends lines with spaces, and its block terminal
 * writes a sign of Braille without dots where nothing is. */
static char *tidy_text(const char *text) {
    g_autoptr(GString) spaced = g_string_new(text);
    g_string_replace(spaced, "\u2800", " ", 0);
    g_auto(GStrv) lines = g_strsplit(spaced->str, "\n", -1);
    g_autoptr(GString) tidy = g_string_new(NULL);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_strdelimit(lines[i], "\f", ' ');
        g_strchomp(lines[i]);
        bool blank = lines[i][0] == '\0';
        if (!blank || (tidy->len > 1 && !g_str_has_suffix(tidy->str, "\n\n"))) {
            g_string_append_printf(tidy, "%s\n", lines[i]);
        }
    }
    while (g_str_has_suffix(tidy->str, "\n\n")) {
        g_string_truncate(tidy, tidy->len - 1);
    }
    return g_string_free(g_steal_pointer(&tidy), FALSE);
}

bool plot_run(const PlotRun *run, const GString *settings, char **ret_text, GError **error) {
    g_autofree char *gnuplot = find_gnuplot(error);
    if (gnuplot == NULL) {
        return false;
    }
    g_autoptr(GString) whole = g_string_new("set encoding utf8\nshape = 9.0 / 16\n");
    g_string_append_len(whole, settings->str, (gssize)settings->len);
    if (run->output != NULL) {
        const char *terminal = terminal_of(run->output);
        g_string_append_printf(whole, "set terminal %s\nset output \"picture\"\ndot = %s\n",
                               terminal, g_str_has_prefix(terminal, "svg") ? "0.5" : "1");
    } else {
        bool block = run->characters == PLOT_BLOCKS && has_terminal(gnuplot, "block");
        plot_set_text(whole, "text_terminal", block ? "block" : "dumb");
    }
    g_autofree char *out = NULL;
    if (!plot_write(run->folder, "settings.gp", whole, error) ||
        !run_gnuplot(gnuplot, run->folder, run->script, &out, error)) {
        return false;
    }
    if (run->output != NULL) {
        *ret_text = NULL;
        return put_picture(run->folder, run->output, error);
    }
    *ret_text = tidy_text(out);
    return true;
}
