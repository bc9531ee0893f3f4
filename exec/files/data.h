/* exec/files/data.h - training data: tokens of a file or synthetic ones, vectors to be fitted.
 *
 * Sample s is the same whoever asks for it: samples are dealt out by their number in the global
 * batch, so a global batch is the same on any number of ranks.
 *
 * A file's sample s of n tokens is its tokens s n to s n + n, the last of them only as a target;
 * after the last whole sample the first follows again. Synthetic tokens follow a fixed rule (the
 * next is a function of the last) except for one in eight, which is random; a network that learns
 * the rule loses most of its loss. There are EXEC_DATA_SAMPLES distinct synthetic samples.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec/files/tensors-file.h"

enum {
    EXEC_DATA_SAMPLES = 64
};

typedef struct _ExecData ExecData;

/* A token is one byte of the file, or two (little-endian). */
ExecData *exec_data_open(const char *path, unsigned token_bytes, GError **error);
/* The same for a traced network, whose data are a safetensors file (inputs.h). */
ExecData *exec_data_open_tensors(const char *path, GError **error);
void exec_data_free(ExecData *data); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecData, exec_data_free)

/* False with error: samples of n tokens below vocab (0: of vectors) cannot come from this file. */
bool exec_data_fits(const ExecData *data, uint64_t n, int64_t vocab, GError **error);

const ExecTensorsFile *exec_data_tensors(const ExecData *data); /* NULL: it has tokens */

/* The first n tokens of a sample, and, in y, each one's successor. */
bool exec_data_file_tokens(const ExecData *data, int64_t *x, int64_t *y, uint64_t n, int64_t vocab,
                           uint64_t sample, GError **error);
void exec_data_tokens(int64_t *x, int64_t *y, uint64_t n, int64_t vocab, uint64_t seed,
                      uint64_t sample);
/* Uniform below the bound. */
void exec_data_numbers(int64_t *x, uint64_t n, int64_t bound, uint64_t seed, uint64_t sample);
void exec_data_vector(float *x, uint64_t n, uint64_t seed, uint64_t sample);
