/* models/cluster-read.c - a cluster's file, key by key, and whether its numbers go together. */
#include <string.h>

#include "models/cluster-private.h"
#include "plan/files/file.h"
#include "plan/plan.h"

/* Of any number that is not 0, in its unit: so that quotients stay finite. */
#define LEAST 1e-6

static bool read_number(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                        const ModelClusterKey *row, GError **error) {
    uint64_t whole = 0;
    double value = 0;
    if (row->whole && !plan_parse_u64(entry->value, &whole)) {
        g_autofree char *written_out = plan_written_out(entry->value, row->min, row->max);
        return plan_ini_refuse(ini, entry, error,
                               "'%s' is no whole number; give %s as digits, %.0f at least%s",
                               entry->value, entry->key, row->min, written_out);
    }
    if (!row->whole && !plan_parse_double(entry->value, &value)) {
        return plan_ini_refuse(ini, entry, error, "'%s' is no number; give %s as a decimal number",
                               entry->value, entry->key);
    }
    double judged = row->whole ? (double)whole : value;
    bool is_dust = judged > 0 && judged < LEAST; /* where 0 has a meaning of its own */
    if (is_dust || judged < row->min || judged > row->max) {
        int digits = row->whole ? 17 : 6; /* whole numbers are read without an exponent */
        return plan_ini_refuse(
            ini, entry, error, "%s = %s is out of bounds; give %sa %s from %.*g to %.*g (%s)%s",
            entry->key, entry->value, is_dust ? "0, or " : "",
            row->whole ? "whole number" : "number", digits, is_dust ? LEAST : row->min, digits,
            row->max, row->help, row->whole ? "" : ", and mind its unit");
    }
    model_cluster_set_number(cluster, row, value, whole);
    return true;
}

/* [kernels] has op kinds for keys. */
static bool read_kernel(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                        GError **error) {
    PlanOpKind kind;
    double rate;
    if (!plan_op_kind_parse(entry->key, &kind)) {
        return plan_ini_refuse(
            ini, entry, error,
            "there is no op '%s'; the keys of [kernels] are ops of plan/op/ops.def", entry->key);
    }
    if (!plan_parse_double(entry->value, &rate) || rate < 1e-6 || rate > 1e6) {
        return plan_ini_refuse(ini, entry, error,
                               "%s = %s is no rate; give GB/s, a number from 1e-6 to 1e6",
                               entry->key, entry->value);
    }
    cluster->kernel_gb_per_s[kind] = rate;
    return true;
}

/* A word that is not in the table: the file's own description of itself. */
static bool read_word(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                      GError **error) {
    if (g_str_equal(entry->section, "kernels")) {
        return read_kernel(cluster, ini, entry, error);
    }
    if (g_str_equal(entry->section, "intra_node") && g_str_equal(entry->key, "nvlinks")) {
        return model_cluster_read_links(cluster, ini, entry, error);
    }
    if (g_str_equal(entry->section, "cluster") && g_str_equal(entry->key, "title")) {
        g_free(cluster->title);
        cluster->title = g_strdup(entry->value);
        return true;
    }
    if (g_str_equal(entry->section, "device") && g_str_equal(entry->key, "model")) {
        g_free(cluster->model);
        cluster->model = g_strdup(entry->value);
        return true;
    }
    if (g_str_equal(entry->section, "device") && g_str_equal(entry->key, "kind")) {
        if (!g_str_equal(entry->value, "gpu") && !g_str_equal(entry->value, "cpu")) {
            return plan_ini_refuse(ini, entry, error, "kind = %s is unknown; give gpu or cpu",
                                   entry->value);
        }
        cluster->device_kind =
            g_str_equal(entry->value, "gpu") ? MODEL_DEVICE_GPU : MODEL_DEVICE_CPU;
        return true;
    }
    return model_cluster_refuse_key(ini, entry, error);
}

/* A key that is missing is reported at the first line of its section, where it would be added. */
static bool refuse_missing(const PlanIni *ini, const ModelClusterKey *row, GError **error) {
    return plan_ini_refuse(ini, plan_ini_first(ini, row->section), error,
                           "section [%s] lacks the key %s (%s); add it", row->section, row->key,
                           row->help);
}

static bool check_memory(const ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                         GError **error) {
    if (cluster->device_outside_allocator_bytes >= cluster->device_memory_bytes) {
        return plan_ini_refuse(
            ini, entry, error,
            "outside_allocator_bytes = %" G_GUINT64_FORMAT " leaves nothing of memory_bytes = "
            "%" G_GUINT64_FORMAT "; give both in bytes (80 GB are 80000000000), the former less",
            (guint64)cluster->device_outside_allocator_bytes,
            (guint64)cluster->device_memory_bytes);
    }
    return true;
}

