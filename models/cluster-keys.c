/* models/cluster-keys.c - the keys of a cluster's file: the table that cluster-keys.def makes, and
 * what a key or section was meant to be that does not stand there. */
#include <string.h>

#include "models/cluster-private.h"
#include "plan/files/nearest.h"

#define REQUIRED MODEL_CLUSTER_REQUIRED
const ModelClusterKey model_cluster_keys[] = {
#define COUNT(section, key, min, max, fallback, help)                                              \
    {#section, #key, help, min, max, fallback, G_STRUCT_OFFSET(ModelCluster, section##_##key),     \
     true},
#define REAL(section, key, min, max, fallback, help)                                               \
    {#section, #key, help, min, max, fallback, G_STRUCT_OFFSET(ModelCluster, section##_##key),     \
     false},
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
};

const gsize model_cluster_n_keys = G_N_ELEMENTS(model_cluster_keys);

void model_cluster_set_number(ModelCluster *cluster, const ModelClusterKey *row, double value,
                              uint64_t whole) {
    if (row->whole) {
        G_STRUCT_MEMBER(uint64_t, cluster, row->offset) = whole;
    } else {
        G_STRUCT_MEMBER(double, cluster, row->offset) = value;
    }
}

const ModelClusterKey *model_cluster_find_key(const char *section, const char *key) {
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (g_str_equal(model_cluster_keys[i].section, section) &&
            g_str_equal(model_cluster_keys[i].key, key)) {
            return &model_cluster_keys[i];
        }
    }
    return NULL;
}

bool model_cluster_is_kind(const char *section) {
    return g_str_has_prefix(section, MODEL_CLUSTER_KIND);
}

bool model_cluster_is_shared(const char *section) {
    return g_str_equal(section, "topology") || g_str_equal(section, "inter_node") ||
           g_str_equal(section, "collectives");
}

void model_cluster_take_machine(ModelCluster *cluster, const ModelCluster *other) {
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        const ModelClusterKey *row = &model_cluster_keys[i];
        if (!model_cluster_is_shared(row->section) && row->whole) {
            model_cluster_set_number(cluster, row, 0,
                                     G_STRUCT_MEMBER(uint64_t, other, row->offset));
        } else if (!model_cluster_is_shared(row->section)) {
            model_cluster_set_number(cluster, row, G_STRUCT_MEMBER(double, other, row->offset), 0);
        }
    }
    memcpy(cluster->kernel_gb_per_s, other->kernel_gb_per_s, sizeof cluster->kernel_gb_per_s);
    memcpy(cluster->nvlinks, other->nvlinks, sizeof cluster->nvlinks);
    cluster->has_nvlinks = other->has_nvlinks;
    cluster->device_kind = other->device_kind;
    g_free(cluster->model);
    cluster->model = g_strdup(other->model);
}

static bool has_section(const char *section) {
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (g_str_equal(model_cluster_keys[i].section, section)) {
            return true;
        }
    }
    return g_str_equal(section, "cluster");
}

enum {
    MOST_LISTED = 24 /* names in one message */
};

/* What a name was meant to be, or what it can be. */
static char *nearest_of(const char *name, GPtrArray *names) {
    bool is_short = names->len <= MOST_LISTED;
    g_ptr_array_add(names, NULL);
    g_autofree char *near = plan_did_you_mean(name, (const char *const *)names->pdata);
    g_autofree char *all = g_strjoinv(", ", (char **)names->pdata);
    return *near != '\0' ? g_steal_pointer(&near)
           : is_short    ? g_strconcat("; it is one of ", all, NULL)
                         : g_strdup("; foreshard list dgx-h100 prints such a file");
}

/* What others call the memory of a GPU is near to its rate, which has other units. */
static char *size_of_memory(const char *key) {
    static const char *const words[] = {"memory", "memory_gb", "memory_gib",
                                        "vram",   "vram_gb",   NULL};
    return g_strv_contains(words, key) ? g_strdup("; did you mean device.memory_bytes?") : NULL;
}

