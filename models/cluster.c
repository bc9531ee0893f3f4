#include "models/cluster-private.h"

#include <float.h>
#include <string.h>

#include "plan/files/file.h"
#include "plan/files/nearest.h"
#include "plan/plan.h"

#define REQUIRED (-DBL_MAX)
#define LEAST    1e-6 /* of any number that is not 0, in its unit: so that quotients stay finite */

typedef struct {
    const char *section, *key, *help;
    double min, max, fallback;
    gsize offset;
    bool whole;
} KeyRow;

static const KeyRow rows[] = {
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

static void set_number(ModelCluster *cluster, const KeyRow *row, double value, uint64_t whole) {
    if (row->whole) {
        G_STRUCT_MEMBER(uint64_t, cluster, row->offset) = whole;
    } else {
        G_STRUCT_MEMBER(double, cluster, row->offset) = value;
    }
}

static const KeyRow *find_row(const char *section, const char *key) {
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_equal(rows[i].section, section) && g_str_equal(rows[i].key, key)) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool read_number(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                        const KeyRow *row, GError **error) {
    uint64_t whole = 0;
    double value = 0;
    if (row->whole && !plan_parse_u64(entry->value, &whole)) {
        return plan_ini_refuse(ini, entry, error,
                               "'%s' is no whole number; give %s as digits, %.0f at least",
                               entry->value, entry->key, row->min);
    }
    if (!row->whole && !plan_parse_double(entry->value, &value)) {
        return plan_ini_refuse(ini, entry, error, "'%s' is no number; give %s as a decimal number",
                               entry->value, entry->key);
    }
    double judged = row->whole ? (double)whole : value;
    bool is_dust = judged > 0 && judged < LEAST; /* where 0 has a meaning of its own */
    if (is_dust || judged < row->min || judged > row->max) {
        int digits = row->whole ? 17 : 6; /* whole numbers are read without an exponent */
        return plan_ini_refuse(ini, entry, error,
                               "%s = %s is out of bounds; it is %s: give a number from %.*g to "
                               "%.*g and mind its unit",
                               entry->key, entry->value, row->help, digits, row->min, digits,
                               row->max);
    }
    set_number(cluster, row, value, whole);
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

void model_cluster_take_machine(ModelCluster *cluster, const ModelCluster *other) {
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!model_cluster_is_shared(rows[i].section) && rows[i].whole) {
            set_number(cluster, &rows[i], 0, G_STRUCT_MEMBER(uint64_t, other, rows[i].offset));
        } else if (!model_cluster_is_shared(rows[i].section)) {
            set_number(cluster, &rows[i], G_STRUCT_MEMBER(double, other, rows[i].offset), 0);
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
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_equal(rows[i].section, section)) {
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

static char *nearest_key(const char *section, const char *key) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    if (g_str_equal(section, "cluster")) { /* which has words alone */
        g_ptr_array_add(names, (gpointer) "title");
        g_ptr_array_add(names, (gpointer) "like");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_equal(rows[i].section, section)) {
            g_ptr_array_add(names, (gpointer)rows[i].key);
        }
    }
    return nearest_of(key, names);
}

static char *nearest_section(const char *section) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (i == 0 || !g_str_equal(rows[i].section, rows[i - 1].section)) {
            g_ptr_array_add(names, (gpointer)rows[i].section);
        }
    }
    g_ptr_array_add(names, (gpointer) "cluster");
    g_ptr_array_add(names, (gpointer) "kernels");
    g_ptr_array_add(names, (gpointer) "nodes NAME");
    return nearest_of(section, names);
}

static char *nearest_number(const char *name) {
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_ptr_array_add(names, g_strdup_printf("%s.%s", rows[i].section, rows[i].key));
    }
    return nearest_of(name, names);
}

/* "; it belongs into [device]", of a key that stands elsewhere; NULL: no section has it. */
static char *right_section(const char *key) {
    g_autoptr(GString) names = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_equal(rows[i].key, key)) {
            g_string_append_printf(names, "%s[%s]", names->len > 0 ? " or " : "", rows[i].section);
        }
    }
    return names->len > 0 ? g_strdup_printf("; it belongs into %s", names->str) : NULL;
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
    g_autofree char *right = right_section(entry->key);
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

