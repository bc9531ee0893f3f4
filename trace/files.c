#include "trace/files.h"

#include "plan/files/file.h"
#include "plan/files/leftovers.h"
#include "trace/trace.h"

bool trace_write_bytes(const char *path, const char *bytes, gsize length, GError **error) {
    int failed = plan_file_write(path, bytes, length);
    if (failed) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be written: %s", path,
                    g_strerror(failed));
    }
    return !failed;
}

char *trace_folder_new(const char *name, GError **error) {
    g_autoptr(GError) cause = NULL;
    char *folder = plan_leftover_folder(name, &cause);
    if (folder == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s", cause->message);
    }
    return folder;
}

void trace_folder_remove(const char *folder) {
    plan_leftover_remove_folder(folder);
}
