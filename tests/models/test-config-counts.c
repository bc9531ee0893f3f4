/* What a config.json becomes has as many parameters as transformers makes of the same file, whose
 * counts stand in configs/parameters (configs/count.py writes them).
 */
#include <string.h>

#include "tests/models/parameters.h"

static const char *folder;

typedef struct {
    const char *name;
    uint64_t parameters;
} Row;

static void has_as_many_parameters(gconstpointer data) {
    const Row *row = data;
    g_autofree char *file = g_strconcat(row->name, ".json", NULL);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = model_network_read_file(path, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(parameters_of(network), ==, row->parameters);
}

/* Every file has its row. */
static void none_is_left_out(gconstpointer data) {
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_assert_nonnull(dir);
    unsigned n = 0;
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        n += g_str_has_suffix(name, ".json");
    }
    g_assert_cmpuint(n, ==, GPOINTER_TO_UINT(data));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    folder = argv[1];
    g_autofree char *path = g_build_filename(folder, "parameters", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(g_strchomp(text), "\n", -1);
    unsigned n = g_strv_length(lines);
    g_autofree Row *rows = g_new(Row, n);
    for (unsigned i = 0; i < n; i++) {
        char *end;
        rows[i].parameters = g_ascii_strtoull(lines[i], &end, 10);
        rows[i].name = end + 1;
        g_autofree char *test = g_strdup_printf("/models/config.json/counts/%s", rows[i].name);
        g_test_add_data_func(test, &rows[i], has_as_many_parameters);
    }
    g_test_add_data_func("/models/config.json/counts/none is left out", GUINT_TO_POINTER(n),
                         none_is_left_out);
    return g_test_run();
}
