/* What a config.json becomes has as many parameters as transformers makes of the same file, whose
 * counts stand in configs/parameters (configs/count.py writes them). A network of this project that
 * says that its modules are transformers' own is the same, op for op.
 */
#include <string.h>

#include "tests/models/parameters.h"

static const char *folder, *networks;

typedef struct {
    const char *name;
    uint64_t parameters;
} Row;

static ModelNetwork *read_network(const char *in, const char *name, const char *ending) {
    g_autofree char *file = g_strconcat(name, ending, NULL);
    g_autofree char *path = g_build_filename(in, file, NULL);
    g_autoptr(GError) error = NULL;
    ModelNetwork *network = model_network_read_file(path, &error);
    g_assert_no_error(error);
    return network;
}

static void has_as_many_parameters(gconstpointer data) {
    const Row *row = data;
    g_autoptr(ModelNetwork) network = read_network(folder, row->name, ".json");
    g_assert_cmpuint(parameters_of(network), ==, row->parameters);
}

static PlanGraph *graph_of(const char *in, const char *name, const char *ending) {
    g_autoptr(ModelNetwork) network = read_network(in, name, ending);
    g_autoptr(GError) error = NULL;
    PlanGraph *graph = model_network_emit(network, &(ModelPass){.batch = 1}, &error);
    g_assert_no_error(error);
    return graph;
}

#define ASSERT_SAME(one, other, array)                                                             \
    g_assert_cmpmem((one)->array.items, (one)->array.len * sizeof *(one)->array.items,             \
                    (other)->array.items, (other)->array.len * sizeof *(other)->array.items)

typedef struct {
    const char *named, *published;
} Same;

static void is_the_same(gconstpointer data) {
    const Same *same = data;
    g_autoptr(PlanGraph) named = graph_of(networks, same->named, ".ini");
    g_autoptr(PlanGraph) published = graph_of(folder, same->published, ".json");
    ASSERT_SAME(named, published, ops);
    g_assert_cmpuint(named->steps.len, ==, published->steps.len);
    for (uint32_t i = 0; i < named->steps.len; i++) {
        const PlanGraphStep *a = plan_graph_step_at(named, i);
        const PlanGraphStep *b = plan_graph_step_at(published, i);
        g_assert_true(a->kind == b->kind && a->index == b->index && a->releases == b->releases);
    }
    ASSERT_SAME(named, published, value_refs);
    ASSERT_SAME(named, published, dims);
    ASSERT_SAME(named, published, attrs);
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
    g_assert(argc == 3);
    folder = argv[1];
    networks = argv[2];
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
    static const Same same[] = {
        {"gemma2-2b", "gemma-2-2b"},
        {"gemma2-9b", "gemma-2-9b"},
        {"gemma2-27b", "gemma-2-27b"},
        {"gemma3-1b", "gemma-3-1b"},
        {"gemma3-4b", "gemma-3-4b-text"},
        {"gemma3-12b", "gemma-3-12b-text"},
        {"gemma3-27b", "gemma-3-27b-text"},
        {"glm-4-9b", "GLM-4-9B-0414"},
        {"phi-4", "phi-4"},
        {"smollm3-3b", "SmolLM3-3B"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(same); i++) {
        g_autofree char *test = g_strdup_printf("/models/config.json/same/%s", same[i].named);
        g_test_add_data_func(test, &same[i], is_the_same);
    }
    return g_test_run();
}
