/* The tables hold the trace's numbers, thinning loses no peak, and pictures come out or a clear
 * error. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "plots/plot.h"
#include "plots/thin.h"
#include "tests/trace/toy-trace.h"
#include "trace/summary.h"

/* Column by column, the first line left out. */
static GArray *parse(const GString *table, guint *ret_columns) {
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_auto(GStrv) lines = g_strsplit(table->str, "\n", -1);
    for (guint i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], "\t", -1);
        *ret_columns = g_strv_length(fields);
        for (guint k = 0; k < *ret_columns; k++) {
            int64_t number = g_ascii_strtoll(fields[k], NULL, 10);
            g_array_append_val(numbers, number);
        }
    }
    return numbers;
}

static int64_t at(GArray *numbers, guint columns, guint row, guint column) {
    return g_array_index(numbers, int64_t, row * columns + column);
}

/* All moments of the panel's steps, or what plot_thin() or plot_crests() leaves of them. */
static GString *table_of(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                         GArray *(*thinned)(const TraceMoments *, guint), guint n_slices) {
    g_autoptr(TraceMoments) moments =
        trace_moments_new(panel->trace, panel->rank, first_step, last_step);
    g_autoptr(GArray) rows = thinned(moments, n_slices);
    return plot_moments_table(rows, moments->categories);
}

static void memory_table(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    PlotPanel panel = {trace, 0};
    g_autoptr(GString) table = table_of(&panel, 1, 2, plot_thin, 0);
    g_assert_true(g_str_has_prefix(table->str, "time_ns\tparameters\tactivations\tgradients\t"
                                               "communication\tallocated\tactive\treserved\n"));
    guint columns = 0;
    g_autoptr(GArray) numbers = parse(table, &columns);
    g_assert_cmpuint(columns, ==, 8);
    g_assert_cmpuint(numbers->len, ==, 8 * (1 + 12));
    /* The state in which step 1 begins, then a row for each of the trace's. */
    int64_t origin_ns = trace_memory(trace, 7)->host_ns;
    g_assert_cmpint(at(numbers, columns, 0, 0), ==, 0);
    g_assert_cmpint(at(numbers, columns, 0, 5), ==, 4096);
    for (guint i = 0; i < 12; i++) {
        const TraceMemoryRow *row = trace_memory(trace, 7 + i);
        g_assert_cmpint(at(numbers, columns, i + 1, 0), ==, row->host_ns - origin_ns);
        g_assert_cmpint(at(numbers, columns, i + 1, 5), ==, (int64_t)row->allocated);
        g_assert_cmpint(at(numbers, columns, i + 1, 6), ==, (int64_t)row->active);
        g_assert_cmpint(at(numbers, columns, i + 1, 7), ==, (int64_t)row->reserved);
        int64_t sum = 0;
        for (guint k = 1; k <= 4; k++) {
            sum += at(numbers, columns, i + 1, k);
        }
        g_assert_cmpint(sum, ==, (int64_t)row->allocated);
    }
    /* At the peak of step 1: parameters, activations, gradients, communication. */
    const int64_t peak[] = {4096, 2048, 512, 1024};
    for (guint k = 0; k < 4; k++) {
        g_assert_cmpint(at(numbers, columns, 3, k + 1), ==, peak[k]);
    }
}

