#include "tests/cli/shell.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>

Shell shell;

void result_clear(Result *result) {
    g_clear_pointer(&result->out, g_free);
    g_clear_pointer(&result->err, g_free);
}

Result run(const char *words) {
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_strdup(shell.program));
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    g_autofree char *input = NULL;
    for (char **word = list; *word; word++) {
        if (**word == '<' && !input) {
            input = g_build_filename(shell.folder, *word + 1, NULL);
        } else if (**word) {
            g_ptr_array_add(argv, g_strdup(g_str_equal(*word, "''") ? "" : *word));
        }
    }
    g_ptr_array_add(argv, NULL);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, shell.folder);
    if (input) {
        g_subprocess_launcher_set_stdin_file_path(launcher, input);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, &error);
    g_assert_no_error(error);
    Result result = {0};
    g_subprocess_communicate_utf8(process, NULL, NULL, &result.out, &result.err, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_get_if_exited(process));
    result.status = g_subprocess_get_exit_status(process);
    return result;
}

char *unbroken(const char *text) {
    g_autoptr(GRegex) broken = g_regex_new("\n +", 0, 0, NULL);
    return g_regex_replace_literal(broken, text, -1, 0, " ", 0, NULL);
}

void expect(const char *words, int status, const char *in_out, const char *in_err) {
    g_auto(Result) result = run(words);
    g_autofree char *whole = unbroken(result.out);
    bool is_said = strstr(result.out, in_out) || strstr(whole, in_out);
    if (result.status != status || !is_said || !strstr(result.err, in_err)) {
        g_test_message("foreshard %s\nstatus %d, expected %d\nstdout: %.300s\nexpected '%s'\n"
                       "stderr: %.300s\nexpected '%s'",
                       words, result.status, status, result.out, in_out, result.err, in_err);
        g_test_fail();
    }
}

void write_file(const char *name, const char *text) {
    g_autofree char *path = g_build_filename(shell.folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

char *read_file(const char *name) {
    g_autofree char *path = g_build_filename(shell.folder, name, NULL);
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

void write_cluster(const char *name, const char *from, const char *key, const char *value) {
    g_autofree char *words = g_strdup_printf("list %s", from);
    g_auto(Result) whole = run(words);
    const char *text = whole.out, *line = strstr(text, key);
    g_assert_nonnull(line);
    g_autoptr(GString) changed = g_string_new_len(text, line - text);
    g_string_append_printf(changed, "%s = %s%s", key, value, strchr(line + 1, '\n'));
    write_file(name, changed->str);
}

void shell_init(int *argc, char ***argv) {
    g_test_init(argc, argv, NULL);
    g_assert(*argc == 2);
    shell.program = (*argv)[1];
    shell.folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
}

int shell_finish(int status) {
    GDir *dir = g_dir_open(shell.folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(shell.folder, name, NULL);
        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(shell.folder);
    g_free(shell.folder);
    return status;
}
