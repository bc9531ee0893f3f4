#include "plan/files/stream.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Linux, Documentation/admin-guide/devices.txt: "1 char", /dev/null and its kin */
enum {
    MEMORY_DEVICES = 1,
    NULL_DEVICE = 3
};

static GMutex mutex;     /* of what was read */
static GHashTable *kept; /* path: GBytes */

const char *plan_stream_path(const char *path) {
    return g_str_equal(path, "-") ? "/dev/stdin" : path;
}

const char *plan_stream_name(const char *path) {
    return g_str_equal(path, "-") ? "standard input" : path;
}

bool plan_stream_is(const char *path) {
    GStatBuf there;
    if (g_stat(plan_stream_path(path), &there) != 0) {
        return false;
    }
    bool is_terminal = S_ISCHR(there.st_mode) && major(there.st_rdev) != MEMORY_DEVICES;
    return is_terminal || S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode);
}

bool plan_stream_never_ends(const char *path) {
    GStatBuf there;
    return g_stat(plan_stream_path(path), &there) == 0 && S_ISCHR(there.st_mode) &&
           major(there.st_rdev) == MEMORY_DEVICES && minor(there.st_rdev) != NULL_DEVICE;
}

static GBytes *read_whole(const char *path, GError **error) {
    char *text;
    gsize length;
    return g_file_get_contents(path, &text, &length, error) ? g_bytes_new_take(text, length) : NULL;
}

GBytes *plan_stream_read(const char *path, GError **error) {
    path = plan_stream_path(path);
    g_mutex_lock(&mutex);
    if (!kept) {
        kept = g_hash_table_new(g_str_hash, g_str_equal);
    }
    GBytes *bytes = g_hash_table_lookup(kept, path);
    if (!bytes && (bytes = read_whole(path, error)) != NULL) {
        g_hash_table_insert(kept, g_strdup(path), bytes);
    }
    g_mutex_unlock(&mutex);
    return bytes ? g_bytes_ref(bytes) : NULL;
}