static void thinning(void) {
    ToyOptions options = TOY_DEFAULT;
    options.steps = 2000;
    g_autoptr(Trace) trace = toy_trace(&options);
    /* One moment of one row among 12001 holds more, and gives it back at once. */
    TraceMemoryRow *spike = &g_array_index(trace->memory, TraceMemoryRow, 7003);
    spike->active += 100000;
    PlotPanel panel = {trace, 0};
    g_autoptr(GString) all = table_of(&panel, 0, 1999, plot_thin, 0);
    g_autoptr(GString) thin = table_of(&panel, 0, 1999, plot_thin, 100);
    guint columns = 0;
    g_autoptr(GArray) many = parse(all, &columns);
    g_autoptr(GArray) few = parse(thin, &columns);
    g_assert_cmpuint(many->len / columns, ==, 12001);
    g_assert_cmpuint(few->len / columns, <, 100 * (2 + 2 * 7) + 1);
    g_assert_cmpuint(few->len / columns, >=, 200);
    for (guint column = 0; column < columns; column++) {
        int64_t most[2] = {INT64_MIN, INT64_MIN}, least[2] = {INT64_MAX, INT64_MAX};
        for (guint i = 0; i < many->len / columns; i++) {
            most[0] = MAX(most[0], at(many, columns, i, column));
            least[0] = MIN(least[0], at(many, columns, i, column));
        }
        for (guint i = 0; i < few->len / columns; i++) {
            most[1] = MAX(most[1], at(few, columns, i, column));
            least[1] = MIN(least[1], at(few, columns, i, column));
        }
        g_assert_cmpint(most[0], ==, most[1]);
        g_assert_cmpint(least[0], ==, least[1]);
    }
}

/* The row of a table that holds at a time. */
static guint row_at(GArray *numbers, guint columns, int64_t time_ns) {
    guint row = 0;
    while (row + 1 < numbers->len / columns && at(numbers, columns, row + 1, 0) <= time_ns) {
        row++;
    }
    return row;
}

/* Lines and pale areas run along the most of each slice, and lose no peak; where nothing changes
 * for long, they show what is held. */
static void crests(void) {
    enum {
        SLICES = 100,
        STEPS = 2000
    };
    ToyOptions options = TOY_DEFAULT;
    options.steps = STEPS;
    g_autoptr(Trace) trace = toy_trace(&options);
    const int64_t pause_ns = 1000000000; /* after the first half */
    for (guint i = 6000; i < trace->memory->len; i++) {
        g_array_index(trace->memory, TraceMemoryRow, i).host_ns += pause_ns;
    }
    g_array_index(trace->memory, TraceMemoryRow, 7003).active += 100000;
    PlotPanel panel = {trace, 0};
    g_autoptr(GString) all = table_of(&panel, 0, STEPS - 1, plot_thin, 0);
    g_autoptr(GString) crest = table_of(&panel, 0, STEPS - 1, plot_crests, SLICES);
    guint columns = 0;
    g_autoptr(GArray) many = parse(all, &columns);
    g_autoptr(GArray) few = parse(crest, &columns);
    g_assert_cmpuint(few->len / columns, <, 5 * SLICES);
    for (guint i = 0; i < many->len / columns; i++) {
        guint row = row_at(few, columns, at(many, columns, i, 0));
        for (guint k = columns - 3; k < columns; k++) {
            g_assert_cmpint(at(few, columns, row, k), >=, at(many, columns, i, k));
        }
    }
    for (guint k = columns - 3; k < columns; k++) {
        int64_t most[2] = {0, 0};
        for (guint i = 0; i < many->len / columns; i++) {
            most[0] = MAX(most[0], at(many, columns, i, k));
        }
        for (guint i = 0; i < few->len / columns; i++) {
            most[1] = MAX(most[1], at(few, columns, i, k));
        }
        g_assert_cmpint(most[0], ==, most[1]);
    }
    guint held = 0;
    while (at(many, columns, held + 1, 0) - at(many, columns, held, 0) < pause_ns) {
        held++;
    }
    guint shown = row_at(few, columns, at(many, columns, held, 0) + pause_ns / 2);
    for (guint k = 1; k < columns; k++) {
        g_assert_cmpint(at(few, columns, shown, k), ==, at(many, columns, held, k));
    }
}

static int64_t span_of(GString *table, guint lane, bool any_lane) {
    guint columns = 0;
    g_autoptr(GArray) numbers = parse(table, &columns);
    int64_t sum = 0;
    for (guint i = 0; columns > 0 && i < numbers->len / columns; i++) {
        if (any_lane || at(numbers, columns, i, 2) == lane) {
            sum += at(numbers, columns, i, 1) - at(numbers, columns, i, 0);
        }
    }
    return sum;
}

