/* Pictures of points: tables are the points, the front is beaten by none, gnuplot draws them. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "plots/points.h"

static const PlotPoint planted[] = {
    {"a", "2", 2, false, true, 30e6, 29e6, 33e6, 30e6, 4e9, 5e9, 100e12},
    {"a", "1", 1, false, true, 20e6, 20e6, 20e6, 20e6, 8e9, 9e9, 150e12, 3, 20},
    {"a", "4", 4, false, false, 10e6, 10e6, 10e6, 10e6, 90e9, 95e9, 200e12},
    {"b", "1", 1, false, true, 25e6, 25e6, 25e6, 25e6, 8e9, 9.5e9, 120e12},
    {"b", "2", 2, true, true, 40e6, 39e6, 41e6, 40e6, NAN, 5e9, NAN},
};

static GArray *planted_points(void) {
    GArray *points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    g_array_append_vals(points, planted, G_N_ELEMENTS(planted));
    return points;
}

static void tables(void) {
    g_autoptr(GArray) points = planted_points();
    g_autoptr(GString) line = plot_points_table(points, "a", false);
    g_assert_cmpstr(
        line->str, ==,
        "x\tlabel\tstep_ns\tleast_ns\tmost_ns\tallocated\treserved\tflops\tfits\t"
        "cost_ns\tpublished\n"
        "1\t1\t20000000\t20000000\t20000000\t8000000000\t9000000000\t150000000000000\t1\t20000000\t"
        "?\n"
        "2\t2\t30000000\t29000000\t33000000\t4000000000\t5000000000\t100000000000000\t1\t30000000\t"
        "?\n"
        "4\t4\t10000000\t10000000\t10000000\t90000000000\t95000000000\t200000000000000\t0"
        "\t10000000\t?\n");
    g_autoptr(GString) marks = plot_points_table(points, "b", true);
    g_assert_nonnull(strstr(marks->str, "\n2\t2\t40000000\t39000000\t41000000\t?\t5000000000\t?\t1"
                                        "\t40000000\t?\n"));
}

/* What a text picture says in numbers. */
static void rows(void) {
    g_autoptr(GArray) points = planted_points();
    PlotPointsOptions options = {.x_name = "micro_batch", .marks_name = "published"};
    g_autoptr(GString) text = plot_points_rows(points, &options);
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 7);
    g_assert_cmpstr(lines[0], ==,
                    "micro_batch      step (ms)  allocated (GiB)  reserved (GiB)   TFLOP/s/GPU");
    g_assert_cmpstr(lines[1], ==,
                    "2            a       30.00             3.73            4.66        100.00");
    g_assert_true(g_str_has_suffix(lines[2], "150.00  3 allocation retries in 20 steps"));
    g_assert_cmpstr(
        lines[3], ==,
        "4            a       10.00            83.82           88.48        200.00  does not fit");
    g_assert_cmpstr(
        lines[5], ==,
        "2            b       40.00                -            4.66             -  published");
}

/* Letters of several bytes move no column. */
static void rows_of_any_letters(void) {
    g_autoptr(GArray) points = planted_points();
    for (guint i = 0; i < points->len; i++) {
        PlotPoint *point = &g_array_index(points, PlotPoint, i);
        point->label = i % 2 ? "Größe" : "größte Zahl";
        point->series = i % 2 ? "A" : "Ä";
    }
    PlotPointsOptions options = {.x_name = "Übung", .marks_name = "published"};
    g_autoptr(GString) text = plot_points_rows(points, &options);
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    g_assert_cmpstr(lines[0], ==,
                    "Übung            step (ms)  allocated (GiB)  reserved (GiB)   TFLOP/s/GPU");
    g_assert_cmpstr(lines[1], ==,
                    "größte Zahl  Ä       30.00             3.73            4.66        100.00");
    g_assert_true(g_str_has_prefix(lines[2], "Größe        A       20.00             7.45"));
}

