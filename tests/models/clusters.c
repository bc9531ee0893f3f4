#include "tests/models/clusters.h"

#include "models/cluster.h"

void clusters_init(int *argc, char ***argv) {
    g_test_init(argc, argv, NULL);
    g_assert_nonnull(clusters_folder());
}

const char *clusters_folder(void) {
    return g_getenv("FORESHARD_TEST_CLUSTERS");
}

char *clusters_text(const char *name) {
    g_autofree char *path = g_build_filename(clusters_folder(), name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = model_cluster_whole_text(path, NULL, &error);
    g_assert_no_error(error);
    return text;
}