static void lane_tables(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    const TraceStepSummary *step = trace_summary_step(summary, 2);
    PlotPanel panel = {trace, 0};
    g_autoptr(GArray) classes = plot_lane_classes(&panel, 1, 2, 2);
    /* forward, backward, optimizer; all_gather, reduce_scatter */
    g_assert_cmpuint(classes->len, ==, 5);
    int64_t busy_ns[3] = {0, 0, 0};
    for (guint i = 0; i < classes->len; i++) {
        g_autoptr(GString) table = plot_lane_table(
            &panel, 2, 2, &g_array_index(classes, PlotLaneClass, i), step->start_ns, 0);
        for (guint lane = 0; lane < 3; lane++) {
            busy_ns[lane] += span_of(table, lane, false);
        }
    }
    for (guint lane = 0; lane < 3; lane++) {
        g_assert_cmpint(busy_ns[lane], ==, step->lane_ns[lane]);
    }
    g_autoptr(GString) exposed = plot_exposed_table(&panel, 2, 2, step->start_ns, 0);
    g_assert_cmpint(span_of(exposed, 0, true), ==, step->exposed_ns);
    g_assert_cmpstr(exposed->str, ==,
                    "start_ns\tend_ns\n50000\t100000\n300000\t350000\n900000\t950000\n");
    /* Each op is issued 20 us before it starts: 30, 80, 180, 330, 630, 830, 930. */
    g_autoptr(GString) host = plot_host_table(&panel, 2, 2, step->start_ns, 1);
    g_assert_cmpstr(host->str, ==,
                    "issue_ns\n30000\n80000\n180000\n330000\n630000\n830000\n930000\n");
    g_autoptr(GString) apart = plot_host_table(&panel, 2, 2, step->start_ns, 200000);
    g_assert_cmpstr(apart->str, ==, "issue_ns\n30000\n330000\n630000\n830000\n");
}

typedef struct {
    Trace *traces[2];
    PlotPanel panels[2];
    PlotOptions options;
    char *folder; /* for pictures; gnuplot's folder is made in the TMPDIR of main() */
} Fixture;

static void set_up(Fixture *fixture, gconstpointer data) {
    ToyOptions options = TOY_DEFAULT;
    fixture->traces[0] = toy_trace(&options);
    options.side = "measured";
    options.slower_us = 200;
    fixture->traces[1] = toy_trace(&options);
    for (guint i = 0; i < 2; i++) {
        fixture->panels[i] = (PlotPanel){fixture->traces[i], 0};
    }
    fixture->options =
        (PlotOptions){.first_step = 0, .last_step = 3, .scripts = FORESHARD_PLOTS, .columns = 100};
    fixture->folder = g_dir_make_tmp("pictures-XXXXXX", NULL);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
    trace_free(fixture->traces[0]);
    trace_free(fixture->traces[1]);
    g_rmdir(fixture->folder);
    g_free(fixture->folder);
    /* Nothing is left behind. */
    g_autoptr(GDir) dir = g_dir_open(g_get_tmp_dir(), 0, NULL);
    g_assert_cmpstr(g_dir_read_name(dir), ==, NULL);
}

static bool has_gnuplot(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
    }
    return program != NULL;
}

/* As cairo dates a PDF: two of the same trace would then differ. */
static bool is_dated(const char *content, gsize length) {
    static const char word[] = "CreationDate";
    for (gsize at = 0; at + sizeof word - 1 <= length; at++) {
        if (memcmp(content + at, word, sizeof word - 1) == 0) {
            return true;
        }
    }
    return false;
}