static bool check_nccl(const ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                       GError **error) {
    const uint64_t oldest = 70; /* Volta: NCCL's tables and rates of ours begin there */
    uint64_t capability = cluster->device_compute_capability;
    if (capability > 0 && capability < oldest) {
        const PlanIniEntry *own = plan_ini_find(ini, "device", "compute_capability");
        return plan_ini_refuse(ini, own ? own : entry, error,
                               "compute_capability %" G_GUINT64_FORMAT " is of GPUs before Volta, "
                               "which are not known; PyTorch's 7.0 is written 70, 9.0 is 90",
                               (guint64)capability);
    }
    bool has_rings =
        cluster->intra_node_nccl_channels > 0 && cluster->intra_node_nccl_channel_gb_per_s > 0;
    if (cluster->device_compute_capability > 0 && !has_rings) {
        return plan_ini_refuse(ini, entry, error,
                               "with compute_capability, nccl_channels and nccl_channel_gb_per_s "
                               "of [intra_node] are more than 0; give both, or no "
                               "compute_capability");
    }
    return true;
}

/* The last entry that sets one of them ("section.key", whatever stands before it), or the last of
 * all where none does: something else then gave the number, a file that is like another say. */
static const PlanIniEntry *last_that_sets(const GPtrArray *entries, const char *const *names) {
    const PlanIniEntry *last = NULL;
    for (guint i = 0; i < entries->len; i++) {
        const PlanIniEntry *entry = entries->pdata[i];
        for (unsigned k = 0; names[k]; k++) {
            bool later = !last || entry->line > last->line;
            last = later && g_str_has_suffix(entry->key, names[k]) ? entry : last;
        }
    }
    return last || !entries->len ? last : entries->pdata[entries->len - 1];
}

bool model_cluster_check_set(const ModelCluster *cluster, const PlanIni *ini,
                             const GPtrArray *entries, GError **error) {
    static const char *const memory[] = {"device.memory_bytes", "device.outside_allocator_bytes",
                                         NULL};
    static const char *const rings[] = {"device.compute_capability", "intra_node.nccl_channels",
                                        "intra_node.nccl_channel_gb_per_s", NULL};
    static const char *const links[] = {"intra_node.nvls_heads", "intra_node.pcie_gb_per_s", "like",
                                        NULL};
    return check_memory(cluster, ini, last_that_sets(entries, memory), error) &&
           check_nccl(cluster, ini, last_that_sets(entries, rings), error) &&
           model_cluster_check_links(cluster, ini, last_that_sets(entries, links), error);
}

/* A file that is like another lacks what that has not either: 0, where 0 is out of bounds. */
static bool lacks(const ModelCluster *cluster, const PlanIni *ini, bool is_like,
                  const ModelClusterKey *row) {
    if (!is_like) {
        return !plan_ini_find(ini, row->section, row->key);
    }
    return row->min > 0 && !row->whole && G_STRUCT_MEMBER(double, cluster, row->offset) <= 0;
}

static bool check_whole(const ModelCluster *cluster, const PlanIni *ini, bool is_like,
                        GError **error) {
    if (!is_like && !plan_ini_find(ini, "device", "kind")) {
        return plan_ini_refuse(ini, plan_ini_first(ini, "device"), error,
                               "section [device] lacks the key kind; add kind = gpu or cpu");
    }
    const PlanIniEntry *outside = plan_ini_find(ini, "device", "outside_allocator_bytes");
    const PlanIniEntry *memory = plan_ini_find(ini, "device", "memory_bytes");
    if (!check_memory(cluster, ini, is_like && memory ? memory : outside, error)) {
        return false;
    }
    if (cluster->device_compute_capability > 0) {
        const char *needed[] = {"nccl_channels", "nccl_channel_gb_per_s"};
        for (unsigned i = 0; i < G_N_ELEMENTS(needed); i++) {
            const ModelClusterKey *row = model_cluster_find_key("intra_node", needed[i]);
            if (lacks(cluster, ini, is_like, row)) {
                return refuse_missing(ini, row, error);
            }
        }
    }
    if (cluster->topology_nodes > 1) {
        const char *needed[] = {"nic_gb_per_s", "step_latency_us"};
        for (unsigned i = 0; i < G_N_ELEMENTS(needed); i++) {
            const ModelClusterKey *row = model_cluster_find_key("inter_node", needed[i]);
            if (lacks(cluster, ini, is_like, row)) {
                return refuse_missing(ini, row, error);
            }
        }
    }
    const char *rings =
        cluster->intra_node_nccl_channels > 0 ? "nccl_channel_gb_per_s" : "nccl_channels";
    return check_nccl(cluster, ini, plan_ini_find(ini, "intra_node", rings), error) &&
           model_cluster_check_links(cluster, ini, plan_ini_find(ini, "intra_node", "nvlinks"),
                                     error);
}

static bool read_rest(ModelCluster *cluster, const PlanIni *ini, bool is_like, GError **error) {
    for (gsize i = 0; i < model_cluster_n_keys && !is_like; i++) {
        const ModelClusterKey *row = &model_cluster_keys[i];
        const PlanIniEntry *entry = plan_ini_find(ini, row->section, row->key);
        if (!entry && row->fallback == MODEL_CLUSTER_REQUIRED) {
            return refuse_missing(ini, row, error);
        }
        if (!entry) {
            model_cluster_set_number(cluster, row, row->fallback, (uint64_t)row->fallback);
        }
    }
    return check_whole(cluster, ini, is_like, error);
}

