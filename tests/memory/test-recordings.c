/* Every recorded script of PyTorch's own allocator comes out line by line. */
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/memory/script.h"

static char *read_all(const char *path) {
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static bool is_left_out(const char *line) {
    return g_str_has_prefix(line, "  inactive_split_peak ");
}

/* The next line that counts; the place after the last is the empty string's. */
static const char *next_line(char **lines, guint *at) {
    while (lines[*at] && is_left_out(lines[*at])) {
        (*at)++;
    }
    return lines[*at] ? lines[(*at)++] : "";
}

static void test_recording(gconstpointer data) {
    const char *path = data;
    g_autofree char *script = read_all(path);
    g_autofree char *stem = g_strndup(path, strlen(path) - strlen(".txt"));
    g_autofree char *out_path = g_strconcat(stem, ".out", NULL);
    g_autofree char *recorded = read_all(out_path);
    g_autoptr(GError) error = NULL;
    g_autofree char *played = script_play(script, &error);
    g_assert_no_error(error);

    g_auto(GStrv) wanted = g_strsplit(recorded, "\n", -1);
    g_auto(GStrv) found = g_strsplit(played, "\n", -1);
    guint w = 0, f = 0, n = 0;
    while (wanted[w] || found[f]) {
        const char *want = next_line(wanted, &w);
        const char *have = next_line(found, &f);
        if (!g_str_equal(want, have)) {
            g_test_message("%s:%u: recorded \"%s\", played \"%s\"", out_path, w, want, have);
        }
        g_assert_cmpstr(have, ==, want);
        n++;
    }
    g_assert_cmpuint(n, >, 5);
}

/* What pytorch issue 124260 prints, GiB with three decimals, allocated and reserved: a module on
 * the GPU, synchronized, flattened. */
static void test_published_construction(void) {
    static const char *const printed[] = {"0.758 0.775", "0.758 1.367", "1.512 2.123"};
    static const double GIB = 1 << 30;
    g_autofree char *path =
        g_test_build_filename(G_TEST_DIST, "allocator", "small", "31-fsdp1-construction.txt", NULL);
    g_autofree char *script = read_all(path);
    g_autoptr(GError) error = NULL;
    g_autofree char *played = script_play(script, &error);
    g_assert_no_error(error);
    const char *at = played;
    for (unsigned i = 0; i < G_N_ELEMENTS(printed); i++) {
        double allocated, reserved;
        at = strstr(at, "\n= stats ");
        g_assert_nonnull(at);
        int n = sscanf(at++, "\n= stats allocated %lf %*f active %*f %*f reserved %lf", &allocated,
                       &reserved);
        g_assert_cmpint(n, ==, 2);
        g_autofree char *gib = g_strdup_printf("%.3f %.3f", allocated / GIB, reserved / GIB);
        g_assert_cmpstr(gib, ==, printed[i]);
    }
}

static gint compare_names(gconstpointer a, gconstpointer b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static guint add_folder(const char *folder, GPtrArray *paths) {
    g_autofree char *where = g_test_build_filename(G_TEST_DIST, "allocator", folder, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = g_dir_open(where, 0, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (g_str_has_suffix(name, ".txt")) {
            g_ptr_array_add(names, g_strdup(name));
        }
    }
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        char *name = g_ptr_array_index(names, i);
        char *path = g_build_filename(where, name, NULL);
        name[strlen(name) - strlen(".txt")] = '\0';
        g_autofree char *test = g_strdup_printf("/memory/recordings/%s/%s", folder, name);
        g_ptr_array_add(paths, path);
        g_test_add_data_func(test, path, test_recording);
    }
    return names->len;
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    guint n = add_folder("small", paths) + add_folder("golden", paths) + add_folder("mixed", paths);
    g_assert_cmpuint(n, ==, 73);
    g_test_add_func("/memory/recordings/published construction", test_published_construction);
    return g_test_run();
}