/* A key that is missing is reported at the first line of its section, where it would be added. */
static bool refuse_missing(const PlanIni *ini, const KeyRow *row, GError **error) {
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
                  const KeyRow *row) {
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
            const KeyRow *row = find_row("intra_node", needed[i]);
            if (lacks(cluster, ini, is_like, row)) {
                return refuse_missing(ini, row, error);
            }
        }
    }
    if (cluster->topology_nodes > 1) {
        const char *needed[] = {"nic_gb_per_s", "step_latency_us"};
        for (unsigned i = 0; i < G_N_ELEMENTS(needed); i++) {
            const KeyRow *row = find_row("inter_node", needed[i]);
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
    for (gsize i = 0; i < G_N_ELEMENTS(rows) && !is_like; i++) {
        const PlanIniEntry *entry = plan_ini_find(ini, rows[i].section, rows[i].key);
        if (!entry && rows[i].fallback == REQUIRED) {
            return refuse_missing(ini, &rows[i], error);
        }
        if (!entry) {
            set_number(cluster, &rows[i], rows[i].fallback, (uint64_t)rows[i].fallback);
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
        if (find_row(entry->section, entry->key)) {
            g_autofree char *name = g_strconcat(entry->section, ".", entry->key, NULL);
            g_autofree char *number = model_cluster_number_text(name, entry->value);
            g_string_append_printf(title, "%s%s", before, number);
            before = ", ";
        }
    }
    g_free(cluster->title);
    cluster->title = g_strdup(title->str);
}

static ModelCluster *read_text(const char *text, gsize length, const char *file_name,
                               ModelClusterFind find, GError **error) {
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, file_name, error);
    if (!ini) {
        return NULL;
    }
    const PlanIniEntry *like_entry = plan_ini_find(ini, "cluster", "like");
    g_autoptr(ModelCluster) like =
        like_entry ? model_cluster_read_like(ini, like_entry, find, error) : NULL;
    if (like_entry && !like) {
        return NULL;
    }
    g_autoptr(ModelCluster) cluster = begin(text, length, file_name, like);
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        const KeyRow *row = find_row(entry->section, entry->key);
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
    return model_cluster_read_kinds(cluster, ini, find, error) ? g_steal_pointer(&cluster) : NULL;
}

ModelCluster *model_cluster_read(const char *text, gsize length, const char *file_name,
                                 GError **error) {
    return read_text(text, length, file_name, NULL, error);
}

ModelCluster *model_cluster_read_file_with(const char *path, ModelClusterFind find,
                                           GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    return text ? read_text(text, length, path, find, error) : NULL;
}

ModelCluster *model_cluster_read_file(const char *path, GError **error) {
    return model_cluster_read_file_with(path, NULL, error);
}

ModelCluster *model_cluster_copy(const ModelCluster *cluster) {
    ModelCluster *copy = g_memdup2(cluster, sizeof *cluster);
    copy->name = g_strdup(cluster->name);
    copy->title = g_strdup(cluster->title);
    copy->model = g_strdup(cluster->model);
    copy->digest = g_strdup(cluster->digest);
    copy->nccl_algo = g_strdup(cluster->nccl_algo);
    copy->nccl_proto = g_strdup(cluster->nccl_proto);
    copy->kinds = g_new0(ModelCluster *, cluster->n_kinds);
    for (uint32_t i = 0; i < cluster->n_kinds; i++) {
        copy->kinds[i] = model_cluster_copy(cluster->kinds[i]);
    }
    copy->kind_of_node =
        g_memdup2(cluster->kind_of_node,
                  cluster->kind_of_node ? cluster->topology_nodes * sizeof(uint32_t) : 0);
    return copy;
}

void model_cluster_force_nccl(ModelCluster *cluster, const char *algo, const char *proto) {
    g_free(cluster->nccl_algo);
    g_free(cluster->nccl_proto);
    cluster->nccl_algo = g_strdup(algo);
    cluster->nccl_proto = g_strdup(proto);
    for (uint32_t i = 0; i < cluster->n_kinds; i++) {
        model_cluster_force_nccl(cluster->kinds[i], algo, proto);
    }
}

/* "nic_gb_per_s": those sections' that have it; NULL: none has. */
static char *with_sections(const char *key) {
    g_autoptr(GString) names = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_equal(rows[i].key, key)) {
            g_string_append_printf(names, "%s%s.%s", names->len > 0 ? " or " : "", rows[i].section,
                                   rows[i].key);
        }
    }
    return names->len > 0 ? g_strdup_printf("; did you mean %s?", names->str) : NULL;
}

