#include "tests/exec/scene.h"

#include <glib/gstdio.h>
#include <string.h>

TestScene test_scene_set(void) {
    TestScene scene = {.folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL)};
    scene.trace = g_strconcat(scene.folder, "/m.trace", NULL);
    g_assert_true(g_file_set_contents(scene.trace, "a good one", -1, NULL));
    return scene;
}

void test_scene_leave(TestScene *scene) {
    g_unlink(scene->trace);
    g_assert_cmpint(g_rmdir(scene->folder), ==, 0); /* nothing else was left there */
    g_free(scene->trace);
    g_free(scene->folder);
}

GArray *test_scene_processes(const char *word, const char *in_environment) {
    GArray *found = g_array_new(FALSE, FALSE, sizeof(int));
    GDir *dir = g_dir_open("/proc", 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *command_path = g_build_filename("/proc", name, "cmdline", NULL);
        g_autofree char *environ_path = g_build_filename("/proc", name, "environ", NULL);
        g_autofree char *command = NULL, *environment = NULL;
        gsize n, m;
        int pid = atoi(name);
        if (pid > 1 && g_file_get_contents(command_path, &command, &n, NULL) &&
            memmem(command, n, word, strlen(word)) &&
            g_file_get_contents(environ_path, &environment, &m, NULL) &&
            memmem(environment, m, in_environment, strlen(in_environment))) {
            g_array_append_val(found, pid);
        }
    }
    g_dir_close(dir);
    return found;
}

void test_scene_says(const char *text, const char *expected) {
    g_auto(GStrv) parts = g_strsplit(expected, "|", -1);
    for (char **part = parts; *part; part++) {
        g_assert_nonnull(strstr(text, *part));
    }
}

void test_scene_ends(const TestScene *scene, GSubprocess *process, int status,
                     const char *expected) {
    gint64 start = g_get_monotonic_time();
    TestRun result = test_run_finish(process);
    double seconds = (double)(g_get_monotonic_time() - start) / 1e6;
    g_test_message("ended after %.1f s: %s", seconds, result.err);
    g_assert_cmpfloat(seconds, <, TEST_SCENE_SECONDS);
    g_assert_cmpint(result.status, ==, status);
    test_scene_says(result.err, expected);
    if (g_str_has_prefix(result.err, "foreshard run: ")) { /* Open MPI may add to an exec's own */
        g_assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
    }
    g_autoptr(GArray) left = test_scene_processes(scene->trace, "OMPI_COMM_WORLD_RANK=");
    g_assert_cmpuint(left->len, ==, 0);
    g_autofree char *content = NULL;
    g_assert_true(g_file_get_contents(scene->trace, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "a good one");
    test_run_clear(&result);
}

char *test_scene_exec(void) {
    g_autofree char *bin = g_path_get_dirname(test_run_program);
    return g_build_filename(bin, "..", "exec", "foreshard-exec", NULL);
}
