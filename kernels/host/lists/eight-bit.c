/* kernels/host/lists/eight-bit.c - see eight-bit.h. */
#include "kernels/host/lists/eight-bit.h"

#include "kernels/at-least.h"
#include "kernels/host/products/float8.h"

static float number_of(const KernelState8bit *state, size_t i) {
    return state->map[state->codes[i]] * state->absmax[i / KERNEL_BYTE_BLOCK];
}

/* The new moments of number i. */
static float first_moment(const KernelState8bit *state, size_t i, float g,
                          const KernelAdamOne *one) {
    return kernel_moved(number_of(state, i), g, one->rest1);
}

static float second_moment(const KernelState8bit *state, size_t i, float g,
                           const KernelAdamOne *one) {
    return kernel_moved(number_of(state, i), g * g, one->rest2);
}

/* A block's new numbers, over the largest of them, which is given back. */
static float scale(float *block, float least) {
    float most = kernel_magnitude_f32(block, KERNEL_BYTE_BLOCK);
    for (size_t i = 0; i < KERNEL_BYTE_BLOCK; i++) {
        block[i] /= kernel_at_least(most, least);
    }
    return most;
}

/* The numbers of a block from one on, to m and v, and the parameter's step of them. */
static void step_block(float *m, float *v, float *param, const float *grad, size_t from,
                       const KernelState8bit *exp_avg, const KernelState8bit *exp_avg_sq,
                       const KernelAdamOne *one) {
    for (size_t i = 0; i < KERNEL_BYTE_BLOCK; i++) {
        m[i] = first_moment(exp_avg, from + i, grad[from + i], one);
        v[i] = second_moment(exp_avg_sq, from + i, grad[from + i], one);
        if (param) {
            param[from + i] = kernel_adam_one_step(param[from + i], m[i], v[i], one);
        }
    }
}

void kernel_adam_8bit(float *param, const float *grad, const KernelState8bit *exp_avg,
                      const KernelState8bit *exp_avg_sq, size_t n, float least,
                      const KernelAdamOne *one) {
    for (size_t from = 0; from < n; from += KERNEL_BYTE_BLOCK) {
        float m[KERNEL_BYTE_BLOCK], v[KERNEL_BYTE_BLOCK];
        step_block(m, v, param, grad, from, exp_avg, exp_avg_sq, one);
        exp_avg->absmax[from / KERNEL_BYTE_BLOCK] = kernel_at_least(scale(m, least), least);
        exp_avg_sq->absmax[from / KERNEL_BYTE_BLOCK] = kernel_at_least(scale(v, least), least);
        kernel_put_codes(exp_avg->codes + from, m, exp_avg->map, KERNEL_BYTE_BLOCK);
        kernel_put_codes(exp_avg_sq->codes + from, v, exp_avg_sq->map, KERNEL_BYTE_BLOCK);
    }
}

void kernel_adam_8bit_scaled(float *param, const float *grad, const KernelState8bit *exp_avg,
                             const KernelState8bit *exp_avg_sq, size_t n, float least,
                             const KernelAdamOne *one) {
    for (size_t from = 0; from < n; from += KERNEL_BYTE_BLOCK) {
        float *m = exp_avg->scaled + from, *v = exp_avg_sq->scaled + from;
        step_block(m, v, param, grad, from, exp_avg, exp_avg_sq, one);
        exp_avg->most[from / KERNEL_BYTE_BLOCK] = scale(m, least);
        exp_avg_sq->most[from / KERNEL_BYTE_BLOCK] = scale(v, least);
    }
}

void kernel_adam_8bit_update(float *param, const float *grad, const KernelState8bit *exp_avg,
                             const KernelState8bit *exp_avg_sq, size_t n,
                             const KernelAdamOne *one) {
    for (size_t i = 0; i < n; i++) {
        param[i] = kernel_adam_one_step(param[i], first_moment(exp_avg, i, grad[i], one),
                                        second_moment(exp_avg_sq, i, grad[i], one), one);
        exp_avg->codes[i] = kernel_code_of(exp_avg->map, exp_avg->scaled[i]);
        exp_avg_sq->codes[i] = kernel_code_of(exp_avg_sq->map, exp_avg_sq->scaled[i]);
    }
}

void kernel_put_codes(uint8_t *codes, const float *x, const float *map, size_t n) {
    for (size_t i = 0; i < n; i++) {
        codes[i] = kernel_code_of(map, x[i]);
    }
}

void kernel_adam_one(float *param, float *exp_avg, float *exp_avg_sq, const float *grad, size_t n,
                     const KernelAdamOne *one) {
    for (size_t i = 0; i < n; i++) {
        exp_avg[i] = kernel_moved(exp_avg[i], grad[i], one->rest1);
        exp_avg_sq[i] = kernel_moved(exp_avg_sq[i], grad[i] * grad[i], one->rest2);
        param[i] = kernel_adam_one_step(param[i], exp_avg[i], exp_avg_sq[i], one);
    }
}