bool model_cluster_set(ModelCluster *cluster, const char *name, const PlanIni *ini,
                       const PlanIniEntry *entry, GError **error) {
    g_auto(GStrv) parts = g_strsplit(name, ".", 2);
    const KeyRow *row = parts[0] && parts[1] ? find_row(parts[0], parts[1]) : NULL;
    if (!row) {
        g_autofree char *of_sections = with_sections(name);
        g_autofree char *near = of_sections ? g_strdup(of_sections) : nearest_number(name);
        return plan_ini_refuse(ini, entry, error,
                               "a cluster has no number '%s' (SECTION.KEY as in its file)%s", name,
                               near);
    }
    return read_number(cluster, ini, entry, row, error);
}

void model_cluster_free(ModelCluster *cluster) {
    if (cluster) {
        g_free(cluster->name);
        g_free(cluster->title);
        g_free(cluster->model);
        g_free(cluster->digest);
        g_free(cluster->nccl_algo);
        g_free(cluster->nccl_proto);
        for (uint32_t i = 0; i < cluster->n_kinds; i++) {
            model_cluster_free(cluster->kinds[i]);
        }
        g_free(cluster->kinds);
        g_free(cluster->kind_of_node);
        g_free(cluster);
    }
}

double model_cluster_attention_efficiency(const ModelCluster *cluster, bool backward) {
    double own = cluster->device_attention_backward_efficiency;
    return backward && own > 0 ? own : cluster->device_attention_efficiency;
}

double model_cluster_reduction_efficiency(const ModelCluster *cluster) {
    double own = cluster->device_reduction_efficiency;
    return own > 0 ? own : cluster->device_memory_efficiency;
}

double model_cluster_bus_gb_per_s(const ModelCluster *cluster, bool adds) {
    double own = cluster->intra_node_reduce_bus_gb_per_s;
    return adds && own > 0 ? own : cluster->intra_node_bus_gb_per_s;
}

double model_cluster_core_gb_per_s(const ModelCluster *cluster, bool adds) {
    double own = cluster->collectives_reduce_core_gb_per_s;
    return adds && own > 0 ? own : cluster->collectives_core_gb_per_s;
}

uint64_t model_cluster_ranks(const ModelCluster *cluster) {
    return cluster->topology_nodes * cluster->topology_gpus_per_node;
}

double model_cluster_peak_flops(const ModelCluster *cluster, PlanDtype dtype) {
    switch (dtype) {
    case PLAN_FP32:
        return cluster->device_matmul_fp32_tflops * 1e12;
    case PLAN_BF16:
        return cluster->device_matmul_bf16_tflops * 1e12;
    case PLAN_FP16:
        return cluster->device_matmul_fp16_tflops * 1e12;
    case PLAN_E4M3:
    case PLAN_E5M2: /* CPU ranks widen them, as they do 16 bits */
        return (cluster->device_matmul_fp8_tflops > 0 || cluster->device_kind == MODEL_DEVICE_GPU
                    ? cluster->device_matmul_fp8_tflops
                    : cluster->device_matmul_bf16_tflops) *
               1e12;
    case PLAN_FP64:
    case PLAN_INT64:
    case PLAN_INT32:
    case PLAN_UINT8:
    case PLAN_N_DTYPES:
        break;
    }
    return 0;
}

uint64_t model_cluster_allocator_bytes(const ModelCluster *cluster) {
    return cluster->device_memory_bytes - cluster->device_outside_allocator_bytes;
}

/* PyTorch 2.0 to 2.13, aten/src/ATen/cuda/CublasHandlePool.cpp: a workspace for each cuBLAS handle
 * and stream, of 4096 KiB twice and 16 KiB eight times, or since Hopper of 4096 KiB eight times.
 * Forward's thread and backward's have a handle each; both compute on one stream. */
uint64_t model_cluster_workspace_bytes(const ModelCluster *cluster) {
    const uint64_t kib = 1024, handles = 2;
    if (cluster->device_compute_capability == 0) {
        return 0;
    }
    return handles *
           (cluster->device_compute_capability < 90 ? (2 * 4096 + 8 * 16) * kib : 8 * 4096 * kib);
}
