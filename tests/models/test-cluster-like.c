/* Cluster files that say which other they are like, and are so but for what they say. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "models/cluster.h"
#include "tests/models/clusters.h"

static void check_like(const char *beside, const char *words) {
    g_autoptr(GError) error = NULL;
    g_autofree char *home = g_dir_make_tmp("cluster-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *path = g_build_filename(home, "beside.ini", NULL);
    g_autofree char *file = g_build_filename(home, "mixed.ini", NULL);
    g_file_set_contents(path, beside, -1, &error);
    g_assert_no_error(error);
    g_autofree char *roce = clusters_text("a100-roce.ini");
    g_autofree char *text = g_strconcat(roce, "[nodes a]\nat = 1\nlike = beside.ini\n", NULL);
    g_autoptr(ModelCluster) cluster = model_cluster_read(text, strlen(text), file, &error);
    g_unlink(path);
    g_rmdir(home);
    g_assert_null(cluster);
    g_assert_nonnull(strstr(error->message, words));
}

/* Wherever the header of a kind stands: a file that is like itself would be read for ever. */
static void test_like_kinds(void) {
    check_like("[nodes x]\nat = 0\nlike = beside.ini\n", "has nodes of several kinds itself");
    check_like("\n  [nodes x]\nat = 0\nlike = beside.ini\n", "has nodes of several kinds itself");
    check_like("# of one kind\n[nodes\n", "a section is written [name]");
}

static char *find_in_folder(const char *name, GError **error) {
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(clusters_folder(), file, NULL);
    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        return g_steal_pointer(&path);
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "nothing is called %s", name);
    return NULL;
}

static ModelCluster *read_like(const char *path, const char *name, ModelClusterFind find,
                               GError **error) {
    g_autofree char *roce = clusters_text("a100-roce.ini");
    g_autofree char *text = g_strconcat(roce, "[nodes a]\nat = 1\nlike = ", name, "\n", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return model_cluster_read_file_with(path, find, error);
}

static void assert_like_refused(const char *path, const char *name, ModelClusterFind find,
                                const char *words) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = read_like(path, name, find, &error);
    g_assert_null(cluster);
    g_assert_nonnull(strstr(error->message, words));
}

