/* tests/emulator/include/emulator-matrices.h - what the lanes of a warp do together with matrices
 * of halves: PTX's ldmatrix.m8n8.x4 and mma.m16n8k16, lane by lane as its ISA has them. A row that
 * begins on no 16 bytes ends the program.
 */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* All lanes of the warp leave a pointer, and each gets all 32 of them; they hold until a lane comes
 * here again. */
void *const *emulator_exchange_pointers(void *mine);
[[noreturn]] void emulator_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

template <typename T>
static inline void emulator_load_matrices(unsigned (&word)[4], const T *row, bool across) {
    void *const *rows = emulator_exchange_pointers((void *)row);
    unsigned g = emulator_lane() / 4, t = emulator_lane() % 4;
    if ((uintptr_t)row % 16) {
        emulator_fault("a matrix's row begins on no 16 bytes");
    }
    for (unsigned i = 0; i < 4; i++) {
        unsigned short bits[2];
        for (unsigned e = 0; e < 2; e++) {
            const T *from = (const T *)rows[i * 8 + (across ? 2 * t + e : g)];
            T x = from[across ? g : 2 * t + e];
            memcpy(&bits[e], &x, sizeof x);
        }
        word[i] = bits[0] | (unsigned)bits[1] << 16;
    }
    __syncwarp();
}

static inline float emulator_widen_bits(unsigned short bits, __nv_bfloat16) {
    return __bfloat162float(__nv_bfloat16{bits});
}
static inline float emulator_widen_bits(unsigned short bits, __half) {
    return __half2float(__half{bits});
}

template <typename T>
static inline void emulator_add_product(float (&sum)[4], const unsigned (&a)[4], unsigned b,
                                        unsigned b_below, T type) {
    const unsigned words[6] = {a[0], a[1], a[2], a[3], b, b_below};
    float mine[12]; /* each lane widens its own, for all that look at them */
    for (unsigned i = 0; i < 12; i++) {
        mine[i] = emulator_widen_bits((unsigned short)(words[i / 2] >> i % 2 * 16), type);
    }
    void *const *all = emulator_exchange_pointers(mine);
    unsigned g = emulator_lane() / 4, t = emulator_lane() % 4;
    for (unsigned i = 0; i < 4; i++) {
        void *const *left = all + g * 4, *const *right = all + (2 * t + i % 2) * 4;
        for (unsigned k = 0; k < 16; k++) {
            const float *x = (const float *)left[k % 8 / 2], *y = (const float *)right[k % 8 / 2];
            sum[i] += x[i / 2 * 2 + k / 8 * 4 + k % 2] * y[8 + k / 8 * 2 + k % 2];
        }
    }
    __syncwarp(); /* until then others look at this lane's */
}
