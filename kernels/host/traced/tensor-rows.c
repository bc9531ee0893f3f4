/* kernels/host/traced/tensor-rows.c - see tensor-rows.h. */
#include "kernels/host/traced/tensor-rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "kernels/tensor-math.h"
#include "kernels/tensor-walk.h"

enum {
    PIECE = 512 /* elements; four pieces of doubles lie in the innermost cache */
};

#define R       float
#define COMPUTE compute_f32
#include "kernels/host/traced/tensor-rows-body.def"
#undef R
#undef COMPUTE
#define R       double
#define COMPUTE compute_f64
#include "kernels/host/traced/tensor-rows-body.def"
#undef R
#undef COMPUTE

/* ---- the walk ------------------------------------------------------------------------------- */

static void run_piece(KernelEach what, const KernelWalk *w, const size_t *offsets, size_t n,
                      double p, double q, bool wide) {
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
    KernelWalk w;
    bool wide = kernel_walk_of(&w, y, inputs, n_inputs);
    if (kernel_tensor_count(y) == 0) {
        return;
    }
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