/* What there is before the file's keys: nothing, or all of the cluster that it is like. */
static ModelCluster *begin(const char *text, gsize length, const char *file_name,
                           const ModelCluster *like) {
    ModelCluster *cluster = like ? model_cluster_copy(like) : g_new0(ModelCluster, 1);
    g_autofree char *base = g_path_get_basename(file_name);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, (gssize)length);
    char *dot = strrchr(base, '.');
    g_free(cluster->name);
    g_free(cluster->digest);
    cluster->name = dot && dot > base ? g_strndup(base, (gsize)(dot - base)) : g_strdup(base);
    cluster->digest = g_strconcat("sha256:", sum, NULL);
    if (like) {
        model_cluster_digest_too(cluster, like);
    } else {
        cluster->title = g_strdup(cluster->name);
        cluster->model = g_strdup("");
    }
    return cluster;
}

char *model_cluster_number_text(const char *name, const char *value) {
    double rate;
    bool is_rate = g_str_equal(name, "inter_node.nic_gb_per_s") && plan_parse_double(value, &rate);
    return is_rate ? g_strdup_printf("%s=%s (%g Gb/s a GPU)", name, value, 8 * rate)
                   : g_strdup_printf("%s=%s", name, value);
}

/* The title of a file that is like another and has none: the other's, and what is not so here. */
static void say_what_differs(ModelCluster *cluster, const PlanIni *ini) {
    g_autoptr(GString) title = g_string_new(cluster->title);
    const char *before = "; here with ";
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        if (model_cluster_find_key(entry->section, entry->key)) {
            g_autofree char *name = g_strconcat(entry->section, ".", entry->key, NULL);
            g_autofree char *number = model_cluster_number_text(name, entry->value);
            g_string_append_printf(title, "%s%s", before, number);
            before = ", ";
        }
    }
    g_free(cluster->title);
    cluster->title = g_strdup(title->str);
}

ModelCluster *model_cluster_read_text(const char *text, gsize length,
                                      const ModelClusterReading *reading, GError **error) {
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, reading->path, error);
    if (!ini) {
        return NULL;
    }
    const PlanIniEntry *like_entry = plan_ini_find(ini, "cluster", "like");
    g_autoptr(ModelCluster) like =
        like_entry ? model_cluster_read_like(ini, like_entry, reading, error) : NULL;
    if (like_entry && !like) {
        return NULL;
    }
    g_autoptr(ModelCluster) cluster = begin(text, length, reading->path, like);
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        const ModelClusterKey *row = model_cluster_find_key(entry->section, entry->key);
        if (model_cluster_is_kind(entry->section) || entry == like_entry) {
            continue;
        }
        if (row ? !read_number(cluster, ini, entry, row, error)
                : !read_word(cluster, ini, entry, error)) {
            return NULL;
        }
    }
    if (!read_rest(cluster, ini, like != NULL, error)) {
        return NULL;
    }
    if (like && !plan_ini_find(ini, "cluster", "title")) {
        say_what_differs(cluster, ini);
    }
    return model_cluster_read_kinds(cluster, ini, reading, error) ? g_steal_pointer(&cluster)
                                                                  : NULL;
}

ModelCluster *model_cluster_read(const char *text, gsize length, const char *file_name,
                                 GError **error) {
    const ModelClusterReading reading = {.path = file_name};
    return model_cluster_read_text(text, length, &reading, error);
}

ModelCluster *model_cluster_read_file_with(const char *path, ModelClusterFind find,
                                           GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    const ModelClusterReading reading = {.path = path, .find = find};
    return text ? model_cluster_read_text(text, length, &reading, error) : NULL;
}

ModelCluster *model_cluster_read_file(const char *path, GError **error) {
    return model_cluster_read_file_with(path, NULL, error);
}

static const ModelClusterKey *key_of(const char *name) {
    g_auto(GStrv) parts = g_strsplit(name, ".", 2);
    return parts[0] && parts[1] ? model_cluster_find_key(parts[0], parts[1]) : NULL;
}

bool model_cluster_number(const ModelCluster *cluster, const char *name, double *ret_number,
                          bool *ret_is_whole) {
    const ModelClusterKey *row = key_of(name);
    if (row) {
        *ret_number = row->whole ? (double)G_STRUCT_MEMBER(uint64_t, cluster, row->offset)
                                 : G_STRUCT_MEMBER(double, cluster, row->offset);
        *ret_is_whole = row->whole;
    }
    return row != NULL;
}

bool model_cluster_set(ModelCluster *cluster, const char *name, const PlanIni *ini,
                       const PlanIniEntry *entry, GError **error) {
    const ModelClusterKey *row = key_of(name);
    return row ? read_number(cluster, ini, entry, row, error)
               : model_cluster_refuse_number(name, ini, entry, error);
}
