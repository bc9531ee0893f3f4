/* exec/host/data.h - synthetic training data: tokens that can be learnt, vectors that can be
 * fitted.
 *
 * Sample s is the same whoever asks for it: samples are dealt out by their number in the global
 * batch, so a global batch is the same on any number of ranks. There are EXEC_DATA_SAMPLES distinct
 * samples.
 *
 * Tokens follow a fixed rule (the next is a function of the last) except for one in eight, which is
 * random; a network that learns the rule loses most of its loss.
 */
#pragma once

#include <stdint.h>

enum {
    EXEC_DATA_SAMPLES = 64
};

/* The first n tokens of a sample, and, in y, each one's successor. */
void exec_data_tokens(int64_t *x, int64_t *y, uint64_t n, int64_t vocab, uint64_t seed,
                      uint64_t sample);
void exec_data_vector(float *x, uint64_t n, uint64_t seed, uint64_t sample);
