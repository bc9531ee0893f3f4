#include "exec/files/data.h"

#include "exec/error.h"
#include "exec/files/map-file.h"
#include "kernels/host/random.h"

/* Streams of random numbers: parameters take theirs from 0 up (plan order), data from here. */
static const uint64_t TOKEN_STREAM = UINT64_C(1) << 40, NOISE_STREAM = UINT64_C(2) << 40,
                      VECTOR_STREAM = UINT64_C(3) << 40;

static int64_t successor(int64_t token, int64_t vocab) {
    return (5 * token + 7) % vocab;
}

void exec_data_tokens(int64_t *x, int64_t *y, uint64_t n, int64_t vocab, uint64_t seed,
                      uint64_t sample) {
    uint64_t s = sample % EXEC_DATA_SAMPLES;
    g_autofree int64_t *noise = g_new(int64_t, n + 1);
    g_autofree int64_t *token = g_new(int64_t, n + 1);
    kernel_philox_uniform_i64(noise, n + 1, 8, seed, NOISE_STREAM + s, 0);
    kernel_philox_uniform_i64(token, n + 1, vocab, seed, TOKEN_STREAM + s, 0);
    for (uint64_t i = 1; i <= n; i++) {
        if (noise[i]) {
            token[i] = successor(token[i - 1], vocab);
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        x[i] = token[i];
        y[i] = token[i + 1];
    }
}

void exec_data_numbers(int64_t *x, uint64_t n, int64_t bound, uint64_t seed, uint64_t sample) {
    kernel_philox_uniform_i64(x, n, bound, seed, TOKEN_STREAM + sample % EXEC_DATA_SAMPLES, 0);
}

void exec_data_vector(float *x, uint64_t n, uint64_t seed, uint64_t sample) {
    kernel_philox_normal_f32(x, n, seed, VECTOR_STREAM + sample % EXEC_DATA_SAMPLES, 0, 0, 1);
}

/* ---- files ---------------------------------------------------------------------------------- */

struct _ExecData {
    char *path;
    GMappedFile *file;
    const uint8_t *bytes;
    unsigned token_bytes;
    uint64_t n_tokens;
    ExecTensorsFile *tensors; /* NULL: it has tokens */
};

ExecData *exec_data_open(const char *path, unsigned token_bytes, GError **error) {
    g_autoptr(ExecData) data = g_new0(ExecData, 1);
    data->path = g_strdup(path);
    data->token_bytes = token_bytes;
    data->file = exec_map_file(path, error);
    if (!data->file) {
        return NULL;
    }
    data->bytes = (const uint8_t *)g_mapped_file_get_contents(data->file);
    data->n_tokens = g_mapped_file_get_length(data->file) / token_bytes;
    if (g_mapped_file_get_length(data->file) % token_bytes) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "%s has an odd number of bytes, so they are not tokens of two; say "
                    "--token-bytes 1, or mend the file",
                    path);
        return NULL;
    }
    return g_steal_pointer(&data);
}

ExecData *exec_data_open_tensors(const char *path, GError **error) {
    g_autoptr(ExecData) data = g_new0(ExecData, 1);
    data->path = g_strdup(path);
    data->tensors = exec_tensors_open(path, error);
    return data->tensors ? g_steal_pointer(&data) : NULL;
}

void exec_data_free(ExecData *data) {
    if (data) {
        g_clear_pointer(&data->file, g_mapped_file_unref);
        exec_tensors_free(data->tensors);
        g_free(data->path);
        g_free(data);
    }
}

const ExecTensorsFile *exec_data_tensors(const ExecData *data) {
    return data->tensors;
}

bool exec_data_fits(const ExecData *data, uint64_t n, int64_t vocab, GError **error) {
    if (!vocab) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "%s holds tokens, and this network is trained on vectors; leave --data away",
                    data->path);
    } else if (data->n_tokens < n + 1) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "%s holds %" G_GUINT64_FORMAT " tokens, fewer than the %" G_GUINT64_FORMAT
                    " of one sample and its last target",
                    data->path, data->n_tokens, n + 1);
    }
    return vocab && data->n_tokens >= n + 1;
}

static int64_t token_at(const ExecData *data, uint64_t i) {
    const uint8_t *at = data->bytes + i * data->token_bytes;
    return data->token_bytes == 1 ? at[0] : at[0] | at[1] << 8;
}

bool exec_data_file_tokens(const ExecData *data, int64_t *x, int64_t *y, uint64_t n, int64_t vocab,
                           uint64_t sample, GError **error) {
    uint64_t first = sample % ((data->n_tokens - 1) / n) * n;
    for (uint64_t i = 0; i <= n; i++) {
        int64_t token = token_at(data, first + i);
        if (token >= vocab) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "%s: token %" G_GUINT64_FORMAT " is %" G_GINT64_FORMAT
                        ", and the network's vocabulary is %" G_GINT64_FORMAT
                        "; set vocab in the network, or --token-bytes",
                        data->path, first + i, token, vocab);
            return false;
        }
        if (i < n) {
            x[i] = token;
        }
        if (i > 0) {
            y[i - 1] = token;
        }
    }
    return true;
}
