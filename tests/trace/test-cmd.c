/* foreshard compare and foreshard plot as a user calls them: output and exit status. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "tests/trace/toy-trace.h"
#include "trace/text.h"

typedef struct {
    char *folder, *predicted, *measured, *cut, *other, *out, *err;
} Fixture;

static char *write_trace(const Fixture *fixture, const char *name, const ToyOptions *options) {
    char *path = g_build_filename(fixture->folder, name, NULL);
    g_autoptr(Trace) trace = toy_trace(options);
    g_assert_true(trace_write_file(trace, path, NULL));
    return path;
}

static void set_up(Fixture *fixture, gconstpointer data) {
    fixture->folder = g_dir_make_tmp("foreshard-test-cmd-XXXXXX", NULL);
    ToyOptions options = TOY_DEFAULT;
    fixture->predicted = write_trace(fixture, "predicted.trace", &options);
    options.side = "measured";
    options.slower_us = 250;
    fixture->measured = write_trace(fixture, "measured.trace", &options);
    options.digest = "sha256:4567";
    fixture->other = write_trace(fixture, "other.trace", &options);
    fixture->cut = g_build_filename(fixture->folder, "cut.trace", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(fixture->measured, &text, NULL, NULL));
    g_assert_true(g_file_set_contents(fixture->cut, text, (gssize)strlen(text) / 2, NULL));
}

static void tear_down(Fixture *fixture, gconstpointer data) {
    g_autoptr(GDir) dir = g_dir_open(fixture->folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(fixture->folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(fixture->folder);
    g_free(fixture->folder);
    g_free(fixture->predicted);
    g_free(fixture->measured);
    g_free(fixture->other);
    g_free(fixture->cut);
    g_free(fixture->out);
    g_free(fixture->err);
}

/* Runs a command with its output going to files; arguments end with NULL. */
static int run(Fixture *fixture, int (*command)(int, char **), ...) G_GNUC_NULL_TERMINATED;
static int run(Fixture *fixture, int (*command)(int, char **), ...) {
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    g_ptr_array_add(args, (gpointer) "command");
    va_list list;
    va_start(list, command);
    char *arg;
    while ((arg = va_arg(list, char *)) != NULL) {
        g_ptr_array_add(args, arg);
    }
    va_end(list);
    int argc = (int)args->len;
    g_ptr_array_add(args, NULL);
    int saved[2], status;
    char *paths[2];
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        paths[i] = g_build_filename(fixture->folder, i == 0 ? "out" : "err", NULL);
        saved[i] = dup(i + 1);
        int file = g_open(paths[i], O_CREAT | O_TRUNC | O_WRONLY, 0600);
        dup2(file, i + 1);
        close(file);
    }
    status = command(argc, (char **)args->pdata);
    fflush(stdout);
    fflush(stderr);
    g_clear_pointer(&fixture->out, g_free);
    g_clear_pointer(&fixture->err, g_free);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i + 1);
        close(saved[i]);
        g_assert_true(
            g_file_get_contents(paths[i], i == 0 ? &fixture->out : &fixture->err, NULL, NULL));
        g_unlink(paths[i]);
        g_free(paths[i]);
    }
    g_test_message("exit status %d\n%s%s", status, fixture->out, fixture->err);
    return status;
}

