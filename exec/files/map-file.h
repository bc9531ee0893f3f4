/* exec/files/map-file.h - a file of the user's as memory, and why it cannot be. */
#pragma once

#include <glib.h>

/* NULL with EXEC_ERROR_INPUT, which names the file. Transfer full: g_mapped_file_unref(). */
GMappedFile *exec_map_file(const char *path, GError **error);
