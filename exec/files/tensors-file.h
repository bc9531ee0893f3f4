/* exec/files/tensors-file.h - a safetensors file that is read: eight bytes of a length, that many
 * of JSON (name, dtype, shape and place of each tensor), then the tensors, row-major and
 * little-endian.
 *
 * Owns: the mapped file. Threads: any number may read.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _ExecTensorsFile ExecTensorsFile;

enum {
    EXEC_TENSOR_SIDES = 8
};

typedef struct {
    const char *dtype; /* as the file has it: F32, I64, ... */
    uint64_t shape[EXEC_TENSOR_SIDES];
    unsigned n_dims;
    const char *data; /* in the mapped file */
    uint64_t bytes;
} ExecTensor;

ExecTensorsFile *exec_tensors_open(const char *path, GError **error);
void exec_tensors_free(ExecTensorsFile *file); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecTensorsFile, exec_tensors_free)

/* Fails where it is not there, or not wholly. */
bool exec_tensors_find(const ExecTensorsFile *file, const char *name, ExecTensor *ret_tensor,
                       GError **error);
/* In the file's order; transfer container. */
GList *exec_tensors_names(const ExecTensorsFile *file);
/* An error that names the file; returns false. */
bool exec_tensors_refuse(const ExecTensorsFile *file, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
