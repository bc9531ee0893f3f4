/* kernels/host/activation.h - nonlinearities, forward and backward.
 *
 * n elements each; an output may alias any input. Exponentials are this room's own (exp within 2
 * ulp), so forward results are within 1e-6 (1 + |x|) of the exact ones. Backward kernels take what
 * PyTorch saves for them: the input x, except tanh and relu, which take their own output y. SwiGLU
 * is silu(gate) and kernel_mul_f32(); its backward is two kernel_mul_f32() and silu's backward.
 * Bound: arithmetic for a single core (one exponential an element), memory otherwise.
 */
#pragma once
#include <stddef.h>

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
void kernel_gelu_tanh_forward_f32(float *y, const float *x, size_t n);
void kernel_gelu_tanh_backward_f32(float *dx, const float *dy, const float *x, size_t n);

/* x/2 (1 + erf(x / sqrt 2)) */
void kernel_gelu_erf_forward_f32(float *y, const float *x, size_t n);
void kernel_gelu_erf_backward_f32(float *dx, const float *dy, const float *x, size_t n);

/* tanh(x), within 2e-7 of it */
void kernel_tanh_forward_f32(float *y, const float *x, size_t n);
void kernel_tanh_backward_f32(float *dx, const float *dy, const float *y, size_t n);

/* max(x, 0); NaN stays NaN. Backward: dy where y > threshold, else 0 (threshold 0 for relu). */
void kernel_relu_forward_f32(float *y, const float *x, size_t n);
void kernel_threshold_backward_f32(float *dx, const float *dy, const float *y, float threshold,
                                   size_t n);

/* x / (1 + exp(-x)) */
void kernel_silu_forward_f32(float *y, const float *x, size_t n);
void kernel_silu_backward_f32(float *dx, const float *dy, const float *x, size_t n);
