/* kernels/host/rows/embedding.c - see embedding.h. */
#include "kernels/host/rows/embedding.h"
#include "kernels/host/elementwise.h"
#include <string.h>

static bool in_table(int64_t index, size_t vocab) {
    return index >= 0 && (uint64_t)index < vocab;
}

bool kernel_embedding_forward_f32(float *out, const float *weight, const int64_t *index,
                                  size_t count, size_t vocab, size_t width) {
    for (size_t i = 0; i < count; i++) {
        if (!in_table(index[i], vocab)) {
            return false;
        }
        memcpy(out + i * width, weight + (size_t)index[i] * width, width * sizeof *out);
    }
    return true;
}

bool kernel_embedding_backward_f32(float *dweight, const float *dout, const int64_t *index,
                                   size_t count, size_t vocab, size_t width) {
    kernel_zero_f32(dweight, vocab * width);
    for (size_t i = 0; i < count; i++) {
        if (!in_table(index[i], vocab)) {
            return false;
        }
        kernel_add_inplace_f32(dweight + (size_t)index[i] * width, dout + i * width, width);
    }
    return true;
}
