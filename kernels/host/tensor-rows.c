/* kernels/host/tensor-rows.c - see tensor-rows.h. */
#include "kernels/host/tensor-rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

enum {
    PIECE = 512 /* elements; four pieces of doubles lie in the innermost cache */
};

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

#define R       float
#define COMPUTE compute_f32
#include "kernels/host/tensor-rows-body.def"
#undef R
#undef COMPUTE
#define R       double
#define COMPUTE compute_f64
#include "kernels/host/tensor-rows-body.def"
#undef R
#undef COMPUTE

/* ---- the walk ------------------------------------------------------------------------------- */

typedef struct {
    unsigned n_dims, n_tensors;
    size_t sizes[KERNEL_TENSOR_SIDES];
    size_t strides[KERNEL_EACH_INPUTS + 1][KERNEL_TENSOR_SIDES]; /* the output's are the last */
    const KernelTensor *tensors[KERNEL_EACH_INPUTS + 1];
} Walk;

static void widen(Walk *w, unsigned which, const KernelTensor *t) {
    w->tensors[which] = t;
    for (unsigned i = 0; i < w->n_dims; i++) {
        unsigned behind = w->n_dims - i; /* sides from here to the end */
        bool repeats = behind > t->n_dims || t->sizes[t->n_dims - behind] == 1;
        w->strides[which][i] = repeats ? 0 : t->strides[t->n_dims - behind];
    }
}

static bool lie_as_one(const Walk *w, unsigned outer, unsigned inner) {
    for (unsigned t = 0; t < w->n_tensors; t++) {
        if (w->strides[t][outer] != w->strides[t][inner] * w->sizes[inner]) {
            return false;
        }
    }
    return true;
}

/* Sides of one element are left out, and neighbours that lie as one are. */
static void join_sides(Walk *w) {
    unsigned n = 0;
    for (unsigned i = 0; i < w->n_dims; i++) {
        if (w->sizes[i] == 1) {
            continue;
        }
        bool joins = n > 0 && lie_as_one(w, n - 1, i);
        unsigned to = joins ? n - 1 : n++;
        w->sizes[to] = joins ? w->sizes[to] * w->sizes[i] : w->sizes[i];
        for (unsigned t = 0; t < w->n_tensors; t++) {
            w->strides[t][to] = w->strides[t][i];
        }
    }
    if (n == 0) {
        w->sizes[n] = 1;
        for (unsigned t = 0; t < w->n_tensors; t++) {
            w->strides[t][0] = 0;
        }
        n = 1;
    }
    w->n_dims = n;
}

static bool is_wide(KernelDtype dtype) {
    return dtype == KERNEL_FP64 || dtype == KERNEL_INT64 || dtype == KERNEL_INT32;
}

static void run_piece(KernelEach what, const Walk *w, const size_t *offsets, size_t n, double p,
                      double q, bool wide) {
    unsigned last = w->n_dims - 1, out = w->n_tensors - 1;
    float f[KERNEL_EACH_INPUTS + 1][PIECE];
    double d[KERNEL_EACH_INPUTS + 1][PIECE];
    for (unsigned t = 0; t < out; t++) {
        const KernelTensor *x = w->tensors[t];
        const char *from = (const char *)x->data + offsets[t] * kernel_dtype_bytes(x->dtype);
        if (wide) {
            kernel_line_load_f64(d[t], x->dtype, from, w->strides[t][last], n);
        } else {
            kernel_line_load_f32(f[t], x->dtype, from, w->strides[t][last], n);
        }
    }
    const KernelTensor *y = w->tensors[out];
    char *to = (char *)y->data + offsets[out] * kernel_dtype_bytes(y->dtype);
    if (wide) {
        compute_f64(what, d[out], d[0], d[1], d[2], p, q, n);
        kernel_line_store_f64(to, y->dtype, w->strides[out][last], d[out], n);
    } else {
        compute_f32(what, f[out], f[0], f[1], f[2], (float)p, (float)q, n);
        kernel_line_store_f32(to, y->dtype, w->strides[out][last], f[out], n);
    }
}

void kernel_tensor_each(KernelEach what, const KernelTensor *y, const KernelTensor *inputs,
                        unsigned n_inputs, double p, double q) {
    Walk w = {.n_dims = y->n_dims, .n_tensors = n_inputs + 1};
    bool wide = is_wide(y->dtype);
    memcpy(w.sizes, y->sizes, sizeof w.sizes);
    for (unsigned i = 0; i < n_inputs; i++) {
        widen(&w, i, &inputs[i]);
        wide |= is_wide(inputs[i].dtype) && inputs[i].n_dims > 0;
    }
    widen(&w, n_inputs, y);
    if (kernel_tensor_count(y) == 0) {
        return;
    }
    join_sides(&w);
    unsigned last = w.n_dims - 1;
    size_t at[KERNEL_TENSOR_SIDES] = {0}, offsets[KERNEL_EACH_INPUTS + 1] = {0};
    for (;;) {
        for (size_t i = 0; i < w.sizes[last]; i += PIECE) {
            size_t n = w.sizes[last] - i < PIECE ? w.sizes[last] - i : PIECE;
            size_t here[KERNEL_EACH_INPUTS + 1];
            for (unsigned t = 0; t < w.n_tensors; t++) {
                here[t] = offsets[t] + i * w.strides[t][last];
            }
            run_piece(what, &w, here, n, p, q, wide);
        }
        unsigned side = last;
        for (;;) {
            if (side == 0) {
                return;
            }
            side--;
            at[side]++;
            for (unsigned t = 0; t < w.n_tensors; t++) {
                offsets[t] += w.strides[t][side];
            }
            if (at[side] < w.sizes[side]) {
                break;
            }
            for (unsigned t = 0; t < w.n_tensors; t++) {
                offsets[t] -= at[side] * w.strides[t][side];
            }
            at[side] = 0;
        }
    }
}