/* Held against every pair of points. */
static void front(void) {
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (guint round = 0; round < 50; round++) {
        g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
        for (guint i = 0; i < 40; i++) {
            PlotPoint point = planted[0];
            point.fits = g_rand_int_range(random, 0, 5) > 0;
            point.cost_ns = g_rand_int_range(random, 0, 20);
            point.reserved_bytes = g_rand_int_range(random, 0, 20);
            g_array_append_val(points, point);
        }
        g_autoptr(GArray) found = plot_points_front(points);
        guint n_unbeaten = 0;
        GHashTable *places = g_hash_table_new(NULL, NULL); /* cost and bytes of those unbeaten */
        for (guint i = 0; i < points->len; i++) {
            const PlotPoint *point = &g_array_index(points, PlotPoint, i);
            bool beaten = !point->fits;
            for (guint k = 0; k < points->len && !beaten; k++) {
                const PlotPoint *other = &g_array_index(points, PlotPoint, k);
                beaten = other->fits && other->cost_ns <= point->cost_ns &&
                         other->reserved_bytes <= point->reserved_bytes &&
                         (other->cost_ns < point->cost_ns ||
                          other->reserved_bytes < point->reserved_bytes);
            }
            guint place = (guint)(point->cost_ns * 100 + point->reserved_bytes);
            n_unbeaten += !beaten && g_hash_table_add(places, GUINT_TO_POINTER(place));
        }
        g_assert_cmpuint(found->len, ==, n_unbeaten);
        for (guint i = 0; i < found->len; i++) {
            const PlotPoint *point =
                &g_array_index(points, PlotPoint, g_array_index(found, guint, i));
            guint place = (guint)(point->cost_ns * 100 + point->reserved_bytes);
            g_assert_true(g_hash_table_contains(places, GUINT_TO_POINTER(place)));
        }
        g_hash_table_unref(places);
    }
}

/* The ends are numbered, in order, no two too near, and no more than a key has place for. */
static void numbers_of_a_front(void) {
    static const double most_ns = 100, top_bytes = 100;
    for (guint n = 1; n < 60; n++) {
        g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
        for (guint i = 0; i < n; i++) {
            PlotPoint point = planted[0];
            point.fits = true;
            point.cost_ns = 40 + 0.9 * i;
            point.reserved_bytes = 90 - 1.5 * i;
            g_array_append_val(points, point);
        }
        g_autoptr(GArray) front = plot_points_front(points);
        g_autofree guint *numbers = plot_points_numbers(points, front, most_ns, top_bytes);
        guint last = 0;
        g_assert_cmpuint(front->len, ==, n);
        for (guint i = 0, k = 1; i < n; i++) {
            if (numbers[i] > 0) {
                g_assert_cmpuint(numbers[i], ==, k++);
                g_assert_true(i == 0 || n == 2 || i - last >= 2); /* 3 of 100 bytes */
                last = i;
            }
        }
        g_assert_cmpuint(numbers[0], ==, 1);
        g_assert_cmpuint(last, ==, n - 1);
        g_assert_cmpuint(numbers[last], <=, 16);
        g_assert_cmpuint(numbers[last], >=, MIN((n + 1) / 2, 10));
    }
}

static PlotPointsOptions toy_options(void) {
    return (PlotPointsOptions){.title = "toy \"title\"",
                               .x_name = "micro_batch",
                               .x_is_number = true,
                               .cost_name = "step time",
                               .limit_bytes = 80e9,
                               .marks_name = "measured",
                               .scripts = FORESHARD_PLOTS,
                               .columns = 90};
}