static char *nearest_key(const char *section, const char *key) {
    char *size = size_of_memory(key);
    if (size != NULL) {
        return size;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    if (g_str_equal(section, "cluster")) { /* which has words alone */
        g_ptr_array_add(names, (gpointer) "title");
        g_ptr_array_add(names, (gpointer) "like");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (g_str_equal(model_cluster_keys[i].section, section)) {
            g_ptr_array_add(names, (gpointer)model_cluster_keys[i].key);
        }
    }
    return nearest_of(key, names);
}

static char *nearest_section(const char *section) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (i == 0 ||
            !g_str_equal(model_cluster_keys[i].section, model_cluster_keys[i - 1].section)) {
            g_ptr_array_add(names, (gpointer)model_cluster_keys[i].section);
        }
    }
    g_ptr_array_add(names, (gpointer) "cluster");
    g_ptr_array_add(names, (gpointer) "kernels");
    g_ptr_array_add(names, (gpointer) "nodes NAME");
    return nearest_of(section, names);
}

static char *nearest_number(const char *name) {
    const char *dot = strrchr(name, '.');
    char *size = size_of_memory(dot != NULL ? dot + 1 : name);
    if (size != NULL) {
        return size;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        g_ptr_array_add(names, g_strdup_printf("%s.%s", model_cluster_keys[i].section,
                                               model_cluster_keys[i].key));
    }
    return nearest_of(name, names);
}

/* "; it belongs into [device]", of a key that stands elsewhere; NULL: no section has it. */
static char *right_section(const char *key) {
    bool is_word = g_str_equal(key, "like") || g_str_equal(key, "title");
    g_autoptr(GString) names = g_string_new(is_word ? "[cluster]" : NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (g_str_equal(model_cluster_keys[i].key, key)) {
            g_string_append_printf(names, "%s[%s]", names->len > 0 ? " or " : "",
                                   model_cluster_keys[i].section);
        }
    }
    return names->len > 0 ? g_strdup_printf("; it belongs into %s", names->str) : NULL;
}

/* "nic_gb_per_s": those sections' that have it; NULL: none has. */
static char *with_sections(const char *key) {
    g_autoptr(GString) names = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(model_cluster_keys); i++) {
        if (g_str_equal(model_cluster_keys[i].key, key)) {
            g_string_append_printf(names, "%s%s.%s", names->len > 0 ? " or " : "",
                                   model_cluster_keys[i].section, model_cluster_keys[i].key);
        }
    }
    return names->len > 0 ? g_strdup_printf("; did you mean %s?", names->str) : NULL;
}

bool model_cluster_refuse_key(const PlanIni *ini, const PlanIniEntry *entry, GError **error) {
    g_autofree char *right = right_section(entry->key);
    if (*entry->section == '\0') {
        return plan_ini_refuse(ini, entry, error, "'%s' stands before the first [section]%s",
                               entry->key, right ? right : "");
    }
    if (!has_section(entry->section)) {
        g_autofree char *near = right ? g_strdup(right) : nearest_section(entry->section);
        return plan_ini_refuse(ini, entry, error,
                               "'%s' stands in [%s], and a cluster's file has no such section%s",
                               entry->key, entry->section, near);
    }
    g_autofree char *near = right ? g_strdup(right) : nearest_key(entry->section, entry->key);
    return plan_ini_refuse(ini, entry, error, "unknown key '%s' in [%s]%s", entry->key,
                           entry->section, near);
}

bool model_cluster_refuse_number(const char *name, const PlanIni *ini, const PlanIniEntry *entry,
                                 GError **error) {
    g_autofree char *of_sections = with_sections(name);
    g_autofree char *near = of_sections ? g_strdup(of_sections) : nearest_number(name);
    return plan_ini_refuse(ini, entry, error,
                           "a cluster has no number '%s' (SECTION.KEY as in its file)%s", name,
                           near);
}
