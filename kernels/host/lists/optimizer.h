/* kernels/host/lists/optimizer.h - optimizer steps over flat arrays, whole and in pieces.
 *
 * The pieces are those of PyTorch's foreach Adam, which passes over its tensor lists once for each;
 * a plan of that flavour has an op and temporaries for every one. AdamW, in its order:
 *     param *= 1 - lr wd          mul_scalar          (Adam: grad += wd param)
 *     m = lerp(m, grad, 1 - b1)   lerp
 *     v *= b2                     mul_scalar
 *     v += (1 - b2) grad grad     addcmul
 *     t = sqrt(v)                 sqrt
 *     t /= sqrt(1 - b2^step)      div_scalar
 *     t += eps                    add_scalar
 *     param += -lr / (1 - b1^step) m / t              addcdiv
 * The fused forms do all of it in one pass. All are in place on their first argument, n elements.
 * Bound: memory, 4 bytes for each read and each write of an element (fused AdamW: 28).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void kernel_mul_scalar_inplace_f32(float *x, float factor, size_t n);  /* x *= factor */
void kernel_div_scalar_inplace_f32(float *x, float divisor, size_t n); /* x /= divisor */
void kernel_add_scalar_inplace_f32(float *x, float value, size_t n);   /* x += value */
void kernel_lerp_inplace_f32(float *x, const float *y, float weight, size_t n);
/* x += weight (y - x); from weight 0.5 up, y - (y - x)(1 - weight) */
void kernel_addcmul_inplace_f32(float *x, const float *a, const float *b, float value,
                                size_t n); /* x += value a b; a may be b */
void kernel_addcdiv_inplace_f32(float *x, const float *a, const float *b, float value,
                                size_t n);                  /* x += value a / b */
void kernel_sqrt_f32(float *out, const float *x, size_t n); /* out may alias x */

/* A matrix [rows, columns], row after row, is lowered by lr x, whose rows and columns lie so far
 * apart. */
void kernel_lower_by_matrix_f32(float *matrix, const float *x, double lr, size_t rows,
                                size_t columns, size_t row_stride, size_t column_stride);

typedef enum {
    KERNEL_ADAM_COUPLED,   /* Adam: weight decay is added to the gradient */
    KERNEL_ADAM_DECOUPLED, /* AdamW: weight decay shrinks the parameter */
} KernelAdamDecay;

typedef struct {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
    KernelAdamDecay decay;
    int64_t step; /* counts from 1 */
} KernelAdam;

/* One step of Adam or AdamW; updates param, exp_avg and exp_avg_sq, reads grad. */
void kernel_adam_f32(float *param, float *exp_avg, float *exp_avg_sq, const float *grad, size_t n,
                     const KernelAdam *adam);

typedef struct {
    double lr;
    double momentum;
    double weight_decay;
    int64_t step; /* counts from 1; at 1 the momentum becomes the gradient */
} KernelSgd;

/* One step of SGD; momentum_buffer may be NULL if momentum is 0, and is not read at step 1. */
void kernel_sgd_f32(float *param, float *momentum_buffer, const float *grad, size_t n,
                    const KernelSgd *sgd);

/* x *= inverse; false where an element was not finite. */
bool kernel_unscale_inplace_f32(float *x, float inverse, size_t n);

/* x *= factor[0]. */
void kernel_scale_by_inplace_f32(float *x, const float *factor, size_t n);
