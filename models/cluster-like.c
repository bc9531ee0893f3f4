/* models/cluster-like.c - a cluster's file that says what differs from another: the key `like`.
 *
 * The other may be like a third, and so on; none is like itself.
 */
#include <string.h>

#include "models/cluster-private.h"
#include "plan/files/file.h"

static bool is_same_file(const char *a, const char *b) {
    g_autofree char *one = g_canonicalize_filename(a, NULL);
    g_autofree char *other = g_canonicalize_filename(b, NULL);
    return g_str_equal(one, other);
}

/* NULL: no file of this name lies beside. A bare name, which lacks the ending, is none's own: a
 * copy of dgx-h100.ini may be like dgx-h100. */
static char *path_beside(const PlanIni *ini, const char *name) {
    g_autofree char *folder = g_path_get_dirname(ini->file_name);
    g_autofree char *path =
        g_path_is_absolute(name) ? g_strdup(name) : g_build_filename(folder, name, NULL);
    if (g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        return g_steal_pointer(&path);
    }
    g_autofree char *with_ending = g_strconcat(path, ".ini", NULL);
    bool is_there = g_file_test(with_ending, G_FILE_TEST_IS_REGULAR) &&
                    !is_same_file(with_ending, ini->file_name);
    return is_there ? g_steal_pointer(&with_ending) : NULL;
}

static char *path_of_like(const PlanIni *ini, const PlanIniEntry *entry, ModelClusterFind find,
                          GError **error) {
    g_autofree char *beside = path_beside(ini, entry->value);
    bool is_name = find && !strchr(entry->value, G_DIR_SEPARATOR);
    if (beside) {
        return g_steal_pointer(&beside);
    }
    if (!is_name) {
        plan_ini_refuse(ini, entry, error,
                        "like = %s: no such file lies beside this one; name a cluster, or its file "
                        "if it lies there",
                        entry->value);
        return NULL;
    }
    g_autoptr(GError) reason = NULL;
    char *named = find(entry->value, &reason);
    if (!named) {
        plan_ini_refuse(ini, entry, error, "like = %s: no such file lies beside this one, and %s",
                        entry->value, reason->message);
    }
    return named;
}

/* "a.ini, b.ini": the files that are being read, the first that is like another first. */
static char *names_of(const ModelClusterReading *reading) {
    g_autofree char *ahead = reading->asked_by ? names_of(reading->asked_by) : NULL;
    g_autofree char *base = g_path_get_basename(reading->path);
    return ahead ? g_strconcat(ahead, ", ", base, NULL) : g_steal_pointer(&base);
}

static bool check_circle(const PlanIni *ini, const PlanIniEntry *entry,
                         const ModelClusterReading *reading, const char *path, GError **error) {
    for (const ModelClusterReading *r = reading; r; r = r->asked_by) {
        if (is_same_file(r->path, path)) {
            g_autofree char *names = names_of(reading);
            g_autofree char *base = g_path_get_basename(path);
            return plan_ini_refuse(ini, entry, error,
                                   "like = %s goes in a circle (%s, %s again); let one of them be "
                                   "like no other",
                                   entry->value, names, base);
        }
    }
    return true;
}

static bool has_kinds(const PlanIni *ini) {
    for (unsigned i = 0; i < ini->n_entries; i++) {
        if (model_cluster_is_kind(ini->entries[i].section)) {
            return true;
        }
    }
    return false;
}

char *model_cluster_text_of_like(const PlanIni *ini, const PlanIniEntry *entry,
                                 const ModelClusterReading *reading, char **ret_path,
                                 gsize *ret_length, GError **error) {
    g_autofree char *path = path_of_like(ini, entry, reading->find, error);
    if (!path || !check_circle(ini, entry, reading, path, error)) {
        return NULL;
    }
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = plan_file_text(path, ret_length, &reason);
    if (!text) {
        plan_ini_refuse(ini, entry, error, "like = %s: %s", entry->value, reason->message);
        return NULL;
    }
    g_autoptr(PlanIni) other = plan_ini_read(text, *ret_length, path, error);
    if (other && has_kinds(other)) {
        plan_ini_refuse(ini, entry, error,
                        "like = %s has nodes of several kinds itself; name a file that has none",
                        entry->value);
        return NULL;
    }
    *ret_path = other ? g_steal_pointer(&path) : NULL;
    return other ? g_steal_pointer(&text) : NULL;
}

ModelCluster *model_cluster_read_like(const PlanIni *ini, const PlanIniEntry *entry,
                                      const ModelClusterReading *reading, GError **error) {
    g_autofree char *path = NULL;
    gsize length;
    g_autofree char *text = model_cluster_text_of_like(ini, entry, reading, &path, &length, error);
    const ModelClusterReading other = {.path = path, .find = reading->find, .asked_by = reading};
    return text ? model_cluster_read_text(text, length, &other, error) : NULL;
}

void model_cluster_digest_too(ModelCluster *cluster, const ModelCluster *like) {
    g_autofree char *both = g_strconcat(cluster->digest, like->digest, NULL);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, both, -1);
    g_free(cluster->digest);
    cluster->digest = g_strconcat("sha256:", sum, NULL);
}