static void pictures(Fixture *fixture, gconstpointer data) {
    if (!has_gnuplot()) {
        return;
    }
    static const struct {
        const char *name, *begins;
    } files[] = {
        {"a.png", "\x89PNG"}, {"a.svg", "<?xml"}, {"a.pdf", "%PDF"}, {"a.html", "<!DOCTYPE html>"}};
    for (guint picture = 0; picture <= PLOT_PICTURE_JITTER; picture++) {
        for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
            g_autofree char *path = g_build_filename(fixture->folder, files[i].name, NULL);
            fixture->options.output = path;
            g_autoptr(GError) error = NULL;
            g_autofree char *text = NULL;
            bool drawn = plot_panels(picture, fixture->panels, 2, &fixture->options, &text, &error);
            g_assert_no_error(error);
            g_assert_true(drawn);
            g_assert_null(text);
            g_autofree char *content = NULL;
            gsize length;
            g_assert_true(g_file_get_contents(path, &content, &length, NULL));
            g_assert_true(g_str_has_prefix(content, files[i].begins));
            g_assert_cmpuint(length, >, 5000);
            g_assert_false(is_dated(content, length));
            g_unlink(path);
        }
    }
}

static void jitter_table(Fixture *fixture, gconstpointer data) {
    g_autoptr(GString) table = plot_jitter_table(&fixture->panels[0], 0, 2);
    g_assert_cmpstr(table->str, ==,
                    "step\ttime_ns\tsteady\n0\t1000000\t0\n1\t1000000\t0\n2\t1000000\t1\n");
    if (!has_gnuplot()) {
        return;
    }
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(
        plot_panels(PLOT_PICTURE_JITTER, fixture->panels, 2, &fixture->options, &text, &error));
    g_test_message("%s", text);
    g_assert_nonnull(strstr(text, "p predicted, device host, rank 0: median 1.000 ms, 95 % within "
                                  "1.000 ms, range 1.000 to 1.000 ms (2 steady steps)"));
}

static guint count(const char *text, char wanted) {
    guint n = 0;
    for (; *text != '\0'; text++) {
        n += *text == wanted;
    }
    return n;
}

static void text_pictures(Fixture *fixture, gconstpointer data) {
    if (!has_gnuplot()) {
        return;
    }
    g_autofree char *round = NULL;
    g_autoptr(GError) none = NULL;
    g_assert_true(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &round, &none));
    g_test_message("%s", round);
    g_assert_nonnull(strstr(round, "8.00 KiB reserved\n"));
    g_assert_nonnull(strstr(round, "\n      8 +-|==")); /* reserved, and a label, at the very top */
    /* 8205 bytes: of the topmost of 14 rows the middle is no whole byte, and rounds up. */
    for (guint i = 0; i < 2; i++) {
        for (guint k = 0; k < fixture->traces[i]->memory->len; k++) {
            g_array_index(fixture->traces[i]->memory, TraceMemoryRow, k).reserved += 13;
        }
    }
    g_autofree char *memory = NULL, *lanes = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &memory, &error));
    g_test_message("%s", memory);
    g_assert_nonnull(strstr(memory, "\npredicted, "));
    g_assert_nonnull(strstr(memory, "\nmeasured, "));
    g_assert_nonnull(strstr(memory, "rank 0:\n  peak 7.50 KiB allocated, 8.01 KiB reserved\n"));
    /* 4096 of 8192 bytes are parameters all the time: half of 14 rows, 85 columns, and a little
     * less for the predicted side, which ends earlier. */
    g_assert_cmpuint(count(memory, 'p'), >, 7 * 85 + 7 * 65);
    g_assert_cmpuint(count(memory, 'p'), <, 2 * 7 * 85 + 60);
    /* Reserved bytes, in the topmost row of both panels. */
    g_assert_cmpuint(count(memory, '='), >, 100);
    g_assert_true(g_str_has_prefix(memory, "Memory over time: "));
    fixture->options.first_step = 3;
    g_assert_true(
        plot_panels(PLOT_PICTURE_LANES, fixture->panels, 2, &fixture->options, &lanes, &error));
    g_test_message("%s", lanes);
    g_assert_nonnull(strstr(lanes, "reduce"));
    g_assert_true(g_str_has_prefix(lanes, "Lanes over time: "));
    g_assert_cmpuint(count(lanes, '!'), >=, 4);
}

