#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>

#include "trace/plot-private.h"
#include "trace/text.h"

bool trace_plot_write(const char *folder, const char *name, const GString *text, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) cause = NULL;
    if (!g_file_set_contents(path, text->str, (gssize)text->len, &cause)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s", cause->message);
        return false;
    }
    return true;
}

void trace_plot_set_text(GString *settings, const char *key, const char *value) {
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

/* The gnuplot terminal of a file name, NULL when its ending is not known. */
static const char *terminal_of(const char *output) {
    static const struct {
        const char *ending, *terminal;
    } known[] = {
        {".png", "pngcairo size 1600,900 font \"DejaVu Sans,13\" enhanced linewidth 1.5"},
        {".svg", "svg size 1600,900 dynamic font \"DejaVu Sans,16\" enhanced background \"white\""},
        {".pdf", "pdfcairo size 16in,9in font \"DejaVu Sans,16\" enhanced linewidth 2"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_str_has_suffix(output, known[i].ending)) {
            return known[i].terminal;
        }
    }
    return NULL;
}

char *trace_plot_script(TracePicture picture, const char *output) {
    const char *name = NULL;
    switch (picture) {
    case TRACE_PICTURE_MEMORY:
        name = "memory";
        break;
    case TRACE_PICTURE_LANES:
        name = "lanes";
        break;
    }
    g_assert(name != NULL);
    return g_strconcat(name, output == NULL ? "-text.gp" : ".gp", NULL);
}

static char *panel_label(const TracePanel *panel) {
    GString *label = g_string_new(trace_get(panel->trace, "side"));
    static const char *const facts[] = {"device", "cluster"};
    for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
        const char *value = trace_get(panel->trace, facts[i]);
        if (value != NULL && value[0] != '\0') {
            g_string_append_printf(label, ", %s %s", facts[i], value);
        }
    }
    if (g_strcmp0(trace_get(panel->trace, "paced"), "yes") == 0) {
        g_string_append(label, ", paced");
    }
    g_string_append_printf(label, ", rank %u", panel->rank);
    return g_string_free(label, FALSE);
}

static char *plan_title(const Trace *trace) {
    const char *title = trace_get(trace, "title");
    if (title != NULL) {
        return g_strdup(title);
    }
    const char *network = trace_get(trace, "network"), *strategy = trace_get(trace, "strategy");
    const char *world = trace_get(trace, "world");
    return g_strdup_printf("%s, %s, world %s", network != NULL ? network : "unnamed network",
                           strategy != NULL ? strategy : "unnamed strategy",
                           world != NULL ? world : "?");
}

static void append_settings(GString *settings, const TracePanel *panels, guint n_panels,
                            const TracePlotOptions *options, const TracePlotExtent *extent) {
    g_autofree char *title = plan_title(panels[0].trace);
    g_autofree char *scripts = g_canonicalize_filename(options->scripts, NULL);
    trace_plot_set_text(settings, "scripts", scripts);
    trace_plot_set_text(settings, "plan_title", title);
    g_string_append_printf(settings, "n_panels = %u\narray panel[%u]\n", n_panels, n_panels);
    for (guint i = 0; i < n_panels; i++) {
        g_autofree char *key = g_strdup_printf("panel[%u]", i + 1);
        g_autofree char *label = panel_label(&panels[i]);
        trace_plot_set_text(settings, key, label);
    }
    TraceScale time = trace_scale_time((double)(extent->last_ns - extent->first_ns));
    TraceScale size = trace_scale_bytes((double)extent->bytes);
    trace_plot_set_text(settings, "time_unit", time.unit);
    trace_plot_set_text(settings, "size_unit", size.unit);
    g_string_append_printf(settings,
                           "ns_per_unit = %.1f\nbytes_per_unit = %.1f\n"
                           "first_ns = %" G_GINT64_FORMAT ".0\nlast_ns = %" G_GINT64_FORMAT
                           ".0\nmost_bytes = %" G_GUINT64_FORMAT
                           ".0\nfirst_step = %d\nlast_step = %d\ncolumns = %u\nrows = %u\n",
                           time.per_unit, size.per_unit, (gint64)extent->first_ns,
                           (gint64)extent->last_ns, (guint64)extent->bytes, options->first_step,
                           options->last_step, extent->columns, extent->rows);
}

