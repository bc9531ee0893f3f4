/* tests/cli/test-data-dir.c - data files are found in the right place, and bad names are told. */
#include <glib/gstdio.h>
#include <string.h>

#include "cli/source/data-dir.h"

/* Three places in a folder of their own, each empty. */
typedef struct {
    char *root;
    CliDataRoots places;
    GPtrArray *made; /* to be removed, last made first */
} Fixture;

static void make_folder(Fixture *fixture, const char *path) {
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    g_ptr_array_add(fixture->made, g_strdup(path));
}

static void put(Fixture *fixture, const char *place, const char *folder, const char *name) {
    g_autofree char *path = g_build_filename(place, folder, name, NULL);
    g_assert_true(g_file_set_contents(path, "[network]\n", -1, NULL));
    g_ptr_array_add(fixture->made, g_strdup(path));
}

static void set_up(Fixture *fixture, gconstpointer data) {
    fixture->root = g_dir_make_tmp("foreshard-data-XXXXXX", NULL);
    g_assert_nonnull(fixture->root);
    fixture->made = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(fixture->made, g_strdup(fixture->root));
    char **place[] = {&fixture->places.user, &fixture->places.source, &fixture->places.installed};
    static const char *const folders[][3] = {
        {"networks", "clusters", "plots"},
        {"models/networks", "models/clusters", "plots/scripts"},
        {"networks", "clusters", "plots"},
    };
    static const char *const names[] = {"user", "source", "installed"};
    for (unsigned i = 0; i < G_N_ELEMENTS(place); i++) {
        *place[i] = g_build_filename(fixture->root, names[i], NULL);
        make_folder(fixture, *place[i]);
        if (i == 1) {
            g_autofree char *models = g_build_filename(*place[i], "models", NULL);
            g_autofree char *plots = g_build_filename(*place[i], "plots", NULL);
            make_folder(fixture, models);
            make_folder(fixture, plots);
        }
        for (unsigned j = 0; j < 3; j++) {
            g_autofree char *folder = g_build_filename(*place[i], folders[i][j], NULL);
            make_folder(fixture, folder);
        }
    }
}

static void tear_down(Fixture *fixture, gconstpointer data) {
    for (guint i = fixture->made->len; i > 0; i--) {
        g_assert_cmpint(g_remove(fixture->made->pdata[i - 1]), ==, 0);
    }
    g_ptr_array_unref(fixture->made);
    cli_data_roots_clear(&fixture->places);
    g_free(fixture->root);
}

static void assert_found(Fixture *fixture, CliDataKind kind, const char *name,
                         const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find_in(&fixture->places, kind, name, &error);
    g_assert_no_error(error);
    g_autofree char *full = g_build_filename(fixture->root, expected, NULL);
    g_assert_cmpstr(path, ==, full);
}

static void test_order(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.installed, "networks", "toy.ini");
    assert_found(fixture, CLI_DATA_NETWORKS, "toy", "installed/networks/toy.ini");
    put(fixture, fixture->places.source, "models/networks", "toy.ini");
    assert_found(fixture, CLI_DATA_NETWORKS, "toy", "source/models/networks/toy.ini");
    put(fixture, fixture->places.user, "networks", "toy.ini");
    assert_found(fixture, CLI_DATA_NETWORKS, "toy", "user/networks/toy.ini");
    assert_found(fixture, CLI_DATA_NETWORKS, "toy.ini", "user/networks/toy.ini");
}

/* A place without the name is passed over, and the kinds do not mix. */
static void test_kinds(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.user, "networks", "box.ini");
    put(fixture, fixture->places.source, "models/clusters", "box.ini");
    put(fixture, fixture->places.installed, "plots", "box.gp");
    assert_found(fixture, CLI_DATA_NETWORKS, "box", "user/networks/box.ini");
    assert_found(fixture, CLI_DATA_CLUSTERS, "box", "source/models/clusters/box.ini");
    assert_found(fixture, CLI_DATA_PLOTS, "box", "installed/plots/box.gp");
}

static void test_path(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.user, "clusters", "mine");
    g_autofree char *path = g_build_filename(fixture->places.user, "clusters", "mine", NULL);
    assert_found(fixture, CLI_DATA_NETWORKS, path, "user/clusters/mine");

    g_autofree char *gone = g_build_filename(fixture->root, "gone.ini", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, gone, &error));
    g_assert_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH);
    g_assert_nonnull(strstr(error->message, gone));
}