/* The picture, by way of the file that options name. Transfer full. */
static char *svg_of(PlotPointsPicture picture, GArray *points, const PlotPointsOptions *options) {
    g_autoptr(GError) error = NULL;
    g_autofree char *nothing = NULL;
    char *svg = NULL;
    g_assert_true(plot_points(picture, points, options, &nothing, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(options->output, &svg, NULL, NULL));
    return svg;
}

static void pictures(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-points-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    g_autoptr(GArray) points = planted_points();
    PlotPointsOptions options = toy_options();
    static const char *const said[][3] = {
        [PLOT_POINTS_SWEEP] = {"micro_batch", "does not fit", "limit, 74.5 GiB"},
        [PLOT_POINTS_PARETO] = {"step time (ms)", "peak reserved (GiB)", "measured"},
        [PLOT_POINTS_SCALE] = {"TFLOP/s per GPU", "micro_batch", "does not fit"},
    };
    static const char likewise[] = "recomputation not counted; measured runs likewise";
    for (guint picture = 0; picture < G_N_ELEMENTS(said); picture++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL;
        options.output = path;
        g_autofree char *svg = svg_of(picture, points, &options);
        for (guint i = 0; i < G_N_ELEMENTS(said[picture]); i++) {
            g_assert_nonnull(strstr(svg, said[picture][i]));
        }
        g_assert_nonnull(strstr(svg, "toy"));
        g_assert_null(strstr(svg, likewise));
        g_assert_nonnull(strstr(svg, "viewBox=\"0 0 1600 900\""));
        g_assert_cmpint(picture == PLOT_POINTS_SWEEP || picture == PLOT_POINTS_PARETO, ==,
                        g_regex_match_simple("1 GiB is 2<[^>]*>.*30", svg, G_REGEX_DOTALL, 0));
        options.output = NULL;
        plot_points(picture, points, &options, &text, &error);
        g_assert_no_error(error);
        g_test_message("%s", text);
        g_assert_cmpuint(strlen(text), >, 500);
    }
    g_array_index(points, PlotPoint, 4).flops_per_s = 110e12; /* the measured one has a mark then */
    options.output = path;
    g_autofree char *marked = svg_of(PLOT_POINTS_SCALE, points, &options);
    g_assert_nonnull(strstr(marked, likewise));
    g_unlink(path);
    g_rmdir(folder);
}

/* A setting's value may be any text, and a trace another's: to gnuplot it is text alone. */
static void words_are_words(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-points-XXXXXX", NULL);
    g_autofree char *made = g_build_filename(folder, "made", NULL);
    g_autofree char *command = g_strdup_printf("`touch %s`", made);
    const char *const labels[] = {command, "it's", "\"two\"", "back\\slash", "$x @y %d"};
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    for (guint i = 0; i < G_N_ELEMENTS(labels); i++) {
        PlotPoint point = planted[0];
        point.label = point.series = labels[i];
        point.x = i;
        g_array_append_val(points, point);
    }
    for (guint picture = PLOT_POINTS_SWEEP; picture <= PLOT_POINTS_SCALE; picture++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL;
        PlotPointsOptions options = {.title = command,
                                     .x_name = command,
                                     .cost_name = command,
                                     .marks_name = command,
                                     .scripts = FORESHARD_PLOTS,
                                     .limit_bytes = NAN,
                                     .columns = 90};
        plot_points(picture, points, &options, &text, &error);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(text, "it's"));
        g_assert_false(g_file_test(made, G_FILE_TEST_EXISTS));
    }
    g_rmdir(folder);
}

static void assert_says(const char *svg, const char *const *words) {
    for (; *words; words++) {
        g_assert_nonnull(strstr(svg, *words));
    }
}

/* How far below the upper edge a text stands. */
static double height_of(const char *svg, const char *text) {
    g_auto(GStrv) before = g_strsplit(svg, text, 2);
    const char *place = g_strrstr(before[0], "translate(");
    g_assert_nonnull(place);
    return g_ascii_strtod(strchr(place, ',') + 1, NULL);
}

/* A panel of step times, one of peaks, or both; at 9 to 42 ms and 4.7 to 90 GiB each axis has a tic
 * of 20. */
