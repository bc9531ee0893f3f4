/* kernels/host/copy.c - see copy.h. */
#include "kernels/host/copy.h"
#include <string.h>

void kernel_copy_bytes(void *out, const void *in, size_t bytes) {
    if (bytes > 0) {
        memcpy(out, in, bytes);
    }
}

void kernel_zero_bytes(void *out, size_t bytes) {
    if (bytes > 0) {
        memset(out, 0, bytes);
    }
}

void kernel_copy_2d_bytes(void *out, size_t out_stride, const void *in, size_t in_stride,
                          size_t rows, size_t row_bytes) {
    if (row_bytes == 0) {
        return;
    }
    if (out_stride == row_bytes && in_stride == row_bytes) {
        kernel_copy_bytes(out, in, rows * row_bytes);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        memcpy((char *)out + r * out_stride, (const char *)in + r * in_stride, row_bytes);
    }
}

void kernel_copy_4d_f32(float *out, const size_t out_stride[4], const float *in,
                        const size_t in_stride[4], const size_t size[4]) {
    for (size_t a = 0; a < size[0]; a++) {
        for (size_t b = 0; b < size[1]; b++) {
            for (size_t c = 0; c < size[2]; c++) {
                float *to = out + a * out_stride[0] + b * out_stride[1] + c * out_stride[2];
                const float *from = in + a * in_stride[0] + b * in_stride[1] + c * in_stride[2];

                if (size[3] > 0 && out_stride[3] == 1 && in_stride[3] == 1) {
                    memcpy(to, from, size[3] * sizeof *to);
                    continue;
                }
                for (size_t d = 0; d < size[3]; d++) {
                    to[d * out_stride[3]] = from[d * in_stride[3]];
                }
            }
        }
    }
}
