/* trace/import/file.h - a file of a real PyTorch run, and which kind it is by its first bytes.
 *
 * What gzip packed is unpacked first, whatever the file is called.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    IMPORT_OTHER,    /* a trace of ours, or whatever else */
    IMPORT_SNAPSHOT, /* a pickle: torch.cuda.memory._dump_snapshot() */
    IMPORT_PROFILE,  /* JSON: torch.profiler's export_chrome_trace() */
    IMPORT_GZIP,     /* one of the two, or another, within */
    IMPORT_ZIP       /* torch.save() writes such; nothing here reads it */
} ImportKind;

ImportKind import_kind(const char *bytes, gsize length);
/* Of a file's first bytes; IMPORT_OTHER too for what cannot be read. */
ImportKind import_kind_of_file(const char *path);
/* Unpacked. Transfer full: g_free(). */
char *import_read(const char *path, gsize *ret_length, GError **error);
