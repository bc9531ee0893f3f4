/* kernels/host/lists/optimizer.c - see optimizer.h.
 *
 * Scalars are formed in double, as PyTorch's Python code does, and rounded once to float.
 */
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/vector.h"
#include <float.h>
#include <math.h>

KERNEL(void, kernel_mul_scalar_inplace_f32)(float *x, float factor, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] *= factor;
    }
}

KERNEL(void, kernel_div_scalar_inplace_f32)(float *x, float divisor, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] /= divisor;
    }
}

KERNEL(void, kernel_add_scalar_inplace_f32)(float *x, float value, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] += value;
    }
}

KERNEL(void, kernel_lower_by_matrix_f32)
(float *matrix, const float *x, double lr, size_t rows, size_t columns, size_t row_stride,
 size_t column_stride) {
    float by = (float)-lr;
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++) {
            matrix[row * columns + column] += by * x[row * row_stride + column * column_stride];
        }
    }
}

KERNEL(void, kernel_lerp_inplace_f32)(float *x, const float *y, float weight, size_t n) {
    if (weight < 0.5f) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            x[i] += weight * (y[i] - x[i]);
        }
    } else {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            x[i] = y[i] - (y[i] - x[i]) * (1.0f - weight);
        }
    }
}

KERNEL(void, kernel_addcmul_inplace_f32)
(float *x, const float *a, const float *b, float value, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] += value * a[i] * b[i];
    }
}

KERNEL(void, kernel_addcdiv_inplace_f32)
(float *x, const float *a, const float *b, float value, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] += value * a[i] / b[i];
    }
}

KERNEL(void, kernel_sqrt_f32)(float *out, const float *x, size_t n) {
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        out[i] = sqrtf(x[i]);
    }
}

KERNEL(void, kernel_adam_f32)
(float *param, float *exp_avg, float *exp_avg_sq, const float *grad, size_t n,
 const KernelAdam *adam) {
    double correction1 = 1.0 - pow(adam->beta1, (double)adam->step);
    double correction2 = 1.0 - pow(adam->beta2, (double)adam->step);
    float rest1 = (float)(1.0 - adam->beta1);
    float beta2 = (float)adam->beta2;
    float rest2 = (float)(1.0 - adam->beta2);
    float step_size = (float)(adam->lr / correction1);
    float root_correction2 = (float)sqrt(correction2);
    float eps = (float)adam->eps;
    float coupled = 0.0f;
    float kept = 1.0f;

    switch (adam->decay) {
    case KERNEL_ADAM_COUPLED:
        coupled = (float)adam->weight_decay;
        break;
    case KERNEL_ADAM_DECOUPLED:
        kept = (float)(1.0 - adam->lr * adam->weight_decay);
        break;
    }

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        float p = param[i] * kept;
        float g = grad[i] + coupled * p;
        float m = exp_avg[i] + rest1 * (g - exp_avg[i]);
        float v = exp_avg_sq[i] * beta2 + rest2 * g * g;

        exp_avg[i] = m;
        exp_avg_sq[i] = v;
        param[i] = p - step_size * m / (sqrtf(v) / root_correction2 + eps);
    }
}

KERNEL(void, kernel_sgd_f32)
(float *param, float *momentum_buffer, const float *grad, size_t n, const KernelSgd *sgd) {
    float lr = (float)sgd->lr;
    float decay = (float)sgd->weight_decay;
    float momentum = (float)sgd->momentum;

    if (momentum_buffer == NULL) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            param[i] -= lr * (grad[i] + decay * param[i]);
        }
        return;
    }
    if (sgd->step <= 1) {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            momentum_buffer[i] = grad[i] + decay * param[i];
        }
    } else {
        KERNEL_LOOP
        for (size_t i = 0; i < n; i++) {
            momentum_buffer[i] = momentum * momentum_buffer[i] + (grad[i] + decay * param[i]);
        }
    }
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        param[i] -= lr * momentum_buffer[i];
    }
}

KERNEL(void, kernel_scale_by_inplace_f32)(float *x, const float *factor, size_t n) {
    float by = factor[0];

    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        x[i] *= by;
    }
}

KERNEL(bool, kernel_unscale_inplace_f32)(float *x, float inverse, size_t n) {
    size_t n_beyond = 0;

    KERNEL_SUM(n_beyond)
    for (size_t i = 0; i < n; i++) {
        n_beyond += !(fabsf(x[i]) <= FLT_MAX); /* nor if it is not a number */
        x[i] *= inverse;
    }
    return n_beyond == 0;
}
