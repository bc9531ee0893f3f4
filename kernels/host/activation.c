/* kernels/host/activation.c - see activation.h.
 *
 * Both forms of gelu are x times a rising function from 0 to 1, and are computed so that this
 * function keeps its relative precision where it is small:
 *     tanh form: (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u))
 *     erf form:  (1 + erf(x / sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2
 */
#include "kernels/host/activation.h"
#include "kernels/host/vector.h"

#define TANH_SCALE 1.59576912f /* 2 sqrt(2 / pi) */
#define TANH_CUBE  0.044715f

/* The sigmoid of 2 u, with u the argument of the tanh. */
KERNEL_INLINE float tanh_gate(float x) {
    return sigmoid_f32(TANH_SCALE * (x + TANH_CUBE * x * x * x));
}

/* The normal distribution function at x, and exp(-x^2 / 2). Absolute error below 2e-7.
 *
 * With z = |x| / sqrt 2 and t = 1 / (1 + 0.35 z), erfc(z) = exp(-z^2) t P(t); P was fitted at
 * Chebyshev nodes to exp(z^2) erfc(z) / t on 0 <= z <= 9.6, past which exp(-z^2) is 0 in float. */
KERNEL_INLINE float normal_cdf(float x, float *ret_exp) {
    float z = __builtin_fabsf(x) * 0.707106781f;
    float t = 1.0f / (1.0f + 0.35f * z);
    float e = exp_f32(-0.5f * x * x);
    float p = 0.035909216f;

    p = p * t - 0.145313423f;
    p = p * t + 0.149211094f;
    p = p * t + 0.0156881546f;
    p = p * t + 0.0505300573f;
    p = p * t + 0.165894518f;
    p = p * t + 0.144207797f;
    p = p * t + 0.189428853f;
    p = p * t + 0.196949968f;
    p = p * t + 0.197493769f;

    float tail = 0.5f * e * t * p;

    *ret_exp = e;
    return x > 0.0f ? 1.0f - tail : tail;
}

KERNEL(void, kernel_gelu_tanh_forward_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * tanh_gate(x[i]);
    }
}

/* d/dx x g(w(x)) = g + x g (1 - g) w', with w the sigmoid's argument. */
KERNEL(void, kernel_gelu_tanh_backward_f32)(float *dx, const float *dy, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        float gate = tanh_gate(v);
        float slope = TANH_SCALE * (1.0f + 3.0f * TANH_CUBE * v * v);

        dx[i] = dy[i] * (gate + v * gate * (1.0f - gate) * slope);
    }
}

KERNEL(void, kernel_gelu_erf_forward_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        float e;

        y[i] = x[i] * normal_cdf(x[i], &e);
    }
}

KERNEL(void, kernel_gelu_erf_backward_f32)(float *dx, const float *dy, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        float e;
        float cdf = normal_cdf(x[i], &e);

        dx[i] = dy[i] * (cdf + x[i] * e * 0.398942280f); /* 1 / sqrt(2 pi) */
    }
}

KERNEL(void, kernel_tanh_forward_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        y[i] = 2.0f * sigmoid_f32(2.0f * x[i]) - 1.0f;
    }
}

KERNEL(void, kernel_tanh_backward_f32)(float *dx, const float *dy, const float *y, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        dx[i] = dy[i] * (1.0f - y[i] * y[i]);
    }
}

KERNEL(void, kernel_relu_forward_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

KERNEL(void, kernel_threshold_backward_f32)
(float *dx, const float *dy, const float *y, float threshold, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        dx[i] = y[i] <= threshold ? 0.0f : dy[i];
    }
}

KERNEL(void, kernel_silu_forward_f32)(float *y, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] / (1.0f + exp_f32(-x[i]));
    }
}

KERNEL(void, kernel_silu_backward_f32)(float *dx, const float *dy, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        float gate = sigmoid_f32(x[i]);

        dx[i] = dy[i] * gate * (1.0f + x[i] * (1.0f - gate));
    }
}