/* A gnuplot that names its terminals when it is asked, and otherwise shows what it is given. */
static char *stand_in(const char *folder, const char *terminals) {
    char *path = g_build_filename(folder, "gnuplot", NULL);
    g_autofree char *script =
        g_strdup_printf("#!/bin/sh\nif [ \"$2\" = -e ]; then echo ' %s '; else while read -r l; do "
                        "echo \"$l\"; done <settings.gp; fi\n",
                        terminals);
    g_assert_true(g_file_set_contents(path, script, -1, NULL));
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
    return path;
}

/* gnuplot 6 has "block": it draws where both it and the output can; ASCII is for all others. */
static void finer_characters(Fixture *fixture, gconstpointer data) {
    static const struct {
        const char *terminals;
        PlotCharacters characters;
        const char *chosen;
    } cases[] = {
        {"block dumb png", PLOT_BLOCKS, "text_terminal = \"block\"\n"},
        {"block dumb png", PLOT_ASCII, "text_terminal = \"dumb\"\n"},
        {"dumb png blocks", PLOT_BLOCKS, "text_terminal = \"dumb\"\n"},
    };
    g_autofree char *before = g_strdup(g_getenv("PATH"));
    g_setenv("PATH", fixture->folder, TRUE);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *program = stand_in(fixture->folder, cases[i].terminals);
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL;
        fixture->options.characters = cases[i].characters;
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error);
        g_unlink(program);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(text, cases[i].chosen));
    }
    g_setenv("PATH", before, TRUE);
}

/* On a full disk gnuplot writes what finds room and says nothing. */
static void cut_pictures(Fixture *fixture, gconstpointer data) {
    g_autofree char *before = g_strdup(g_getenv("PATH"));
    g_autofree char *program = g_build_filename(fixture->folder, "gnuplot", NULL);
    static const char *const names[] = {"a.png", "a.svg", "a.pdf", "a.html"};
    g_assert_true(
        g_file_set_contents(program, "#!/bin/sh\necho '<svg>%PDF begins' >picture\n", -1, NULL));
    g_assert_cmpint(g_chmod(program, 0755), ==, 0);
    g_setenv("PATH", fixture->folder, TRUE);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *output = g_build_filename(fixture->folder, names[i], NULL);
        char *text = NULL;
        fixture->options.output = output;
        g_assert_false(
            plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error));
        g_assert_error(error, TRACE_ERROR, TRACE_ERROR_FILE);
        g_assert_nonnull(strstr(error->message, "cut short; is the disk full"));
        g_assert_false(g_file_test(output, G_FILE_TEST_EXISTS));
    }
    g_setenv("PATH", before, TRUE);
    g_unlink(program);
}