/* Runs gnuplot in the folder; what it says on its standard output is the picture, if text. */
static bool run_gnuplot(const char *folder, const char *script, char **ret_out, GError **error) {
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_TOOL,
                    "gnuplot is not in PATH; install it (Debian: apt-get install gnuplot-nox)");
        return false;
    }
    g_autofree char *absolute = g_canonicalize_filename(script, NULL);
    /* -d: no gnuplotrc of the user changes the picture. */
    char *argv[] = {gnuplot, (char *)"-d", (char *)"settings.gp", absolute, NULL};
    g_autofree char *out = NULL, *err = NULL;
    g_autoptr(GError) cause = NULL;
    int status;
    if (!g_spawn_sync(folder, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status,
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

/* Its files, then itself. It holds no folders. */
static void remove_folder(const char *folder) {
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
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
    return trace_write_aside(output, picture, length, error);
}

/* gnuplot begins a page of text with a form feed and ends lines with spaces. */
static char *tidy_text(const char *text) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
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

static bool draw(TracePicture picture, const TracePanel *panels, guint n_panels,
                 const TracePlotOptions *options, const char *folder, char **ret_text,
                 GError **error) {
    g_autoptr(GString) settings = g_string_new("set encoding utf8\n");
    /* Text: what the scripts' margins leave of the width, and a height that suits a terminal. */
    guint margins = picture == TRACE_PICTURE_MEMORY ? 15 : 21;
    TracePlotExtent extent = {.columns = MAX(60, options->columns) - margins, .rows = 14};
    if (options->output != NULL) {
        g_string_append_printf(settings, "set terminal %s\nset output \"picture\"\n",
                               terminal_of(options->output));
    }
    bool written = false;
    switch (picture) {
    case TRACE_PICTURE_MEMORY:
        written =
            trace_plot_write_memory(panels, n_panels, options, &extent, folder, settings, error);
        break;
    case TRACE_PICTURE_LANES:
        written =
            trace_plot_write_lanes(panels, n_panels, options, &extent, folder, settings, error);
        break;
    }
    if (!written) {
        return false;
    }
    if (extent.last_ns <= extent.first_ns ||
        (picture == TRACE_PICTURE_MEMORY && extent.bytes == 0)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "the traces have no rows to draw in steps %d to %d", options->first_step,
                    options->last_step);
        return false;
    }
    append_settings(settings, panels, n_panels, options, &extent);
    g_autofree char *name = trace_plot_script(picture, options->output);
    g_autofree char *script = g_build_filename(options->scripts, name, NULL);
    g_autofree char *out = NULL;
    if (!trace_plot_write(folder, "settings.gp", settings, error) ||
        !run_gnuplot(folder, script, &out, error)) {
        return false;
    }
    if (options->output != NULL) {
        return put_picture(folder, options->output, error);
    }
    *ret_text = tidy_text(out);
    return true;
}

bool trace_plot(TracePicture picture, const TracePanel *panels, guint n_panels,
                const TracePlotOptions *options, char **ret_text, GError **error) {
    g_assert(n_panels >= 1 && n_panels <= TRACE_MAX_PANELS);
    if (options->output != NULL && terminal_of(options->output) == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: a picture's name ends in .png, .svg or .pdf", options->output);
        return false;
    }
    for (guint i = 0; i < n_panels; i++) {
        if (trace_role_of_rank(panels[i].trace, panels[i].rank) == TRACE_NONE) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                        "the %s trace has no rank %u; choose one that it recorded",
                        trace_get(panels[i].trace, "side"), panels[i].rank);
            return false;
        }
        const char *table = trace_differing_table(panels[0].trace, panels[i].trace);
        if (table != NULL) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                        "the traces are of different plans (their %s differ); draw each alone",
                        table);
            return false;
        }
    }
    g_autoptr(GError) cause = NULL;
    g_autofree char *folder = g_dir_make_tmp("foreshard-plot-XXXXXX", &cause);
    if (folder == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s", cause->message);
        return false;
    }
    char *text = NULL;
    bool drawn = draw(picture, panels, n_panels, options, folder, &text, error);
    remove_folder(folder);
    if (drawn) {
        *ret_text = text;
    }
    return drawn;
}