static void test_current_folder(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.user, "networks", "here.ini");
    put(fixture, fixture->root, ".", "here.ini");
    g_autofree char *before = g_get_current_dir();
    g_assert_cmpint(g_chdir(fixture->root), ==, 0);
    g_autofree char *bare = cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, "here", NULL);
    g_autofree char *file = cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, "here.ini", NULL);
    g_assert_cmpint(g_chdir(before), ==, 0);
    g_assert_true(g_str_has_suffix(bare, "user/networks/here.ini"));
    g_assert_cmpstr(file, ==, "here.ini");
}

/* Sorted, each once, and nothing that only looks like data. */
static void test_names(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.installed, "networks", "b.ini");
    put(fixture, fixture->places.installed, "networks", "a.ini");
    put(fixture, fixture->places.installed, "networks", "README.md");
    put(fixture, fixture->places.user, "networks", "b.ini");
    put(fixture, fixture->places.user, "networks", "c.ini");
    g_auto(GStrv) names = cli_data_names_in(&fixture->places, CLI_DATA_NETWORKS);
    g_autofree char *joined = g_strjoinv(" ", names);
    g_assert_cmpstr(joined, ==, "a b c");
    g_auto(GStrv) none = cli_data_names_in(&fixture->places, CLI_DATA_PLOTS);
    g_assert_cmpuint(g_strv_length(none), ==, 0);
}

static void test_none_such(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.installed, "networks", "a.ini");
    put(fixture, fixture->places.user, "networks", "b.ini");
    g_autoptr(GError) error = NULL;
    g_assert_null(cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, "c", &error));
    g_assert_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH);
    g_assert_nonnull(strstr(error->message, "'c'"));
    g_assert_nonnull(strstr(error->message, "there are: a, b"));
    g_clear_error(&error);
    g_assert_null(cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, "", &error));
    g_assert_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH);
}

static void test_wrong_variable(Fixture *fixture, gconstpointer data) {
    put(fixture, fixture->places.installed, "networks", "a.ini");
    g_autofree char *gone = g_build_filename(fixture->root, "gone", NULL);
    g_free(fixture->places.user);
    fixture->places.user = g_steal_pointer(&gone);
    g_autoptr(GError) error = NULL;
    g_assert_null(cli_data_find_in(&fixture->places, CLI_DATA_NETWORKS, "a", &error));
    g_assert_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_FOLDER);
    g_assert_nonnull(strstr(error->message, "FORESHARD_DATA"));
}

/* This program lies in the build tree; the shell does not. */
static void test_source_only_from_build(void) {
    g_auto(CliDataRoots) here = {0};
    cli_data_roots_init(&here, NULL, NULL);
    g_assert_cmpstr(here.source, ==, FORESHARD_SOURCE_ROOT);
    g_assert_cmpstr(here.installed, ==, FORESHARD_DATADIR);
    g_assert_null(here.user);

    g_auto(CliDataRoots) installed = {0};
    cli_data_roots_init(&installed, "/bin/sh", "");
    g_assert_null(installed.source);
    g_assert_null(installed.user);
    g_auto(CliDataRoots) set = {0};
    cli_data_roots_init(&set, "/bin/sh", "somewhere");
    g_assert_cmpstr(set.user, ==, "somewhere");
}

static void test_own_files(void) {
    g_unsetenv("FORESHARD_DATA");
    g_auto(GStrv) networks = cli_data_names(CLI_DATA_NETWORKS);
    g_assert_cmpuint(g_strv_length(networks), >, 0);
    for (unsigned i = 0; networks[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, networks[i], &error);
        g_assert_no_error(error);
        g_assert_true(g_str_has_prefix(path, FORESHARD_SOURCE_ROOT));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    const struct {
        const char *name;
        void (*run)(Fixture *, gconstpointer);
    } tests[] = {
        {"/cli/data-dir/user-hides-source-hides-installed", test_order},
        {"/cli/data-dir/kinds-do-not-mix", test_kinds},
        {"/cli/data-dir/a-path-is-a-path", test_path},
        {"/cli/data-dir/file-in-current-folder", test_current_folder},
        {"/cli/data-dir/names-sorted-once", test_names},
        {"/cli/data-dir/unknown-name-lists-known", test_none_such},
        {"/cli/data-dir/wrong-variable-is-told", test_wrong_variable},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_test_add(tests[i].name, Fixture, NULL, set_up, tests[i].run, tear_down);
    }
    g_test_add_func("/cli/data-dir/source-only-from-build", test_source_only_from_build);
    g_test_add_func("/cli/data-dir/own-files-are-found", test_own_files);
    return g_test_run();
}
