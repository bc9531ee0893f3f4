#include "kernels/host/dropout.h"

#include "kernels/host/random.h"

enum {
    CHUNK = 1024
};

void kernel_dropout_forward_f32(float *y, uint8_t *mask, const float *x, size_t n, float p,
                                uint64_t seed, uint64_t stream_id, uint64_t first_index) {
    float uniform[CHUNK], scale = 1 / (1 - p);
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        kernel_philox_uniform_f32(uniform, count, seed, stream_id, first_index + done, 0, 1);
        for (size_t i = 0; i < count; i++) {
            uint8_t keep = uniform[i] >= p;
            mask[done + i] = keep;
            y[done + i] = keep ? x[done + i] * scale : 0;
        }
    }
}

void kernel_dropout_backward_f32(float *dx, const float *dy, const uint8_t *mask, size_t n,
                                 float p) {
    float scale = 1 / (1 - p);
    for (size_t i = 0; i < n; i++) {
        dx[i] = mask[i] ? dy[i] * scale : 0;
    }
}