static void compare(Fixture *fixture, gconstpointer data) {
    g_assert_cmpint(run(fixture, cmd_compare, fixture->predicted, fixture->measured, NULL), ==, 0);
    g_assert_nonnull(strstr(fixture->out, "time (ms)"));
    g_assert_nonnull(strstr(fixture->out, "\nallocated equal at all 25 instructions"));
    g_assert_nonnull(strstr(fixture->out, "step time -20.0 %"));
    g_assert_cmpint(
        run(fixture, cmd_compare, "--json", fixture->predicted, fixture->measured, NULL), ==, 0);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_assert_true(json_parser_load_from_data(parser, fixture->out, -1, NULL));
    /* Into a folder, which is made, both forms; the text is also printed. */
    g_autofree char *json = g_strdup(fixture->out);
    g_assert_cmpint(
        run(fixture, cmd_compare, fixture->predicted, fixture->measured, "-o", fixture->cut, NULL),
        ==, 1);
    g_assert_nonnull(strstr(fixture->err, "cannot be made"));
    g_autofree char *made = g_build_filename(fixture->folder, "both", NULL);
    g_assert_cmpint(
        run(fixture, cmd_compare, fixture->predicted, fixture->measured, "-o", made, NULL), ==, 0);
    static const char *const names[] = {"compare.txt", "compare.json"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(made, names[i], NULL);
        g_autofree char *written = NULL;
        g_assert_true(g_file_get_contents(path, &written, NULL, NULL));
        g_assert_cmpstr(written, ==, i == 0 ? fixture->out : json);
        g_unlink(path);
    }
    g_rmdir(made);
}

static void compare_refuses(Fixture *fixture, gconstpointer data) {
    g_assert_cmpint(run(fixture, cmd_compare, fixture->predicted, fixture->other, NULL), ==, 2);
    g_assert_nonnull(strstr(fixture->err, "different plans"));
    g_assert_cmpint(run(fixture, cmd_compare, fixture->predicted, fixture->cut, NULL), ==, 2);
    g_assert_nonnull(strstr(fixture->err, "cut.trace:"));
    g_assert_nonnull(strstr(fixture->err, "cut short"));
    g_assert_cmpint(run(fixture, cmd_compare, fixture->predicted, "no.trace", NULL), ==, 2);
    g_assert_nonnull(strstr(fixture->err, "no.trace"));
    g_assert_cmpint(run(fixture, cmd_compare, fixture->predicted, NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_compare, "--unknown", NULL), ==, 2);
    g_assert_cmpstr(fixture->out, ==, "");
}

static void plot(Fixture *fixture, gconstpointer data) {
    g_autofree char *program = g_find_program_in_path("gnuplot");
    if (program == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, fixture->measured, NULL), ==, 0);
    g_assert_nonnull(strstr(fixture->out, "memory (KiB)"));
    g_assert_cmpint(run(fixture, cmd_plot, "-p", "lanes", fixture->measured, NULL), ==, 0);
    g_assert_nonnull(strstr(fixture->out, "time since the start of step 3 (ms)"));
    g_autofree char *picture = g_build_filename(fixture->folder, "memory.png", NULL);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-o", picture, NULL), ==, 0);
    g_assert_true(g_file_test(picture, G_FILE_TEST_IS_REGULAR));
    g_autofree char *nowhere = g_build_filename(fixture->folder, "no", "memory.png", NULL);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-o", nowhere, NULL), ==, 1);
}

static void plot_refuses(Fixture *fixture, gconstpointer data) {
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-o", "memory.gif", NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-p", "cake", NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-s", "3-1", NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-s", "77", NULL), ==, 2);
    g_assert_nonnull(strstr(fixture->err, "no rows to draw in step 77; the last is step "));
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, "-r", "9", NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->cut, NULL), ==, 2);
    g_assert_cmpint(run(fixture, cmd_plot, NULL), ==, 2);
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_setenv("PATH", fixture->folder, TRUE);
    g_assert_cmpint(run(fixture, cmd_plot, fixture->predicted, NULL), ==, 1);
    g_assert_nonnull(strstr(fixture->err, "gnuplot-nox"));
    g_setenv("PATH", path, TRUE);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add("/trace/cmd/compare", Fixture, NULL, set_up, compare, tear_down);
    g_test_add("/trace/cmd/compare-refuses", Fixture, NULL, set_up, compare_refuses, tear_down);
    g_test_add("/trace/cmd/plot", Fixture, NULL, set_up, plot, tear_down);
    g_test_add("/trace/cmd/plot-refuses", Fixture, NULL, set_up, plot_refuses, tear_down);
    return g_test_run();
}
