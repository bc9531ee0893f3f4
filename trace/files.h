/* trace/files.h - files and temporary folders of plan/files/, with errors of this room's domain. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* As plan_file_write(); TRACE_ERROR_FILE when it cannot. */
bool trace_write_bytes(const char *path, const char *bytes, gsize length, GError **error);
/* As plan_leftover_folder(); TRACE_ERROR_FILE when none can be made. Transfer full. */
char *trace_folder_new(const char *name, GError **error);
/* As plan_leftover_remove_folder(). */
void trace_folder_remove(const char *folder);
