/* What is noted is gone when a signal has ended the program, and only then. */
#include "plan/files/leftovers.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char *made(const char *folder, const char *name) {
    char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, "x", 1, NULL));
    return path;
}

static bool is_there(const char *path) {
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* The status of a child that notes a folder of many files and a file, and meets the signal. */
static int meet(const char *folder, int sig, bool ignored) {
    pid_t child = fork();
    if (child == 0) {
        signal(sig, ignored ? SIG_IGN : SIG_DFL); /* whoever runs this may ignore some (nohup) */
        g_autofree char *kept = g_build_filename(folder, "kept", NULL);
        g_autofree char *file = g_build_filename(folder, "file", NULL);
        g_autofree char *inner = g_build_filename(folder, "inner", NULL);
        plan_leftover(kept);
        plan_leftover(file);
        plan_leftover(inner);
        plan_leftover_over(kept);
        raise(sig);
        _exit(7);
    }
    int status;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    return status;
}

static void test_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(signals); i++) {
        bool ignored = i % 2;
        g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
        g_autofree char *kept = made(folder, "kept");
        g_autofree char *file = made(folder, "file");
        g_autofree char *inner = g_build_filename(folder, "inner", NULL);
        g_assert_cmpint(g_mkdir(inner, 0700), ==, 0);
        for (unsigned k = 0; k < 300; k++) { /* more than one call lists */
            g_autofree char *name = g_strdup_printf("inner/a-file-with-a-long-name-%u", k);
            g_autofree char *path = made(folder, name);
        }
        int status = meet(folder, signals[i / 2], ignored);
        g_assert_true(ignored ? WIFEXITED(status) && WEXITSTATUS(status) == 7
                              : WIFSIGNALED(status) && WTERMSIG(status) == signals[i / 2]);
        g_assert_true(is_there(kept));
        g_assert_true(is_there(file) == ignored);
        g_assert_true(is_there(inner) == ignored);
        plan_leftover_remove_folder(inner);
        g_assert_false(is_there(inner));
        plan_leftover_remove_folder(folder);
        g_assert_false(is_there(folder));
    }
}

/* What a process noted is not its child's to remove. */
static void test_children(void) {
    g_autofree char *folder = plan_leftover_folder("foreshard-test-XXXXXX", NULL);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(7);
    }
    int status;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    g_assert_true(is_there(folder));
    plan_leftover_remove_folder(folder);
}

/* The name says what it is of; where none can be made the message says what to do. */
static void test_folder(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = plan_leftover_folder("foreshard-test-XXXXXX", &error);
    g_assert_no_error(error);
    g_assert_true(g_file_test(folder, G_FILE_TEST_IS_DIR));
    plan_leftover_remove_folder(folder);
    g_assert_false(is_there(folder));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/leftovers/signals", test_signals);
    g_test_add_func("/plan/leftovers/children", test_children);
    g_test_add_func("/plan/leftovers/folder", test_folder);
    return g_test_run();
}