static void errors(Fixture *fixture, gconstpointer data) {
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    fixture->options.output = "picture.bmp";
    g_assert_false(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
    g_assert_nonnull(strstr(error->message, ".png, .svg, .pdf or .html"));
    g_clear_error(&error);

    fixture->options.output = NULL;
    fixture->panels[1].rank = 5;
    g_assert_false(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
    g_assert_nonnull(strstr(error->message, "no rank 5"));
    g_clear_error(&error);
    fixture->panels[1].rank = 0;

    static const struct {
        int32_t first, last;
        const char *said;
    } nowhere[] = {
        {50, 50, "in step 50; the last is step 3"},
        {50, 51, "in steps 50 to 51; the last is step 3"},
        {-1, -1, "in construction; the last is step 3"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(nowhere); i++) {
        fixture->options.first_step = nowhere[i].first;
        fixture->options.last_step = nowhere[i].last;
        g_assert_false(
            plot_panels(PLOT_PICTURE_LANES, fixture->panels, 2, &fixture->options, &text, &error));
        g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
        g_assert_true(g_str_has_suffix(error->message, nowhere[i].said));
        g_clear_error(&error);
    }
    fixture->options.last_step = 3;
    fixture->options.first_step = 0;

    /* No gnuplot, and one that fails. */
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_setenv("PATH", fixture->folder, TRUE);
    g_assert_false(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_TOOL);
    g_assert_nonnull(strstr(error->message, "gnuplot-nox"));
    g_clear_error(&error);
    g_autofree char *fake = g_build_filename(fixture->folder, "gnuplot", NULL);
    g_assert_true(g_file_set_contents(fake, "#!/bin/sh\necho it broke >&2\nexit 3\n", -1, NULL));
    g_assert_cmpint(g_chmod(fake, 0755), ==, 0);
    g_assert_false(
        plot_panels(PLOT_PICTURE_MEMORY, fixture->panels, 2, &fixture->options, &text, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_TOOL);
    g_assert_nonnull(strstr(error->message, "it broke"));
    g_unlink(fake);
    g_setenv("PATH", path, TRUE);
    g_assert_null(text);
}

/* What gnuplot draws of the table is the table: its own "set table" gives the numbers back. */
static void gnuplot_reads_the_table(Fixture *fixture, gconstpointer data) {
    if (!has_gnuplot()) {
        return;
    }
    g_autoptr(GString) table = table_of(&fixture->panels[1], 0, 3, plot_thin, 0);
    g_autofree char *path = g_build_filename(fixture->folder, "rows.tsv", NULL);
    g_assert_true(g_file_set_contents(path, table->str, (gssize)table->len, NULL));
    g_autofree char *script =
        g_strdup_printf("set datafile separator tab; set table; set format '%%.0f'; "
                        "plot '%s' skip 1 using 1:6 with lines",
                        path);
    const char *argv[] = {"gnuplot", "-d", "-e", script, NULL};
    g_autofree char *out = NULL;
    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL,
                               G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out,
                               NULL, NULL, NULL));
    guint columns = 0, row = 0;
    g_autoptr(GArray) numbers = parse(table, &columns);
    g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        double x, y;
        if (lines[i][0] != '#' && sscanf(lines[i], "%lf %lf", &x, &y) == 2) {
            g_assert_cmpfloat(x, ==, (double)at(numbers, columns, row, 0));
            g_assert_cmpfloat(y, ==, (double)at(numbers, columns, row, 5));
            row++;
        }
    }
    g_assert_cmpuint(row, ==, numbers->len / columns);
    g_unlink(path);
}

int main(int argc, char **argv) {
    /* Before anything asks for it: a folder of our own, so that leftovers show. */
    const char *outer = g_getenv("TMPDIR");
    g_autofree char *folder =
        g_build_filename(outer != NULL ? outer : P_tmpdir, "foreshard-test-plot-XXXXXX", NULL);
    g_assert_nonnull(g_mkdtemp(folder));
    g_setenv("TMPDIR", folder, TRUE);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/plot/memory-table", memory_table);
    g_test_add_func("/plots/plot/thinning", thinning);
    g_test_add_func("/plots/plot/crests", crests);
    g_test_add_func("/plots/plot/lane-tables", lane_tables);
    g_test_add("/plots/plot/pictures", Fixture, NULL, set_up, pictures, tear_down);
    g_test_add("/plots/plot/jitter-table", Fixture, NULL, set_up, jitter_table, tear_down);
    g_test_add("/plots/plot/text-pictures", Fixture, NULL, set_up, text_pictures, tear_down);
    g_test_add("/plots/plot/finer-characters", Fixture, NULL, set_up, finer_characters, tear_down);
    g_test_add("/plots/plot/cut-pictures", Fixture, NULL, set_up, cut_pictures, tear_down);
    g_test_add("/plots/plot/errors", Fixture, NULL, set_up, errors, tear_down);
    g_test_add("/plots/plot/gnuplot-reads-the-table", Fixture, NULL, set_up,
               gnuplot_reads_the_table, tear_down);
    int status = g_test_run();
    g_rmdir(folder);
    return status;
}