static void test_like_name(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *home = g_dir_make_tmp("cluster-XXXXXX", &error);
    g_autofree char *file = g_build_filename(home, "mixed.ini", NULL);
    g_autofree char *beside = g_build_filename(home, "v100-dgx", NULL);
    g_autoptr(ModelCluster) named = read_like(file, "v100-dgx", find_in_folder, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(model_cluster_node(named, 1)->model, ==, "V100-SXM2-32GB");
    assert_like_refused(file, "v1000", find_in_folder, "nothing is called v1000");
    assert_like_refused(file, "./v100-dgx", find_in_folder, "no such file lies beside this one;");
    assert_like_refused(file, "v100-dgx", NULL, "no such file lies beside this one;");
    /* A file beside wins, and a trace would tell the two machines apart. */
    g_autofree char *titan = clusters_text("titan-rtx.ini");
    g_assert_true(g_file_set_contents(beside, titan, -1, NULL));
    g_autoptr(ModelCluster) filed = read_like(file, "v100-dgx", find_in_folder, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(model_cluster_node(filed, 1)->model, !=, "V100-SXM2-32GB");
    g_assert_cmpstr(filed->digest, !=, named->digest);
    g_unlink(beside);
    g_unlink(file);
    g_rmdir(home);
}

static ModelCluster *read_whole_like(const char *text, GError **error) {
    g_autofree char *home = g_dir_make_tmp("cluster-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(home, "mine.ini", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    ModelCluster *cluster = model_cluster_read_file_with(path, find_in_folder, error);
    g_unlink(path);
    g_rmdir(home);
    return cluster;
}

/* A whole cluster that is like another, but for what its file says. */
static void test_whole_like(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(clusters_folder(), "dgx-h100.ini", NULL);
    g_autoptr(ModelCluster) base = model_cluster_read_file(path, &error);
    g_autoptr(ModelCluster) mine =
        read_whole_like("[cluster]\nlike = dgx-h100\n[inter_node]\nnic_gb_per_s = 12.5\n"
                        "[topology]\nnodes = 3\n[nodes old]\nat = 1\nlike = v100-dgx\n",
                        &error);
    g_assert_no_error(error);
    g_assert_cmpstr(mine->name, ==, "mine");
    g_assert_true(g_str_has_prefix(mine->title, base->title)); /* and what is not so here */
    g_assert_nonnull(
        strstr(mine->title,
               "; here with inter_node.nic_gb_per_s=12.5 (100 Gb/s a GPU), topology.nodes=3"));
    g_assert_cmpstr(mine->model, ==, base->model);
    g_assert_cmpstr(mine->digest, !=, base->digest);
    g_assert_cmpuint(mine->device_memory_bytes, ==, base->device_memory_bytes);
    g_assert_cmpfloat(mine->inter_node_step_latency_us, ==, base->inter_node_step_latency_us);
    g_assert_cmpfloat(mine->inter_node_nic_gb_per_s, ==, 12.5);
    g_assert_cmpuint(model_cluster_ranks(mine), ==, 24);
    g_assert_cmpstr(model_cluster_node(mine, 1)->model, ==, "V100-SXM2-32GB");
}

static void test_whole_like_refused(void) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[cluster]\nlike = nobody\n", "mine.ini:2: like = nobody: no such file lies beside"},
        {"[cluster]\nlikes = dgx-h100\n", "did you mean like?"},
        {"[cluster]\nlike = a100-node\n[topology]\nnodes = 2\n", "lacks the key nic_gb_per_s"},
        {"[cluster]\nlike = dgx-h100\n[device]\noutside_allocator_bytes = 99999999999\n",
         "mine.ini:4: outside_allocator_bytes = 99999999999 leaves nothing"},
        {"[cluster]\nlike = dgx-h100\n[device]\nmemory_bytes = 80\n",
         "mine.ini:4: outside_allocator_bytes = 1342177280 leaves nothing of memory_bytes = 80;"},
        {"[cluster]\nlike = dgx-h100\nprice_per_hour = 2\n",
         "mine.ini:3: unknown key 'price_per_hour' in [cluster]; it belongs into [device]"},
        {"[cluster]\nlike = dgx-h100\n[price]\nprice_per_hour = 2\n",
         "'price_per_hour' stands in [price], and a cluster's file has no such section; it belongs "
         "into [device]"},
        {"like = dgx-h100\n",
         "mine.ini:1: 'like' stands before the first [section]; it belongs into [cluster]"},
        {"price_per_hour = 2\n", "stands before the first [section]; it belongs into [device]"},
        {"[cluster]\nlike = mine.ini\n",
         "mine.ini:2: like = mine.ini goes in a circle (mine.ini, mine.ini again);"},
        {"[cluster]\nlike = mine\n", "nothing is called mine"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelCluster) cluster = read_whole_like(cases[i].text, &error);
        g_test_message("%s", error ? error->message : "read");
        g_assert_null(cluster);
        g_assert_nonnull(strstr(error->message, cases[i].words));
    }
}

/* Files of a clusters_folder(), the first of which is read, or written out; names mean ours. */
static ModelCluster *read_files(const char *const (*files)[2], unsigned n, char **ret_whole,
                                GError **error) {
    g_autofree char *home = g_dir_make_tmp("cluster-XXXXXX", NULL);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < n; i++) {
        g_ptr_array_add(paths, g_build_filename(home, files[i][0], NULL));
        g_assert_true(g_file_set_contents(paths->pdata[i], files[i][1], -1, NULL));
    }
    ModelCluster *cluster = model_cluster_read_file_with(paths->pdata[0], find_in_folder, error);
    *ret_whole = model_cluster_whole_text(paths->pdata[0], find_in_folder, NULL);
    for (unsigned i = 0; i < n; i++) {
        g_unlink(paths->pdata[i]);
    }
    g_rmdir(home);
    return cluster;
}

