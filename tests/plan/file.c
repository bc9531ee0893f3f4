/* plan/file: what was there stays whole until the new file is; what is no file keeps its place. */
#include "plan/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/files/stream.h"

static char *folder;

static char *in_folder(const char *name) {
    return g_build_filename(folder, name, NULL);
}

static void assert_holds(const char *path, const char *expected) {
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

static unsigned entries(void) {
    unsigned n = 0;
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (; g_dir_read_name(dir); n++) {
    }
    g_dir_close(dir);
    return n;
}

static void test_files(void) {
    g_autofree char *path = in_folder("a");
    g_assert_cmpint(plan_file_write(path, "first", 5), ==, 0);
    assert_holds(path, "first");
    g_assert_cmpint(plan_file_write(path, "2", 1), ==, 0);
    assert_holds(path, "2");
    g_assert_cmpuint(entries(), ==, 1);
    g_assert_cmpint(plan_file_write(folder, "x", 1), ==, EISDIR);
    g_autofree char *nowhere = in_folder("none/a");
    g_assert_cmpint(plan_file_write(nowhere, "x", 1), ==, ENOENT);
    g_unlink(path);
}

static void write_with_mode(const char *path, unsigned mode, unsigned expected) {
    GStatBuf there;
    g_assert_cmpint(g_chmod(path, (int)mode), ==, 0);
    g_assert_cmpint(plan_file_write(path, "new", 3), ==, 0);
    assert_holds(path, "new");
    g_assert_cmpint(g_stat(path, &there), ==, 0);
    g_assert_cmpuint(there.st_mode & 0777, ==, expected);
}

/* What others may not read they may not read when it is written again. */
static void test_modes(void) {
    g_autofree char *path = in_folder("a");
    mode_t before = umask(022);
    g_assert_cmpint(plan_file_write(path, "old", 3), ==, 0);
    write_with_mode(path, 0600, 0600);
    write_with_mode(path, 0664, 0664);
    write_with_mode(path, 0440, 0640); /* one that nobody writes is replaced all the same */
    umask(before);
    g_unlink(path);
}

/* The whole word, at the start; a folder has none, nor what is shorter, nor what is not there. */
static void test_begins(void) {
    g_autofree char *path = in_folder("a");
    g_assert_false(plan_file_begins(path, "word"));
    g_assert_false(plan_file_begins(folder, "word"));
    g_assert_cmpint(plan_file_write(path, "wor", 3), ==, 0);
    g_assert_false(plan_file_begins(path, "word"));
    g_assert_cmpint(plan_file_write(path, "word 1", 6), ==, 0);
    g_assert_true(plan_file_begins(path, "word"));
    g_assert_false(plan_file_begins(path, "ord"));
    g_assert_false(plan_stream_is(path));
    g_unlink(path);
}

static gpointer write_word(gpointer path) {
    g_assert_cmpint(plan_file_write(path, "word 1", 6), ==, 0);
    return NULL;
}

/* Who looks at a pipe's begin leaves it to be read, again and again. */
static void test_stream(void) {
    g_autofree char *path = in_folder("pipe");
    char start[64];
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    g_assert_true(plan_stream_is(path));
    GThread *writer = g_thread_new("writer", write_word, path);
    g_assert_false(plan_file_begins(path, "ord"));
    g_thread_join(writer);
    g_assert_true(plan_file_begins(path, "word"));
    g_assert_cmpuint(plan_file_start(path, start, sizeof start), ==, 6);
    for (guint i = 0; i < 2; i++) {
        gsize length;
        g_autoptr(GError) error = NULL;
        g_autofree char *text = plan_file_text(path, &length, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(text, ==, "word 1");
        g_assert_cmpuint(length, ==, 6);
    }
    g_unlink(path);
}

/* Of a file that grows too large nothing is left, and the one that was there stays. */
static void test_failed(void) {
    g_autofree char *path = in_folder("a");
    g_assert_cmpint(plan_file_write(path, "good", 4), ==, 0);
    struct rlimit before, few;
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    few = before;
    few.rlim_cur = 2;
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &few), ==, 0);
    int failed = plan_file_write(path, "bad", 3);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(failed, ==, EFBIG);
    assert_holds(path, "good");
    g_assert_cmpuint(entries(), ==, 1);
    g_unlink(path);
}

