/* Every number of a cluster file at its bounds: what is read is predicted, or refused in words. */
#include <glib.h>
#include <string.h>

#include "sim/predict.h"
#include "tests/sim/toy.h"

typedef struct {
    const char *section, *key;
    bool whole;
    double min, max;
} Key;

#define REQUIRED 0
static const Key keys[] = {
#define COUNT(section, key, min, max, fallback, help) {#section, #key, true, min, max},
#define REAL(section, key, min, max, fallback, help)  {#section, #key, false, min, max},
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
};

static char *file_path(const char *name) {
    return g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), name, NULL);
}

/* A file with one number changed: where it stands, or in its section. */
static char *with_number(const char *text, const Key *key, const char *value) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *header = g_strdup_printf("[%s]", key->section);
    g_autofree char *start = g_strdup_printf("%s =", key->key);
    g_autoptr(GString) out = g_string_new(NULL);
    bool inside = false, done = false;
    for (char **line = lines; *line; line++) {
        if (**line == '[') {
            inside = g_str_has_prefix(*line, header);
        }
        if (inside && g_str_has_prefix(*line, start)) {
            g_string_append_printf(out, "%s %s\n", start, value);
            done = true;
        } else {
            g_string_append_printf(out, "%s\n", *line);
        }
    }
    if (!done) {
        g_string_append_printf(out, "%s\n%s %s\n", header, start, value);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* A kind of node that has this number apart. */
static char *with_kind(const char *text, const Key *key, const char *value) {
    return g_strdup_printf("%s\n[nodes apart]\nat = 0\n%s.%s = %s\n", text, key->section, key->key,
                           value);
}

static unsigned n_predicted, n_refused;

static void predict(const char *text, const char *file, const Plan *plan) {
    g_autofree char *path = file_path(file);
    g_autoptr(GError) refusal = NULL;
    g_autoptr(ModelCluster) cluster = model_cluster_read(text, strlen(text), path, &refusal);
    g_assert_true((cluster == NULL) == (refusal != NULL));
    for (unsigned every = 0; cluster && every < 2; every++) {
        g_autoptr(GError) error = NULL;
        const SimOptions options = {.steps = 3, .every_rank = every, .jitter = {.seed = 1}};
        g_autoptr(SimPrediction) played = sim_predict(plan, cluster, &options, NULL, &error);
        g_assert_true((played == NULL) == (error != NULL));
        n_predicted += played != NULL;
        n_refused += error != NULL;
    }
    n_refused += refusal != NULL;
}

static void check_values(const char *text, const char *file, const Key *key, const Plan *plan) {
    const double values[] = {key->min, key->max, 0, 1e-300, 1e-6, 1};
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        char real[G_ASCII_DTOSTR_BUF_SIZE];
        g_autofree char *whole = g_strdup_printf("%.0f", values[i]);
        const char *value = key->whole ? whole : g_ascii_dtostr(real, sizeof real, values[i]);
        g_test_message("%s: %s.%s = %s", file, key->section, key->key, value);
        g_autofree char *changed = with_number(text, key, value);
        predict(changed, file, plan);
        g_autofree char *mixed = with_kind(text, key, value);
        predict(mixed, file, plan);
    }
}

static void check_file(const char *file, const char *strategy) {
    g_autofree char *path = file_path(file);
    g_autofree char *text = model_cluster_whole_text(path, NULL, NULL);
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", strategy);
    n_predicted = n_refused = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        check_values(text, file, &keys[i], plan);
    }
    g_test_message("%s: %u predicted, %u refused", file, n_predicted, n_refused);
    g_assert_cmpuint(n_predicted, >, 0);
    g_assert_cmpuint(n_refused, >, 0);
}

static void test_gpus(void) {
    check_file("two-nodes-ethernet.ini", "ranks=16 sharding=hybrid replicate=2 flavour=fsdp1");
}

static void test_cpus(void) {
    check_file("two-laptops.ini", "ranks=2 sharding=full");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/bounds/GPUs", test_gpus);
    g_test_add_func("/sim/bounds/CPU ranks", test_cpus);
    return g_test_run();
}