/* A file that is like one that is like a third, whose name it hides. */
static void test_like_chain(void) {
    static const char *const files[][2] = {
        {"mine.ini", "[cluster]\nlike = dgx-h100\n[device]\nsms = 7\n"},
        {"dgx-h100.ini", "[cluster]\nlike = h100-a3\n[device]\n# ours\nsms = 8\nwatts = 9\n"},
        {"h100-a3.ini", "[cluster]\nlike = h100-a3\n[device]\nl2_bytes = 5\nsms = 4\n"},
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = NULL;
    g_autoptr(ModelCluster) mine = read_files(files, G_N_ELEMENTS(files), &whole, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(mine->device_sms, ==, 7);
    g_assert_cmpfloat(mine->device_watts, ==, 9);
    g_assert_cmpuint(mine->device_l2_bytes, ==, 5);
    g_assert_cmpfloat(mine->inter_node_nic_gb_per_s, ==, 25); /* of ours that is called h100-a3 */
    g_assert_nonnull(strstr(whole, "\nsms = 7\n"));
    g_assert_null(strstr(whole, "like = "));
    g_assert_null(strstr(whole, "sms = 8"));
    g_assert_nonnull(strstr(whole, "\n# ours\nwatts = 9\n"));
}

static void test_like_circle(void) {
    static const char *const files[][2] = {
        {"mine.ini", "[cluster]\nlike = a\n"},
        {"a.ini", "[cluster]\nlike = b.ini\n"},
        {"b.ini", "# round\n[cluster]\nlike = a.ini\n"},
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = NULL;
    g_autoptr(ModelCluster) mine = read_files(files, G_N_ELEMENTS(files), &whole, &error);
    g_assert_null(mine);
    g_assert_null(whole);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "/b.ini:3: like = a.ini goes in a circle (mine.ini, "
                                            "a.ini, b.ini, a.ini again);"));
}

/* What is wrong is said of the file in which it stands. */
static void test_like_wrong_file(void) {
    static const char *const files[][2] = {
        {"mine.ini", "[cluster]\nlike = a\n"},
        {"a.ini", "[cluster]\nlike = dgx-h100\n[device]\nwatts = -1\n"},
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = NULL;
    g_autoptr(ModelCluster) mine = read_files(files, G_N_ELEMENTS(files), &whole, &error);
    g_assert_null(mine);
    g_assert_nonnull(strstr(error->message, "/a.ini:4: watts = -1 is out of bounds"));
}

static void assert_same_numbers(const ModelCluster *a, const ModelCluster *b) {
#define COUNT(section, key, ...) g_assert_cmpuint(a->section##_##key, ==, b->section##_##key);
#define REAL(section, key, ...)  g_assert_cmpfloat(a->section##_##key, ==, b->section##_##key);
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
    g_assert_cmpmem(a->nvlinks, sizeof a->nvlinks, b->nvlinks, sizeof b->nvlinks);
    g_assert_cmpstr(a->title, ==, b->title);
    g_assert_cmpstr(a->model, ==, b->model);
    g_assert_cmpuint(a->device_kind, ==, b->device_kind);
}

/* Each of ours, written out, is what it is as it stands. */
static void test_whole_texts(void) {
    g_autoptr(GDir) dir = g_dir_open(clusters_folder(), 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (g_str_has_suffix(name, ".ini")) {
            g_autoptr(GError) error = NULL;
            g_autofree char *path = g_build_filename(clusters_folder(), name, NULL);
            g_autofree char *text = clusters_text(name);
            g_autoptr(ModelCluster) whole =
                model_cluster_read(text, strlen(text), "whole.ini", &error);
            g_assert_no_error(error);
            g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
            g_assert_no_error(error);
            assert_same_numbers(whole, cluster);
        }
    }
}

int main(int argc, char **argv) {
    clusters_init(&argc, &argv);
    g_test_add_func("/models/cluster-like/like a file with kinds", test_like_kinds);
    g_test_add_func("/models/cluster-like/like a name", test_like_name);
    g_test_add_func("/models/cluster-like/a whole one like another", test_whole_like);
    g_test_add_func("/models/cluster-like/a whole one refused", test_whole_like_refused);
    g_test_add_func("/models/cluster-like/like one that is like a third", test_like_chain);
    g_test_add_func("/models/cluster-like/like one that is like it", test_like_circle);
    g_test_add_func("/models/cluster-like/like one that is wrong", test_like_wrong_file);
    g_test_add_func("/models/cluster-like/written out", test_whole_texts);
    return g_test_run();
}
