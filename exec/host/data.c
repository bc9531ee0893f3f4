#include "exec/host/data.h"

#include <glib.h>

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

void exec_data_vector(float *x, uint64_t n, uint64_t seed, uint64_t sample) {
    kernel_philox_normal_f32(x, n, seed, VECTOR_STREAM + sample % EXEC_DATA_SAMPLES, 0, 0, 1);
}
