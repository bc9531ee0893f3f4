/* kernels/tensor-math.h - what rows of host/tensor-rows.def are written in, for the host and for
 * CUDA: R is float or double, and exp and the like take either.
 */
#pragma once

/* sqrt(2 / pi), and Hendrycks and Gimpel's cubic term (arXiv:1606.08415). */
#define GELU_ROOT   0.79788456080286535588
#define GELU_CUBE   0.044715
#define ROOT_HALF   0.70710678118654752440
#define NORMAL_AT_0 0.39894228040143267794 /* 1 / sqrt(2 pi) */

#define GELU_FUNCTIONS                                                                             \
    R tanh_of;                                                                                     \
    (void)tanh_of
#define gelu_tanh(x)                                                                               \
    ((R)0.5 * (x) * (1 + tanh((R)GELU_ROOT * ((x) + (R)GELU_CUBE * (x) * (x) * (x)))))
#define gelu_tanh_slope(x)                                                                         \
    (tanh_of = tanh((R)GELU_ROOT * ((x) + (R)GELU_CUBE * (x) * (x) * (x))),                        \
     (R)0.5 * (1 + tanh_of) + (R)0.5 * (x) * (1 - tanh_of * tanh_of) * (R)GELU_ROOT *              \
                                  (1 + 3 * (R)GELU_CUBE * (x) * (x)))
#define gelu_erf_slope(x)                                                                          \
    ((R)0.5 * (1 + erf((x) * (R)ROOT_HALF)) + (x)*exp((R)-0.5 * (x) * (x)) * (R)NORMAL_AT_0)
