#include "cli/published/published.h"

#include "cli/source/cluster.h"
#include "cli/source/data-dir.h"

#include <pthread.h>

typedef struct {
    const char *gpu, *key; /* interned */
    double value;
} Tuned;

struct _CliPublished {
    CliRules *rules;
    pthread_mutex_t mutex; /* of the clusters */
    GHashTable *clusters;  /* name: ModelCluster */
    GArray *tuned;
};

static void free_cluster(gpointer cluster) {
    model_cluster_free(cluster);
}

CliPublished *cli_published_open(const char *table, const CliRuleWords *words, GError **error) {
    g_autoptr(CliPublished) published = g_new0(CliPublished, 1);
    pthread_mutex_init(&published->mutex, NULL);
    published->clusters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_cluster);
    published->tuned = g_array_new(FALSE, FALSE, sizeof(Tuned));
    g_autofree char *path = cli_data_find(CLI_DATA_PUBLISHED, table, error);
    published->rules = path ? cli_rules_read(path, words, error) : NULL;
    return published->rules ? g_steal_pointer(&published) : NULL;
}

void cli_published_free(CliPublished *published) {
    if (published) {
        cli_rules_free(published->rules);
        g_hash_table_unref(published->clusters);
        g_array_unref(published->tuned);
        pthread_mutex_destroy(&published->mutex);
        g_free(published);
    }
}

const CliRules *cli_published_rules(const CliPublished *published) {
    return published->rules;
}

const ModelCluster *cli_published_cluster(CliPublished *published, const GPtrArray *settings,
                                          GError **error) {
    const PlanIniEntry *entry = cli_rules_entry(settings, "cluster");
    if (!entry) {
        plan_ini_refuse(published->rules->ini, NULL, error,
                        "no rule names a cluster for a row that is not skipped; add one");
        return NULL;
    }
    pthread_mutex_lock(&published->mutex);
    ModelCluster *cluster = g_hash_table_lookup(published->clusters, entry->value);
    if (!cluster) {
        cluster = cli_cluster_read(entry->value, error);
        if (cluster) {
            g_hash_table_insert(published->clusters, g_strdup(entry->value), cluster);
        }
    }
    pthread_mutex_unlock(&published->mutex);
    return cluster;
}

const char *cli_published_skip(const GPtrArray *settings) {
    const char *why = cli_rules_value(settings, "skip");
    return why && !g_str_equal(why, "no") ? why : NULL;
}

bool cli_published_number(const CliPublished *published, const GPtrArray *settings, const char *key,
                          double fallback, double *ret_value, GError **error) {
    const PlanIniEntry *entry = cli_rules_entry(settings, key);
    *ret_value = fallback;
    return !entry || plan_parse_double(entry->value, ret_value) ||
           plan_ini_refuse(published->rules->ini, entry, error, "%s is '%s', which is no number",
                           key, entry->value);
}

void cli_published_tune(CliPublished *published, const char *gpu, const char *key, double value) {
    Tuned tuned = {g_intern_string(gpu), g_intern_string(key), value};
    for (guint i = 0; i < published->tuned->len; i++) {
        Tuned *old = &g_array_index(published->tuned, Tuned, i);
        if (old->gpu == tuned.gpu && old->key == tuned.key) {
            *old = tuned;
            return;
        }
    }
    g_array_append_val(published->tuned, tuned);
}

void cli_published_apply_tuning(const CliPublished *published, ModelCluster *cluster) {
    for (guint i = 0; i < published->tuned->len; i++) {
        const Tuned *tuned = &g_array_index(published->tuned, Tuned, i);
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        PlanIniEntry entry = {.key = tuned->key,
                              .value = g_ascii_dtostr(text, sizeof text, tuned->value)};
        if (g_str_has_prefix(cluster->model, tuned->gpu)) {
            bool good = model_cluster_set(cluster, tuned->key, published->rules->ini, &entry, NULL);
            g_assert(good);
        }
    }
}

bool cli_published_held_out(const CliCsvRow *row) {
    return row->hash % 3 == 0;
}