static void published_runs(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    static const struct {
        bool times, peaks;
        const char *words[4];
        guint n_axes;
    } cases[] = {
        {true, false, {"measured (ms)", "predicted (ms)", "grey: 10 %"}, 2},
        {true, true, {"measured (ms)", "peak of memory", "predicted (GiB)"}, 4},
        {false, true, {"peak of memory", "measured (GiB)", "grey: 10 %"}, 2},
    };
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-points-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    PlotPointsOptions options = toy_options();
    for (guint k = 0; k < G_N_ELEMENTS(cases); k++) {
        g_autoptr(GArray) points = planted_points();
        for (guint i = 0; i < points->len; i++) {
            PlotPoint *point = &g_array_index(points, PlotPoint, i);
            point->x = cases[k].times ? point->step_ns * (i % 2 ? 0.95 : 1.1) : NAN;
            point->published_bytes = cases[k].peaks ? 0.98 * point->reserved_bytes : 0;
        }
        options.output = path;
        g_autofree char *svg = svg_of(PLOT_POINTS_VALIDATION, points, &options);
        assert_says(svg, cases[k].words);
        g_assert_cmpint(cases[k].peaks, ==, strstr(svg, "peak of memory") != NULL);
        g_assert_cmpint(cases[k].times, ==, strstr(svg, ">step time<") != NULL);
        g_assert_nonnull(strstr(svg, "viewBox=\"0 0 1600 760\""));
        double gap = height_of(svg, cases[k].times ? ">step time<" : ">peak of memory<") -
                     height_of(svg, "median error");
        g_assert_cmpfloat(gap, >, 20);
        g_assert_cmpfloat(gap, <, 60); /* of letters 16 high: no empty band between them */
        g_auto(GStrv) tics = g_strsplit(svg, ">20<", -1);
        g_assert_cmpuint(g_strv_length(tics) - 1, ==, cases[k].n_axes);
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL;
        options.output = NULL;
        plot_points(PLOT_POINTS_VALIDATION, points, &options, &text, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(strlen(text), >, 500);
    }
    g_unlink(path);
    g_rmdir(folder);
}

static char *lesson(PlotPointsPicture picture, const GArray *points) {
    PlotPointsOptions options = {.x_name = "ranks", .cost_name = "step time"};
    return plot_points_lesson(picture, points, &options);
}

static void lessons(void) {
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    for (guint i = 0; i < 4; i++) {
        PlotPoint point = {.series = "",
                           .label = i == 0   ? "1"
                                    : i == 1 ? "2"
                                    : i == 2 ? "4"
                                             : "8",
                           .x = 1 << i,
                           .fits = i != 3,
                           .step_ns = (100 - 10 * i) * 1e6,
                           .cost_ns = (100 - 10 * i) * 1e6,
                           .reserved_bytes = (2 + i) * 1e9,
                           .flops_per_s = (50 - i) * 1e12};
        g_array_append_val(points, point);
    }
    g_autofree char *sweep = lesson(PLOT_POINTS_SWEEP, points);
    g_assert_cmpstr(sweep, ==,
                    "least step time: ranks=4 (80.00 ms; the slowest +25.0 %); least memory: "
                    "ranks=1 (1.86 GiB); 1 of 4 do not fit");
    g_autofree char *scale = lesson(PLOT_POINTS_SCALE, points);
    g_assert_cmpstr(scale, ==, "-6.0 % from ranks=1 to 8");
    for (guint i = 0; i < 4; i++) { /* predicted is measured times 1.1, 1.2, 0.7, 1.4 */
        static const double factors[] = {1.1, 1.2, 0.7, 1.4};
        PlotPoint *point = &g_array_index(points, PlotPoint, i);
        point->x = point->step_ns / factors[i];
        point->fits = false;
    }
    g_autofree char *validation = lesson(PLOT_POINTS_VALIDATION, points);
    g_assert_cmpstr(validation, ==, "4 runs, median error 20.0 %, nine of ten within 40.0 %");
    for (guint i = 0; i < 4; i++) { /* two peaks, 1 and 3 % off, one of a run without a time */
        PlotPoint *point = &g_array_index(points, PlotPoint, i);
        point->published_bytes = i < 2 ? point->reserved_bytes * (i ? 1 / 1.03 : 1 / 0.99) : 0;
        point->x = i == 0 ? NAN : point->x;
    }
    g_autofree char *peaks = lesson(PLOT_POINTS_VALIDATION, points);
    g_assert_cmpstr(peaks, ==,
                    "3 runs, median error 30.0 %, nine of ten within 40.0 %; 2 peaks of memory, "
                    "median error 1.0 %, nine of ten within 3.0 %");
    g_autofree char *none = lesson(PLOT_POINTS_SWEEP, points);
    g_assert_cmpstr(none, ==, "none of them fits");
}

/* Of equals in time the one with less memory is named, and the other way round. */
static void a_lesson_names_ends_of_the_front(void) {
    static const PlotPoint equals[] = {
        {"", "a", 1, false, true, 30e6, 30e6, 30e6, 30e6, 4e9, 4e9, 1e12},
        {"", "b", 2, false, true, 20e6, 20e6, 20e6, 20e6, 4e9, 4e9, 1e12},
        {"", "c", 3, false, true, 10e6, 10e6, 10e6, 10e6, 9e9, 9e9, 1e12},
        {"", "d", 4, false, true, 10e6, 10e6, 10e6, 10e6, 8e9, 8e9, 1e12},
    };
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    g_array_append_vals(points, equals, G_N_ELEMENTS(equals));
    g_autofree char *pareto = lesson(PLOT_POINTS_PARETO, points);
    g_assert_cmpstr(
        pareto, ==,
        "least step time: d (10.00 ms; the slowest +200.0 %); least memory: b (3.73 GiB)");
}

/* A title that is folded loses no letter but the space at which it is. */
static void long_titles_are_folded(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-points-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    g_autoptr(GArray) points = planted_points();
    PlotPointsOptions options = toy_options();
    options.output = path;
    static const guint commas[] = {0, 109, 110, 115, 138}; /* 0: none */
    for (guint i = 0; i < G_N_ELEMENTS(commas); i++) {
        g_autoptr(GString) title = g_string_new(NULL);
        for (guint k = 0; k < 150; k++) {
            g_string_append_c(title, 'a' + k % 26);
        }
        if (commas[i] > 0) {
            memcpy(title->str + commas[i], ", ", 2);
        }
        options.title = title->str;
        g_autofree char *svg = svg_of(PLOT_POINTS_SCALE, points, &options);
        guint head = commas[i] > 0 ? commas[i] + 1 : 110; /* a comma stays behind */
        g_autofree char *first = g_strndup(title->str, head);
        g_assert_nonnull(strstr(svg, first));
        g_assert_nonnull(strstr(svg, title->str + head + (commas[i] > 0)));
    }
    g_unlink(path);
    g_rmdir(folder);
}

/* Settings of many knobs: what was found stands in two lines, each within the picture. */
static void long_lessons_are_folded(void) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-points-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    g_autoptr(GArray) points = planted_points();
    PlotPointsOptions options = toy_options();
    options.cost_name = "GPU time per token";
    options.output = path;
    for (guint picture = PLOT_POINTS_SWEEP; picture <= PLOT_POINTS_PARETO; picture++) {
        for (guint i = 0; i < points->len; i++) { /* a point of a front is named by its label */
            PlotPoint *point = &g_array_index(points, PlotPoint, i);
            *(picture == PLOT_POINTS_SWEEP ? &point->series : &point->label) =
                "checkpointing=selective-op, param_dtype=bf16, sharding=grad-op, wrap=block, "
                "accumulate=4";
        }
        g_autofree char *svg = svg_of(picture, points, &options);
        g_assert_nonnull(strstr(svg, ">least memory: "));
        g_auto(GStrv) texts = g_strsplit(svg, "<text>", -1);
        for (char **text = texts + 1; *text; text++) {
            g_assert_cmpuint(strcspn(*text, "<"), <, 175);
        }
    }
    g_unlink(path);
    g_rmdir(folder);
}

static void nothing_to_draw(void) {
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    PlotPointsOptions options = {.title = "", .scripts = FORESHARD_PLOTS, .limit_bytes = NAN};
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    g_assert_false(plot_points(PLOT_POINTS_SWEEP, points, &options, &text, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/points/published runs", published_runs);
    g_test_add_func("/plots/points/tables", tables);
    g_test_add_func("/plots/points/rows", rows);
    g_test_add_func("/plots/points/rows of any letters", rows_of_any_letters);
    g_test_add_func("/plots/points/front", front);
    g_test_add_func("/plots/points/numbers of a front", numbers_of_a_front);
    g_test_add_func("/plots/points/pictures", pictures);
    g_test_add_func("/plots/points/words are words", words_are_words);
    g_test_add_func("/plots/points/lessons", lessons);
    g_test_add_func("/plots/points/lessons name ends of the front",
                    a_lesson_names_ends_of_the_front);
    g_test_add_func("/plots/points/long titles", long_titles_are_folded);
    g_test_add_func("/plots/points/long lessons", long_lessons_are_folded);
    g_test_add_func("/plots/points/nothing", nothing_to_draw);
    return g_test_run();
}