enum {
    WRITES = 200,
    BYTES = 1 << 16
};

static gpointer write_often(gpointer data) {
    g_autofree char *path = in_folder("a");
    g_autofree char *bytes = g_strnfill(BYTES, *(const char *)data);
    for (int i = 0; i < WRITES; i++) {
        g_assert_cmpint(plan_file_write(path, bytes, BYTES), ==, 0);
    }
    return NULL;
}

/* The last to write has the file, and all of it. */
static void test_two_writers(void) {
    GThread *a = g_thread_new("a", write_often, "a"), *b = g_thread_new("b", write_often, "b");
    g_thread_join(a);
    g_thread_join(b);
    g_autofree char *path = in_folder("a"), *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_autofree char *all = g_strnfill(BYTES, *text);
    g_assert_cmpstr(text, ==, all);
    g_assert_cmpuint(entries(), ==, 1);
    g_unlink(path);
}

/* What killed writers left of the file, and nothing else. */
static void test_clear(void) {
    const char *const names[] = {"a.tmp-4xYz01", "a", "a.tmp-", "a.tmp-4xYz012", "b.tmp-4xYz01"};
    g_autofree char *path = in_folder("a");
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = in_folder(names[i]);
        g_assert_true(g_file_set_contents(name, "", 0, NULL));
    }
    plan_file_clear(path);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = in_folder(names[i]);
        g_assert_cmpint(g_unlink(name), ==, i == 0 ? -1 : 0);
    }
}

static void test_links(void) {
    g_autofree char *path = in_folder("a");
    g_autofree char *link_path = in_folder("link");
    g_assert_cmpint(plan_file_write(path, "1", 1), ==, 0);
    g_assert_cmpint(symlink("a", link_path), ==, 0);
    g_assert_cmpint(plan_file_write(link_path, "2", 1), ==, 0);
    g_assert_true(g_file_test(link_path, G_FILE_TEST_IS_SYMLINK));
    assert_holds(path, "2");
    g_unlink(link_path);
    g_unlink(path);
}

/* A pipe is written to, as a device would be: it is not replaced by a file. */
static void test_pipes(void) {
    g_autofree char *path = in_folder("pipe");
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    int reader = g_open(path, O_RDWR, 0);
    g_assert_cmpint(plan_file_write(path, "through", 7), ==, 0);
    char text[8] = "";
    g_assert_cmpint((int)read(reader, text, 7), ==, 7);
    g_assert_cmpstr(text, ==, "through");
    close(reader);
    g_assert_cmpuint(entries(), ==, 1);
    g_unlink(path);
}

/* As /dev/stdout is, sent to a file: what had been written there before stays. */
static void test_descriptors(void) {
    g_autofree char *path = in_folder("out");
    g_assert_true(g_file_set_contents(path, "before ", -1, NULL));
    int fd = g_open(path, O_RDWR, 0);
    g_autofree char *name = g_strdup_printf("/dev/fd/%d", fd);
    g_assert_cmpint(plan_file_write(name, "after", 5), ==, 0);
    close(fd);
    assert_holds(path, "before after");
    g_unlink(path);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("foreshard-file-XXXXXX", NULL);
    g_test_add_func("/plan/file/files", test_files);
    g_test_add_func("/plan/file/modes", test_modes);
    g_test_add_func("/plan/file/begins", test_begins);
    g_test_add_func("/plan/file/stream", test_stream);
    g_test_add_func("/plan/file/failed", test_failed);
    g_test_add_func("/plan/file/two-writers", test_two_writers);
    g_test_add_func("/plan/file/clear", test_clear);
    g_test_add_func("/plan/file/links", test_links);
    g_test_add_func("/plan/file/pipes", test_pipes);
    g_test_add_func("/plan/file/descriptors", test_descriptors);
    int status = g_test_run();
    g_rmdir(folder);
    g_free(folder);
    return status;
}
